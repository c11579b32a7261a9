"""What any store must do: give back in order what was committed, whole batches or nothing."""

from __future__ import annotations

import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from tests.support.eventually import eventually
from warren.errors import StoreDamaged, StoreInUse, StoreTooNew, StoreUnusable
from warren.store.base import LAST_POSITION, Batch, LogSummary, Row, Store, entry_id
from warren.store.sqlite import LARGE_BATCH, SqliteStore
from warren.store.tables import APPLICATION_ID, FORMAT

Open = Callable[[], Store]


@pytest.fixture(params=[partial(SqliteStore, fold_after_s=0)], ids=["sqlite"])
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the store of the test; a store that is open already is closed before."""
    opened: list[Store] = []

    def reopen() -> Store:
        for store in opened:
            store.close()
        opened[:] = [request.param(tmp_path)]
        return opened[0]

    yield reopen
    for store in opened:
        store.close()


@pytest.fixture
def store(reopen: Open) -> Store:
    return reopen()


def row(content: bytes = b"x", **fields: Any) -> Row:
    """An entry with a content of its own."""
    return (
        fields.get("size", len(content)),
        fields.get("expires_at", 0),
        fields.get("returns", 0),
        fields.get("transient", 0),
        0,
        fields.get("exchange", "ex"),
        fields.get("routing_key", "key"),
        content,
    )


def share(number: int, **fields: Any) -> Row:
    """An entry of a message that others have, too."""
    return (*row(**fields)[:4], number, None, None, None)


def entries(log: int, *rows: Row, start: int = 1) -> dict[int, Row]:
    return {entry_id(log, position): row for position, row in enumerate(rows, start)}


def write(store: Store, **changes: Any) -> None:
    """Commit a batch and wait until it is safe, and can be read."""
    answers: SimpleQueue[Exception | None] = SimpleQueue()
    batch = Batch(store.readable + 1, **changes)
    store.commit(batch, answers.put)
    error = answers.get(timeout=30)
    if error is not None:
        raise error
    eventually(lambda: store.readable == batch.number, every_s=0.001)


def now_and_later(store: Store, reopen: Open) -> Iterator[Store]:
    yield store
    yield reopen()


def contents(store: Store, log: int) -> list[bytes | None]:
    return [row[7] for _, row in store.read(log, 0, 1000)]


# -- entries -------------------------------------------------------------------------------------
def test_an_entry_comes_back_as_it_was(store: Store, reopen: Open) -> None:
    wanted = row(b"\0\xff", size=5, expires_at=1 << 41, returns=3, exchange="", routing_key="k\0ä")
    write(store, puts={entry_id(7, 9): wanted})
    assert store.read(7, 0, 10) == [(9, wanted)]
    assert reopen().read(7, 0, 10) == [(9, wanted)]


def test_entries_are_read_in_order_from_a_position_on(store: Store) -> None:
    numbers = list(range(1, 2346))  # more than fit a statement
    write(store, puts=entries(1, *(row(b"%d" % number) for number in numbers)))

    read = store.read(1, 0, 5000)
    assert [position for position, _ in read] == numbers
    assert [row[7] for _, row in read] == [b"%d" % number for number in numbers]
    assert [position for position, _ in store.read(1, 2000, 3)] == [2001, 2002, 2003]
    assert store.read(1, 2345, 3) == []


def test_logs_do_not_mix(store: Store) -> None:
    write(store, puts={entry_id(1, LAST_POSITION): row(b"one"), **entries(2, row(b"two"))})
    assert contents(store, 1) == [b"one"]
    assert contents(store, 2) == [b"two"]


def test_deleted_entries_are_gone(store: Store) -> None:
    write(store, puts=entries(1, *[row(b"%d" % number) for number in range(1, 8)]))
    write(store, deletes=[entry_id(1, position) for position in (6, 2, 3, 5)])
    assert contents(store, 1) == [b"1", b"4", b"7"]


def test_a_cut_takes_a_stretch_and_nothing_else(store: Store) -> None:
    write(store, puts=entries(1, *[row()] * 5) | entries(2, row()), marks={1: 5})
    write(store, cuts=[(entry_id(1, 2), entry_id(1, 4))])
    assert [position for position, _ in store.read(1, 0, 10)] == [1, 5]
    assert store.logs()[1].mark == 5
    assert len(contents(store, 2)) == 1


def test_a_log_that_is_cut_to_its_end_leaves_nothing(store: Store) -> None:
    write(store, puts=entries(1, row()), marks={1: 1})
    write(store, cuts=[(entry_id(1, 0), entry_id(1, LAST_POSITION))])
    assert store.logs() == {}


def test_how_often_an_entry_was_given_back_can_change(store: Store) -> None:
    write(store, puts=entries(1, row(), row()))
    write(store, returns={entry_id(1, 2): 4})
    assert [row[2] for _, row in store.read(1, 0, 10)] == [0, 4]


def test_a_transient_entry_is_there_until_the_store_is_closed(store: Store, reopen: Open) -> None:
    write(store, puts=entries(1, row(b"kept"), row(b"lost", transient=1)))
    assert contents(store, 1) == [b"kept", b"lost"]
    assert contents(reopen(), 1) == [b"kept"]


# -- shared messages -----------------------------------------------------------------------------
SHARED = {1: ("ex", "key", b"content")}


def test_a_shared_message_is_put_into_each_entry(store: Store, reopen: Open) -> None:
    puts = entries(1, share(1)) | entries(2, share(1))
    write(store, shared=SHARED, references={1: 2}, puts=puts)
    for opened in now_and_later(store, reopen):
        assert [row[5:] for _, row in opened.read(2, 0, 10)] == [("ex", "key", b"content")]
        assert opened.last_shared() == 1


@pytest.mark.parametrize("how", ["delete", "cut", "transient"])
def test_a_shared_message_goes_with_its_last_entry(store: Store, reopen: Open, how: str) -> None:
    transient = how == "transient"
    puts = entries(1, share(1)) | entries(2, share(1, transient=transient))
    write(store, shared=SHARED, references={1: 2}, puts=puts)
    write(store, deletes=[entry_id(1, 1)], references={1: -1})
    assert contents(store, 2) == [b"content"]

    if transient:
        store = reopen()
    elif how == "cut":
        write(store, cuts=[(entry_id(2, 0), entry_id(2, LAST_POSITION))])
    else:
        write(store, deletes=[entry_id(2, 1)], references={1: -1})
    assert store.last_shared() == 0


def test_a_cut_of_many_shared_messages_is_quick(store: Store) -> None:
    count = 20_000
    shared = dict.fromkeys(range(1, count + 1), ("", "", b"x"))
    puts = entries(1, *map(share, shared)) | entries(2, *map(share, shared))
    write(store, shared=shared, references=dict.fromkeys(shared, 2), puts=puts)
    write(store, cuts=[(entry_id(1, 0), entry_id(1, LAST_POSITION))])
    assert store.last_shared() == count
    write(store, cuts=[(entry_id(2, 0), entry_id(2, LAST_POSITION))])
    assert store.last_shared() == 0


# -- summaries, marks, definitions ---------------------------------------------------------------
def test_a_log_is_summed_up(store: Store, reopen: Open) -> None:
    write(store, puts=entries(3, row(size=10), row(size=5, expires_at=77), start=4), marks={3: 4})
    write(store, puts=entries(5, row(size=1)), marks={6: 12})
    for opened in now_and_later(store, reopen):
        assert opened.logs() == {
            3: LogSummary(2, 4, 5, 4, 15, True),
            5: LogSummary(1, 1, 1, 0, 1, False),
            6: LogSummary(0, 0, 0, 12),
        }


def test_the_last_word_on_a_definition_counts(store: Store, reopen: Open) -> None:
    write(store, definitions={("queue", "a"): "1", ("queue", "b"): "2"})
    write(store, definitions={("queue", "a"): "3", ("queue", "b"): None, ("exchange", "a"): "4"})
    assert sorted(reopen().definitions()) == [("exchange", "a", "4"), ("queue", "a", "3")]


# -- all or nothing ------------------------------------------------------------------------------
def test_a_batch_that_fails_leaves_nothing_and_can_be_tried_again(
    store: Store, reopen: Open
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    batch: dict[str, Any] = {
        "puts": entries(1, row(b"small"), row(bytes(1 << 20))),
        "definitions": {("queue", "a"): "1"},
    }
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))  # the disk is full
    try:
        with pytest.raises(sqlite3.Error):
            write(store, **batch)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (store.logs(), store.definitions()) == ({}, [])

    write(store, **batch)
    assert contents(reopen(), 1) == [b"small", bytes(1 << 20)]


def test_what_was_handed_over_is_written_before_the_store_closes(
    store: Store, reopen: Open
) -> None:
    for number in range(1, 20):
        store.commit(Batch(number, puts=entries(number, row())), lambda error: None)
    assert len(reopen().logs()) == 19


def test_it_knows_the_free_space(store: Store, tmp_path: Path) -> None:
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    assert store.free_bytes() == pytest.approx(free, abs=1 << 30)


# -- what is refused, and left as it was ---------------------------------------------------------
def filled(folder: Path) -> Path:
    """The file of a store that has been in use, with data on every page."""
    store = SqliteStore(folder)
    puts = entries(1, *[row(bytes(500))] * 1000)
    write(store, puts=puts, definitions={("queue", "a"): "1"}, bytes_waiting=LARGE_BATCH + 1)
    store.close()
    return store.file


def octets(folder: Path) -> dict[str, bytes]:
    """All files but the lock, and SQLite's index of its log, which holds nothing of ours."""
    kept = [path for path in folder.iterdir() if path.name not in ("lock", "warren.db-shm")]
    return {path.name: path.read_bytes() for path in kept if path.stat().st_size}


def refused(folder: Path, kind: type[Exception]) -> str:
    before = octets(folder)
    with pytest.raises(kind) as refusal:
        SqliteStore(folder)
    assert octets(folder) == before
    return str(refusal.value)


def overwrite(file: Path, at: int, data: bytes) -> None:
    with open(file, "r+b") as handle:
        handle.seek(at)
        handle.write(data)


def test_a_file_with_its_head_overwritten(tmp_path: Path) -> None:
    overwrite(filled(tmp_path), 0, b"\0" * 200)
    assert refused(tmp_path, StoreDamaged) == (
        f"{tmp_path}/warren.db is damaged or not a warren store (it is no SQLite file); nothing "
        "was changed. Restore it from a backup, or start with another data folder."
    )


@pytest.mark.parametrize("junk", [b"\0", b"\xff", b"junk"])
def test_a_file_with_its_middle_overwritten(tmp_path: Path, junk: bytes) -> None:
    file = filled(tmp_path)
    middle = file.stat().st_size // 2 // 8192 * 8192
    overwrite(file, middle, junk * (16384 // len(junk)))
    assert "is damaged or not a warren store (" in refused(tmp_path, StoreDamaged)


def test_a_file_cut_short(tmp_path: Path) -> None:
    file = filled(tmp_path)
    os.truncate(file, file.stat().st_size // 2)
    refused(tmp_path, StoreDamaged)


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "warren.db").touch()
    assert "(it is no SQLite file)" in refused(tmp_path, StoreDamaged)


def test_a_file_of_another_program(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "warren.db")
    other.execute("CREATE TABLE theirs (a)")
    other.close()
    assert "(it was not made by warren)" in refused(tmp_path, StoreDamaged)


def test_a_folder_of_another_version(tmp_path: Path) -> None:
    other = sqlite3.connect(filled(tmp_path))
    other.execute(f"PRAGMA user_version={FORMAT + 1}")
    other.close()
    assert refused(tmp_path, StoreTooNew) == (
        f"the data folder {tmp_path} has format {FORMAT + 1}, this warren knows format {FORMAT}; "
        "nothing was changed. Use the version of warren that wrote it."
    )


def test_a_log_without_its_file(tmp_path: Path) -> None:
    (tmp_path / "warren.db-wal").write_bytes(b"something")
    assert "it is missing, but its log warren.db-wal is there" in refused(tmp_path, StoreDamaged)


def test_a_folder_in_use(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    try:
        assert refused(tmp_path, StoreInUse) == (
            f"the data folder {tmp_path} is in use by process {os.getpid()}; stop it, or give "
            "this broker a folder of its own"
        )
    finally:
        store.close()
    SqliteStore(tmp_path).close()


def test_a_folder_that_can_not_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnusable, match="can't be used: Not a directory"):
        SqliteStore(tmp_path / "file" / "data")


# -- kill -9 -------------------------------------------------------------------------------------
def child(folder: Path, program: str) -> subprocess.CompletedProcess[bytes]:
    """A process that works on the store and ends without a goodbye."""
    source = f"""
import os, sys
sys.path[:0] = {sys.path!r}
from tests.contract.stores.test_store import *
folder = {str(folder)!r}
{program}
os.kill(os.getpid(), 9)
"""
    return subprocess.run([sys.executable, "-c", source], capture_output=True, check=False)


def test_what_was_committed_is_there_after_a_kill(tmp_path: Path) -> None:
    child(tmp_path, 'write(SqliteStore(folder, fold_after_s=0), puts=entries(1, row(b"a")))')
    assert (tmp_path / "warren.db-wal").stat().st_size > 0

    store = SqliteStore(tmp_path)
    assert contents(store, 1) == [b"a"]
    store.close()


@pytest.mark.parametrize(
    ("at", "data", "error"),
    [(60, (FORMAT + 1).to_bytes(4, "big"), StoreTooNew), (81920, b"\xff" * 8192, StoreDamaged)],
    ids=["another version", "damaged"],
)
def test_a_log_that_waits_to_be_taken_in_is_left_alone_too(
    tmp_path: Path, at: int, data: bytes, error: type[Exception]
) -> None:
    file = filled(tmp_path)
    child(tmp_path, 'write(SqliteStore(folder, fold_after_s=0), puts=entries(2, row(b"a")))')
    overwrite(file, at, data)
    assert "warren.db-wal" in octets(tmp_path)
    refused(tmp_path, error)


def test_a_kill_while_the_file_is_made_is_no_damage(tmp_path: Path) -> None:
    child(tmp_path, "Path.rename = lambda *_: os.kill(os.getpid(), 9); SqliteStore(folder)")
    assert not (tmp_path / "warren.db").exists()
    assert (tmp_path / "warren.new").exists()

    store = SqliteStore(tmp_path)
    assert store.definitions() == []
    store.close()
    assert sqlite3.connect(store.file).execute("PRAGMA application_id").fetchone() == (
        APPLICATION_ID,
    )
