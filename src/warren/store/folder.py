"""The data folder: its lock, a new file in it, and a look at one that is there."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import IO
from urllib.parse import quote

from warren.errors import StoreDamaged, StoreInUse, StoreTooNew
from warren.store.base import Batch
from warren.store.packing import unpack_batch
from warren.store.tables import APPLICATION_ID, FORMAT, SCHEMA


def lock_folder(folder: Path) -> IO[str]:
    """Hold the folder for as long as the handle is open."""
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


def create(file: Path) -> None:
    """A new file, under its name once it is whole."""
    unfinished = file.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    with closing(sqlite3.connect(unfinished, isolation_level=None)) as connection:
        connection.executescript(SCHEMA)
    with open(unfinished, "rb") as handle:
        os.fsync(handle.fileno())
    unfinished.rename(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def examine(file: Path) -> list[Batch]:
    """Refuse a file that is not as we leave it; give back what waits in its journal.

    Nothing is written: whose it is and of which format is read from its first octets, its pages
    are checked without write access.
    """
    with open(file, "rb") as handle:
        head = handle.read(100)
    if len(head) < 100 or not head.startswith(b"SQLite format 3\0"):
        raise StoreDamaged(str(file), "it is no SQLite file")
    if int.from_bytes(head[68:72], "big") != APPLICATION_ID:
        raise StoreDamaged(str(file), "it was not made by warren")
    if (version := int.from_bytes(head[60:64], "big")) != FORMAT:
        raise StoreTooNew(str(file.parent), version, FORMAT)
    with closing(connect(file, read_only=True)) as connection:
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise StoreDamaged(str(file), verdict.splitlines()[-1])
        rows = connection.execute("SELECT id, batch FROM journal ORDER BY id")
        return [_unpacked(file, *row) for row in rows]


def _unpacked(file: Path, number: int, blob: bytes) -> Batch:
    try:
        return unpack_batch(number, blob)
    except (ValueError, LookupError, TypeError) as error:
        reason = f"batch {number} of its journal can't be read: {error}"
        raise StoreDamaged(str(file), reason) from None


def connect(file: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection to the file, set up as the store needs it."""
    where = f"file:{quote(str(file.absolute()))}?mode={'ro' if read_only else 'rw'}"
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
