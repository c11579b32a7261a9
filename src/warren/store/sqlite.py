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

Rows are inserted many a statement: each statement gives up the interpreter's lock once, and a
thread that gives it up for every row would crawl beside a busy event loop.
"""

from __future__ import annotations

import fcntl
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

from warren.errors import StoreDamaged, StoreInUse, StoreTooNew
from warren.store.base import LAST_POSITION, POSITION_BITS, Batch, LogSummary, Row, entry_id

FORMAT = 1
#: Marks the file as ours ("WRRN").
APPLICATION_ID = 0x5752524E
_CHUNKS = (1000, 100, 10, 1)

_SCHEMA = """
CREATE TABLE definitions (kind TEXT, key TEXT, value TEXT NOT NULL, PRIMARY KEY (kind, key))
  WITHOUT ROWID;
CREATE TABLE entries (id INTEGER PRIMARY KEY, exchange TEXT, routing_key TEXT, content BLOB,
  expires_at INTEGER NOT NULL, returns INTEGER NOT NULL, shared INTEGER NOT NULL);
CREATE TABLE shared (id INTEGER PRIMARY KEY, exchange TEXT, routing_key TEXT, content BLOB,
  entries INTEGER NOT NULL);
CREATE TABLE marks (log INTEGER PRIMARY KEY, mark INTEGER NOT NULL);
"""


class SqliteStore:
    """The store in a data folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / "warren.db"
        self._lock = _lock_folder(self.folder)
        try:
            self._write = self._open()
            self._read = self._open()
        except BaseException:
            self._lock.close()
            raise
        self._jobs: queue.SimpleQueue[tuple[Batch, Callable[[Exception | None], None]] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._write_loop, name="warren-store", daemon=True)
        self._thread.start()

    # -- opening ---------------------------------------------------------------------------------
    def _open(self) -> sqlite3.Connection:
        fresh = not self.file.exists() or self.file.stat().st_size == 0
        connection = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False)
        try:
            if fresh:
                connection.execute("PRAGMA page_size=8192")
            self._check(connection, fresh)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA wal_autocheckpoint=4000")
            connection.execute("PRAGMA cache_size=-16384")
            if fresh:
                connection.executescript(
                    f"BEGIN; {_SCHEMA} PRAGMA application_id={APPLICATION_ID};"
                    f" PRAGMA user_version={FORMAT}; COMMIT;"
                )
        except sqlite3.DatabaseError as error:
            connection.close()
            raise StoreDamaged(str(self.file), str(error)) from None
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: sqlite3.Connection, fresh: bool) -> None:
        if fresh:
            return
        ours = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if ours != APPLICATION_ID:
            raise StoreDamaged(str(self.file), "it was not made by warren")
        if version != FORMAT:
            raise StoreTooNew(str(self.folder), version, FORMAT)
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise StoreDamaged(str(self.file), verdict.splitlines()[-1])

    # -- reading ---------------------------------------------------------------------------------
    def definitions(self) -> list[tuple[str, str, str]]:
        return self._rows("SELECT kind, key, value FROM definitions")

    def logs(self) -> dict[int, LogSummary]:
        marks: dict[int, int] = dict(self._rows("SELECT log, mark FROM marks"))
        found = self._rows(
            f"SELECT id >> {POSITION_BITS}, count(*), min(id), max(id) FROM entries"
            f" GROUP BY id >> {POSITION_BITS}"
        )
        summaries = {mark: LogSummary(0, 0, 0, position) for mark, position in marks.items()}
        for number, count, first, last in found:
            mark = marks.get(number, 0)
            summaries[number] = LogSummary(count, first & LAST_POSITION, last & LAST_POSITION, mark)
        return summaries

    def last_shared(self) -> int:
        return int(self._rows("SELECT coalesce(max(id), 0) FROM shared")[0][0])

    def read(self, log: int, after: int, limit: int) -> list[tuple[int, Row]]:
        rows = self._rows(
            "SELECT e.id, coalesce(s.exchange, e.exchange), coalesce(s.routing_key, e.routing_key),"
            " coalesce(s.content, e.content), e.expires_at, e.returns, e.shared"
            " FROM entries e LEFT JOIN shared s ON e.shared = s.id AND e.shared != 0"
            " WHERE e.id BETWEEN ? AND ? ORDER BY e.id LIMIT ?",
            (entry_id(log, after) + 1, entry_id(log, LAST_POSITION), limit),
        )
        return [(row[0] & LAST_POSITION, row[1:]) for row in rows]

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._read.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise StoreDamaged(str(self.file), str(error)) from None

    # -- writing ---------------------------------------------------------------------------------
    def commit(self, batch: Batch, done: Callable[[Exception | None], None]) -> None:
        self._jobs.put((batch, done))

    def _write_loop(self) -> None:
        while (job := self._jobs.get()) is not None:
            batch, done = job
            try:
                self._write_batch(batch)
            except sqlite3.Error as error:
                if self._write.in_transaction:
                    self._write.execute("ROLLBACK")
                done(error)
            else:
                done(None)

    def _write_batch(self, batch: Batch) -> None:
        execute = self._write.execute
        execute("BEGIN IMMEDIATE")
        if batch.shared:
            rows = [(key, *values, 0) for key, values in batch.shared.items()]
            self._insert("shared", rows, 5)
        if batch.puts:
            self._insert("entries", ((key, *row) for key, row in batch.puts.items()), 7)
        for first, last in _runs(batch.deletes):
            execute("DELETE FROM entries WHERE id BETWEEN ? AND ?", (first, last))
        for first, last in batch.cuts:
            self._cut(first, last)
        for key, change in batch.references.items():
            execute("UPDATE shared SET entries = entries + ? WHERE id = ?", (change, key))
        if batch.references or batch.cuts:
            execute("DELETE FROM shared WHERE entries <= 0")
        for number, mark in batch.marks.items():
            execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (number, mark))
        for (kind, name), value in batch.definitions.items():
            if value is None:
                execute("DELETE FROM definitions WHERE kind = ? AND key = ?", (kind, name))
            else:
                execute("INSERT OR REPLACE INTO definitions VALUES (?, ?, ?)", (kind, name, value))
        execute("COMMIT")

    def _insert(self, table: str, rows: Iterable[tuple[Any, ...]], width: int) -> None:
        waiting = list(rows)
        at = 0
        one = f"({','.join('?' * width)})"
        for size in _CHUNKS:
            statement = f"INSERT INTO {table} VALUES {','.join([one] * size)}"
            while len(waiting) - at >= size:
                self._write.execute(statement, list(chain(*waiting[at : at + size])))
                at += size

    def _cut(self, first: int, last: int) -> None:
        self._write.execute(
            "UPDATE shared SET entries = entries - (SELECT count(*) FROM entries e"
            " WHERE e.id BETWEEN ? AND ? AND e.shared = shared.id) WHERE id IN"
            " (SELECT shared FROM entries WHERE id BETWEEN ? AND ? AND shared != 0)",
            (first, last, first, last),
        )
        self._write.execute("DELETE FROM entries WHERE id BETWEEN ? AND ?", (first, last))
        if last & LAST_POSITION == LAST_POSITION:
            self._write.execute("DELETE FROM marks WHERE log = ?", (first >> POSITION_BITS,))

    # -- closing ---------------------------------------------------------------------------------
    def close(self) -> None:
        """Write what was handed over, then let go of the folder."""
        self._jobs.put(None)
        self._thread.join()
        self._read.close()
        self._write.close()
        self._lock.close()


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
