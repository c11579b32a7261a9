"""A store in one SQLite file, written by one thread in group commits.

What holds, whatever is killed when:

- ``done(None)`` is called after the transaction that holds the batch is synced to disk (WAL,
  synchronous=FULL): the file has all of a batch or nothing of it.
- An entry's row id is its log and its position, so entries of one queue lie together, in order;
  reading on and cutting off are range scans.
- A message in several queues is stored once, with a count of the entries that share it. Counts are
  changed in the same transaction as the entries.
- A batch that can't be written (disk full, device error) is rolled back whole and told to the
  broker, which keeps it and tries again. Nothing of it was confirmed.
- One process a folder: the lock file is held with flock for as long as the store is open.
- The file appears whole, under its name, or not at all; whose it is and of which format is read
  from its first octets, and its pages are checked without write access. A file that is refused is
  as it was, to the octet.

Rows are inserted many a statement: each statement gives up the interpreter's lock once, and a
thread that gives it up for every row would crawl beside a busy event loop.
"""

from __future__ import annotations

import fcntl
import logging
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from warren.errors import StoreDamaged, StoreInUse, StoreTooNew, StoreUnusable
from warren.store.base import LAST_POSITION, POSITION_BITS, Batch, LogSummary, Row, entry_id

log = logging.getLogger(__name__)

FORMAT = 1
#: Marks the file as ours ("WRRN").
APPLICATION_ID = 0x5752524E
_CHUNKS = (1000, 100, 10, 1)

# What recovery sums up stands before the content: a long one lies on pages of its own.
_SCHEMA = f"""
PRAGMA page_size=8192;
PRAGMA application_id={APPLICATION_ID};
PRAGMA user_version={FORMAT};
BEGIN;
CREATE TABLE definitions (kind TEXT, key TEXT, value TEXT NOT NULL, PRIMARY KEY (kind, key))
  WITHOUT ROWID;
CREATE TABLE entries (id INTEGER PRIMARY KEY, size INTEGER NOT NULL, expires_at INTEGER NOT NULL,
  returns INTEGER NOT NULL, transient INTEGER NOT NULL, shared INTEGER NOT NULL,
  exchange TEXT, routing_key TEXT, content BLOB);
CREATE INDEX transient_entries ON entries (id) WHERE transient;
CREATE TABLE shared (id INTEGER PRIMARY KEY, entries INTEGER NOT NULL,
  exchange TEXT, routing_key TEXT, content BLOB);
CREATE INDEX unshared ON shared (id) WHERE entries <= 0;
CREATE TABLE marks (log INTEGER PRIMARY KEY, mark INTEGER NOT NULL);
COMMIT;
"""


class SqliteStore:
    """The store in a data folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.file = self.folder / "warren.db"
        self.name = str(self.file)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = _lock_folder(self.folder)
        except OSError as error:
            raise StoreUnusable(str(folder), error.strerror or str(error)) from None
        try:
            self._prepare()
            self._write = self._connect()
            self._read = self._connect()
            self._drop_transient()
        except BaseException as error:
            self._lock.close()
            if isinstance(error, sqlite3.OperationalError | OSError):
                raise StoreUnusable(str(folder), str(error)) from None
            if isinstance(error, sqlite3.DatabaseError):
                raise StoreDamaged(self.name, str(error)) from None
            raise
        self._jobs: queue.SimpleQueue[tuple[Batch, Callable[[Exception | None], None]] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._write_loop, name="warren-store", daemon=True)
        self._thread.start()

    # -- opening ---------------------------------------------------------------------------------
    def _prepare(self) -> None:
        """Make the file if there is none; refuse one that is not as we leave it."""
        if not self.file.exists():
            if Path(f"{self.file}-wal").exists():
                raise StoreDamaged(self.name, "it is missing, but its log warren.db-wal is there")
            _create(self.file)
            return
        with open(self.file, "rb") as handle:
            head = handle.read(100)
        if len(head) < 100 or not head.startswith(b"SQLite format 3\0"):
            raise StoreDamaged(self.name, "it is no SQLite file")
        if int.from_bytes(head[68:72], "big") != APPLICATION_ID:
            raise StoreDamaged(self.name, "it was not made by warren")
        if (version := int.from_bytes(head[60:64], "big")) != FORMAT:
            raise StoreTooNew(str(self.folder), version, FORMAT)
        with closing(self._connect(read_only=True)) as connection:
            verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise StoreDamaged(self.name, verdict.splitlines()[-1])

    def _connect(self, *, read_only: bool = False) -> sqlite3.Connection:
        where = f"file:{quote(str(self.file.absolute()))}?mode={'ro' if read_only else 'rw'}"
        connection = sqlite3.connect(where, uri=True, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA cache_size=-16384")
            if not read_only:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute("PRAGMA wal_autocheckpoint=4000")
        except BaseException:
            connection.close()
            raise
        return connection

    def _drop_transient(self) -> None:
        """Entries that were written for want of memory only don't outlive the broker."""
        self._write.execute("BEGIN IMMEDIATE")
        self._unshare("transient")
        self._write.execute("DELETE FROM entries WHERE transient")
        self._write.execute("DELETE FROM shared WHERE entries <= 0")
        self._write.execute("COMMIT")

    # -- reading ---------------------------------------------------------------------------------
    def definitions(self) -> list[tuple[str, str, str]]:
        return self._rows("SELECT kind, key, value FROM definitions")

    def logs(self) -> dict[int, LogSummary]:
        marks: dict[int, int] = dict(self._rows("SELECT log, mark FROM marks"))
        found = self._rows(
            f"SELECT id >> {POSITION_BITS}, count(*), min(id), max(id), sum(size),"
            f" max(expires_at) FROM entries GROUP BY id >> {POSITION_BITS}"
        )
        summaries = {number: LogSummary(0, 0, 0, mark) for number, mark in marks.items()}
        for number, count, first, last, size, expires_at in found:
            summaries[number] = LogSummary(
                count,
                first & LAST_POSITION,
                last & LAST_POSITION,
                marks.get(number, 0),
                size,
                expires_at > 0,
            )
        return summaries

    def last_shared(self) -> int:
        return int(self._rows("SELECT coalesce(max(id), 0) FROM shared")[0][0])

    def read(self, log: int, after: int, limit: int) -> list[tuple[int, Row]]:
        rows = self._rows(
            "SELECT e.id, e.size, e.expires_at, e.returns, e.transient, e.shared,"
            " coalesce(s.exchange, e.exchange), coalesce(s.routing_key, e.routing_key),"
            " coalesce(s.content, e.content)"
            " FROM entries e LEFT JOIN shared s ON e.shared = s.id AND e.shared != 0"
            " WHERE e.id BETWEEN ? AND ? ORDER BY e.id LIMIT ?",
            (entry_id(log, after) + 1, entry_id(log, LAST_POSITION), limit),
        )
        return [(row[0] & LAST_POSITION, row[1:]) for row in rows]

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._read.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise StoreDamaged(self.name, str(error)) from None

    def free_bytes(self) -> int:
        room = os.statvfs(self.folder)
        return room.f_bavail * room.f_frsize

    # -- writing ---------------------------------------------------------------------------------
    def commit(self, batch: Batch, done: Callable[[Exception | None], None]) -> None:
        self._jobs.put((batch, done))

    def _write_loop(self) -> None:
        while (job := self._jobs.get()) is not None:
            batch, done = job
            try:
                self._write_batch(batch)
            except Exception as error:  # whatever it is: the broker is told, and decides
                if not isinstance(error, sqlite3.Error):
                    log.exception("the store failed over a batch")
                with suppress(sqlite3.Error):  # SQLite may have done so itself
                    self._write.execute("ROLLBACK")
                done(error)
            else:
                done(None)

    def _write_batch(self, batch: Batch) -> None:
        execute, execute_many = self._write.execute, self._write.executemany
        execute("BEGIN IMMEDIATE")
        if batch.shared:
            rows = [(key, 0, *values) for key, values in batch.shared.items()]
            self._insert("shared", rows, "(?,?,?,?,?)")
        if batch.puts:
            self._put(batch.puts)
        execute_many("DELETE FROM entries WHERE id BETWEEN ? AND ?", _runs(batch.deletes))
        for first, last in batch.cuts:
            self._cut(first, last)
        execute_many(
            "UPDATE shared SET entries = entries + ? WHERE id = ?",
            [(change, key) for key, change in batch.references.items()],
        )
        if batch.references or batch.cuts:
            execute("DELETE FROM shared WHERE entries <= 0")
        execute_many(
            "UPDATE entries SET returns = ? WHERE id = ?",
            [(returns, key) for key, returns in batch.returns.items()],
        )
        execute_many("INSERT OR REPLACE INTO marks VALUES (?, ?)", list(batch.marks.items()))
        for (kind, name), value in batch.definitions.items():
            if value is None:
                execute("DELETE FROM definitions WHERE kind = ? AND key = ?", (kind, name))
            else:
                execute("INSERT OR REPLACE INTO definitions VALUES (?, ?, ?)", (kind, name, value))
        execute("COMMIT")

    def _put(self, puts: dict[int, Row]) -> None:
        """Most rows have nothing but an address and a content: the rest of them is zeros."""
        plain, full = [], []
        for key, row in puts.items():
            size, expires_at, returns, transient, shared, exchange, routing_key, content = row
            if expires_at or returns or transient or shared:
                full.append((key, *row))
            else:
                plain.append((key, size, exchange, routing_key, content))
        self._insert("entries", plain, "(?,?,0,0,0,0,?,?,?)")
        self._insert("entries", full, "(?,?,?,?,?,?,?,?,?)")

    def _insert(self, table: str, rows: Iterable[tuple[Any, ...]], one: str) -> None:
        waiting = iter(rows)
        rest: list[tuple[Any, ...]] = []
        for size in _CHUNKS:
            statement = f"INSERT INTO {table} VALUES {','.join([one] * size)}"
            while len(rest := rest or list(islice(waiting, size))) >= size:
                self._write.execute(statement, list(chain(*rest[:size])))
                rest = rest[size:]

    def _cut(self, first: int, last: int) -> None:
        self._unshare("id BETWEEN ? AND ?", (first, last))
        self._write.execute("DELETE FROM entries WHERE id BETWEEN ? AND ?", (first, last))
        if last & LAST_POSITION == LAST_POSITION:
            self._write.execute("DELETE FROM marks WHERE log = ?", (first >> POSITION_BITS,))

    def _unshare(self, which: str, values: tuple[int, ...] = ()) -> None:
        """Entries are about to go: messages they share have so many less."""
        self._write.execute(
            "UPDATE shared SET entries = shared.entries - gone.many FROM (SELECT shared AS id,"
            f" count(*) AS many FROM entries WHERE {which} AND shared != 0 GROUP BY shared) AS gone"
            " WHERE gone.id = shared.id",
            values,
        )

    # -- closing ---------------------------------------------------------------------------------
    def close(self) -> None:
        """Write what was handed over, then let go of the folder."""
        self._jobs.put(None)
        self._thread.join()
        self._read.close()
        self._write.close()
        self._lock.close()


def _create(file: Path) -> None:
    """A new file, under its name once it is whole."""
    unfinished = file.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    with closing(sqlite3.connect(unfinished, isolation_level=None)) as connection:
        connection.executescript(_SCHEMA)
    with open(unfinished, "rb") as handle:
        os.fsync(handle.fileno())
    unfinished.rename(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _runs(ids: list[int]) -> list[tuple[int, int]]:
    """Ids as stretches without a gap: acknowledgements mostly come in order."""
    runs: list[tuple[int, int]] = []
    first = last = -1
    for number in sorted(ids):
        if number == last + 1 and last >= 0:
            last = number
            continue
        if last >= 0:
            runs.append((first, last))
        first = last = number
    if last >= 0:
        runs.append((first, last))
    return runs


def _lock_folder(folder: Path) -> IO[str]:
    handle = open(folder / "lock", "a+")  # noqa: SIM115 - open for as long as the store is
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.seek(0)
        holder = handle.read().strip() or "another process"
        handle.close()
        raise StoreInUse(str(folder), holder) from None
    handle.truncate(0)
    handle.write(f"process {os.getpid()}")
    handle.flush()
    return handle
