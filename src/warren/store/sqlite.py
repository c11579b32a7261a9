"""A store in one SQLite file, written by one thread in group commits.

What holds, whatever is killed when:

- ``done(None)`` is called after the transaction that holds the batch is synced to disk (WAL,
  synchronous=FULL): the file has all of a batch or nothing of it.
- A batch is first written as one blob, at the end of the ``journal`` table: a hundred queues that
  get a few messages each would touch a page or three of the tables for each of them. Batches are
  folded into the tables in the order they came, many at a time, when enough of them wait or nobody
  writes; what was deleted meanwhile is left out. A fold takes its batches off the journal in the
  same transaction. What a kill leaves in the journal is folded when the store is opened.
- An entry's row id is its log and its position, so entries of one queue lie together, in order;
  reading on and cutting off are range scans.
- A message in several queues is stored once, with a count of the entries that share it. Counts are
  changed in the same transaction as the entries.
- A batch that can't be written (disk full, device error) is rolled back whole and told to the
  broker, which keeps it and tries again. Nothing of it was confirmed.
- One process a folder: the lock file is held with flock for as long as the store is open.
- The file appears whole, under its name, or not at all. A file that is refused is as it was, to
  the octet.
"""

from __future__ import annotations

import logging
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from warren.errors import StoreDamaged, StoreUnusable
from warren.store.backlog import Backlog, Waiting
from warren.store.base import LAST_POSITION, POSITION_BITS, Batch, LogSummary, Row, entry_id
from warren.store.folder import connect, create, examine, lock_folder
from warren.store.packing import pack_batch
from warren.store.tables import apply_batch, drop_transient

log = logging.getLogger(__name__)

#: Octets in the journal above which batches are folded into the tables while others come.
FOLD_ABOVE = 32 << 20
#: So many octets a fold, at least: more is quicker in all, but who publishes waits for it.
FOLD_BYTES = 1 << 20
#: The journal never gets larger, whatever happens: writing fails before.
MOST_JOURNAL = 4 * FOLD_ABOVE
#: A larger batch gets into the tables at once: nothing is gained by writing it twice. So does one
#: that is to be read back soon.
LARGE_BATCH = 4 << 20
#: How long nobody writes before all batches are folded.
FOLD_AFTER_S = 0.5
#: How long to wait after a fold that failed.
_RETRY_S = 1.0

Done = Callable[[Exception | None], None]


class SqliteStore:
    """The store in a data folder."""

    def __init__(self, folder: str | Path, *, fold_after_s: float = FOLD_AFTER_S) -> None:
        self.folder = Path(folder)
        self.file = self.folder / "warren.db"
        self.name = str(self.file)
        self.readable = 0
        self._fold_after_s = fold_after_s
        self._backlog = Backlog()
        self._folding_fails = False
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = lock_folder(self.folder)
        except OSError as error:
            raise StoreUnusable(str(folder), error.strerror or str(error)) from None
        try:
            self._open()
        except BaseException as error:
            self._lock.close()
            if isinstance(error, sqlite3.OperationalError | OSError):
                raise StoreUnusable(str(folder), str(error)) from None
            if isinstance(error, sqlite3.DatabaseError):
                raise StoreDamaged(self.name, str(error)) from None
            raise
        self._jobs: queue.SimpleQueue[tuple[Batch, Done] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_loop, name="warren-store", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        """Make the file if there is none; take in what waits in the journal of one that is."""
        waiting: list[Batch] = []
        if self.file.exists():
            waiting = examine(self.file)
        elif Path(f"{self.file}-wal").exists():
            raise StoreDamaged(self.name, "it is missing, but its log warren.db-wal is there")
        else:
            create(self.file)
        self._write = connect(self.file)
        self._read = connect(self.file)
        self._write.execute("BEGIN IMMEDIATE")
        for batch in waiting:
            apply_batch(self._write, batch)
        self._write.execute("DELETE FROM journal")
        drop_transient(self._write)
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
    def commit(self, batch: Batch, done: Done) -> None:
        self._jobs.put((batch, done))

    def _write_loop(self) -> None:
        patience_s = self._fold_after_s
        while True:
            try:
                job = self._jobs.get(timeout=patience_s if self._backlog else None)
            except queue.Empty:
                # Nobody writes: one fold after the other, until somebody does.
                patience_s = 0 if self._try_to_fold(FOLD_BYTES) else _RETRY_S
                continue
            if job is None:
                break
            self._take(*job)
            patience_s = self._fold_after_s
        while self._backlog and self._try_to_fold(FOLD_ABOVE):
            pass

    def _take(self, batch: Batch, done: Done) -> None:
        """Write a batch; then, if the journal has become long, fold some of it."""
        try:
            waiting = self._write_batch(batch)
        except Exception as error:  # whatever it is: the broker is told, and decides
            if not isinstance(error, sqlite3.Error):
                log.exception("the store failed over a batch")
            self._roll_back()
            done(error)
            return
        done(None)  # before anything else: publishers wait for it
        if waiting is not None:
            self._backlog.add(waiting)
            if self._backlog.bytes > FOLD_ABOVE:
                self._try_to_fold(max(FOLD_BYTES, 2 * waiting.size))

    def _write_batch(self, batch: Batch) -> Waiting | None:
        """Into the journal, where it waits to be folded, or into the tables."""
        large = batch.bytes_waiting > LARGE_BATCH
        if large or batch.paged or self._backlog.bytes > MOST_JOURNAL:
            self._fold(MOST_JOURNAL * 2, batch)
            return None
        blob = pack_batch(batch)
        # A statement is a transaction of its own: one wait for the interpreter instead of three.
        row_id = self._write.execute("INSERT INTO journal (batch) VALUES (?)", (blob,)).lastrowid
        assert row_id is not None
        return Waiting(row_id, batch, len(blob))

    def _fold(self, size: int, newest: Batch | None = None) -> None:
        """Bring the oldest batches into the tables; with all of them, maybe, the newest."""
        chosen = self._backlog.oldest(size)
        execute = self._write.execute
        execute("BEGIN IMMEDIATE")
        for batch in self._backlog.changes(chosen):
            apply_batch(self._write, batch)
        if chosen:
            execute("DELETE FROM journal WHERE id <= ?", (chosen[-1].row_id,))
        if newest is not None:
            apply_batch(self._write, newest)
        execute("COMMIT")
        self._backlog.drop(chosen)
        last = newest if newest is not None else chosen[-1].batch
        self.readable = last.number

    def _try_to_fold(self, size: int) -> bool:
        """True if it could be done; if not, the batches are as safe as before."""
        try:
            self._fold(size)
        except Exception as error:  # noqa: BLE001 - said below; a batch may be written yet
            self._roll_back()
            if not self._folding_fails:
                log.error("the journal can't be folded into the tables (%s)", error)  # noqa: TRY400
            self._folding_fails = True
            return False
        self._folding_fails = False
        return True

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):  # SQLite may have done so itself
            self._write.execute("ROLLBACK")

    # -- closing ---------------------------------------------------------------------------------
    def close(self) -> None:
        """Write what was handed over, then let go of the folder."""
        self._jobs.put(None)
        self._thread.join()
        self._read.close()
        self._write.close()
        self._lock.close()
