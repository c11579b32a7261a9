"""However batches get from the journal into the tables, the tables are the same in the end."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import pytest

from tests.support.eventually import eventually
from warren.errors import StoreDamaged
from warren.store import sqlite
from warren.store.base import LAST_POSITION, Batch, Row, as_row, entry_id
from warren.store.packing import pack_batch, unpack_batch
from warren.store.sqlite import LARGE_BATCH, SqliteStore

TABLES = ("entries", "shared", "marks", "definitions")
NEVER_S = 3600.0
LOGS = 4


class Place(NamedTuple):
    exchange: str
    routing_key: str


@dataclass
class Message:
    """What a plain entry has of a message."""

    body_size: int
    address: Place
    content: bytes


def plain(row: Row, place: Place | None = None) -> Message:
    size, *_, exchange, routing_key, content = row
    assert exchange is not None
    assert routing_key is not None
    assert content is not None
    return Message(size, place or Place(exchange, routing_key), content)


class Life:
    """Batches as a broker would make them, by chance: what is deleted has been put before."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.alive: dict[int, int] = {}  # entry to the message it shares
        self.positions = dict.fromkeys(range(1, LOGS + 1), 0)
        self.last_log, self.last_shared, self.number = LOGS, 0, 0

    def batch(self) -> Batch:
        self.number += 1
        batch = Batch(self.number)
        for act in self.dice.choices(
            (self.put, self.share, self.delete, self.give_back, self.define, self.purge, self.end),
            (8, 3, 8, 2, 1, 0.3, 0.3),
            k=self.dice.randint(1, 30),
        ):
            act(batch)
        if self.dice.random() < 0.1:
            batch.bytes_waiting = LARGE_BATCH + 1
        return batch

    def place(self) -> int:
        log = self.dice.choice(list(self.positions))
        self.positions[log] += 1
        return entry_id(log, self.positions[log])

    def put(self, batch: Batch) -> None:
        dice, key = self.dice, self.place()
        self.alive[key] = 0
        expires_at = dice.choice((0, 0, 1 << 41))
        row: Row = (dice.randrange(99), expires_at, 0, 0, 0, "ex", f"k{key & 3}", dice.randbytes(9))
        batch.puts[key] = row if expires_at or dice.randrange(2) else plain(row)
        batch.marks[key >> 40] = key & 3

    def share(self, batch: Batch) -> None:
        self.last_shared += 1
        batch.shared[self.last_shared] = ("ex", "shared", self.dice.randbytes(9))
        for key in {self.place() for _ in range(self.dice.randint(2, 5))}:
            self.alive[key] = self.last_shared
            batch.puts[key] = (1, 0, 0, self.dice.randrange(2), self.last_shared, None, None, None)
            self._count(batch, self.last_shared, 1)

    def delete(self, batch: Batch) -> None:
        older = [key for key in self.alive if key not in batch.puts]
        if older:
            key = self.dice.choice(older)
            batch.deletes.append(key)
            if shared := self.alive.pop(key):
                self._count(batch, shared, -1)

    @staticmethod
    def _count(batch: Batch, shared: int, change: int) -> None:
        batch.references[shared] = batch.references.get(shared, 0) + change

    def give_back(self, batch: Batch) -> None:
        older = [key for key in self.alive if key not in batch.puts]
        if older:
            batch.returns[self.dice.choice(older)] = self.number

    def define(self, batch: Batch) -> None:
        key = ("queue", self.dice.choice("abc"))
        batch.definitions[key] = self.dice.choice((None, f"{self.number}"))

    def purge(self, batch: Batch) -> None:
        self._cut(batch, self.dice.choice(list(self.positions)), whole=False)

    def end(self, batch: Batch) -> None:
        log = self.dice.choice(list(self.positions))
        self._cut(batch, log, whole=True)
        batch.marks.pop(log, None)
        del self.positions[log]
        self.last_log += 1
        self.positions[self.last_log] = 0

    def _cut(self, batch: Batch, log: int, *, whole: bool) -> None:
        first, last = entry_id(log, 0), entry_id(log, self.positions[log])
        for key in [key for key in self.alive if first <= key <= last]:
            shared = self.alive.pop(key)
            if batch.puts.pop(key, None) is not None and shared:
                self._count(batch, shared, -1)
        batch.cuts.append((first, entry_id(log, LAST_POSITION) if whole else last))


def tables(file: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT count(*) FROM journal").fetchone() == (0,)
        return {
            name: connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()
            for name in TABLES
        }


def write(store: SqliteStore, batch: Batch) -> None:
    answers: SimpleQueue[Exception | None] = SimpleQueue()
    store.commit(batch, answers.put)
    assert answers.get(timeout=30) is None


def copy_of(folder: Path) -> Path:
    """What was committed by now, as after a kill."""
    copy = folder.with_name(f"{folder.name}-killed")
    copy.mkdir()
    with (
        closing(sqlite3.connect(folder / "warren.db")) as live,
        closing(sqlite3.connect(copy / "warren.db")) as killed,
    ):
        live.backup(killed)
    return copy


def folded(folder: Path, seed: int) -> dict[str, list[Any]]:
    """Every batch is folded before the next comes."""
    store, life = SqliteStore(folder, fold_after_s=0), Life(seed)
    for _ in range(40):
        write(store, life.batch())
        eventually(lambda: store.readable == life.number, every_s=0.0005)
    store.close()
    SqliteStore(folder).close()  # drops what is transient
    return tables(store.file)


def closed(folder: Path, seed: int) -> dict[str, list[Any]]:
    """All are folded when the store is closed."""
    store, life = SqliteStore(folder, fold_after_s=NEVER_S), Life(seed)
    for _ in range(40):
        write(store, life.batch())
    store.close()
    SqliteStore(folder).close()
    return tables(store.file)


def killed(folder: Path, seed: int) -> dict[str, list[Any]]:
    """All lie in the journal when the broker is killed."""
    store, life = SqliteStore(folder, fold_after_s=NEVER_S), Life(seed)
    for _ in range(40):
        write(store, life.batch())
    found = SqliteStore(copy_of(folder))
    store.close()
    found.close()
    return tables(found.file)


def pressed(folder: Path, seed: int) -> dict[str, list[Any]]:
    """The journal is always too long: the oldest are folded while others come; then a kill."""
    store, life = SqliteStore(folder, fold_after_s=NEVER_S), Life(seed)
    for _ in range(40):
        write(store, life.batch())
    assert store.readable > 0
    found = SqliteStore(copy_of(folder))
    store.close()
    found.close()
    return tables(found.file)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("how", [closed, killed, pressed])
def test_the_tables_are_the_same(
    how: Callable[[Path, int], Any], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = folded(tmp_path / "folded", seed)
    if how is pressed:
        monkeypatch.setattr(sqlite, "FOLD_ABOVE", 3000)
        monkeypatch.setattr(sqlite, "FOLD_BYTES", 700)
    assert how(tmp_path / "data", seed) == wanted


@pytest.mark.parametrize("seed", range(20))
def test_a_batch_comes_back_from_its_blob(seed: int) -> None:
    life = Life(seed)
    for _ in range(10):
        batch = life.batch()
        batch.deletes.sort()
        found = unpack_batch(batch.number, pack_batch(batch))
        batch.bytes_waiting = 0
        batch.puts = {key: as_row(put) for key, put in batch.puts.items()}
        assert found == batch


def test_plain_entries_are_packed_as_rows_are() -> None:
    rows = [(3, 0, 0, 0, 0, "ex", f"k{number % 3}", b"content") for number in range(9)]
    keys = [entry_id(1, number) for number in range(9)]
    blob = pack_batch(Batch(1, puts=dict(zip(keys, rows, strict=True))))
    places: dict[str, Any] = {}
    puts = {
        key: plain(row, places.setdefault(row[6], Place(row[5], row[6])))
        for key, row in zip(keys, rows, strict=True)
    }
    assert pack_batch(Batch(1, puts=puts)) == blob


def test_what_comes_and_goes_while_it_waits_never_gets_into_the_tables(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, fold_after_s=NEVER_S)
    row: Row = (1, 0, 0, 0, 0, "ex", "key", b"content")
    put = {entry_id(1, position): row for position in range(1, 1001)}
    write(store, Batch(1, puts=put))
    write(store, Batch(2, deletes=list(put)))
    statements: list[str] = []
    store._write.set_trace_callback(statements.append)
    store.close()
    assert [each for each in statements if " entries " in each] == []


def test_a_changed_octet_in_the_journal_is_found(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data", fold_after_s=NEVER_S)
    content = b"to be found in the file"
    write(store, Batch(1, puts={entry_id(1, 1): (23, 0, 0, 0, 0, "", "q", content)}))
    copy = copy_of(tmp_path / "data")
    store.close()
    data = (copy / "warren.db").read_bytes()
    (copy / "warren.db").write_bytes(data.replace(content, content.upper()))
    with pytest.raises(StoreDamaged, match="batch 1 of its journal can't be read: its checksum"):
        SqliteStore(copy)


# -- trouble -------------------------------------------------------------------------------------
def no_room(*_: Any) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def some(number: int) -> Batch:
    row: Row = (1, 0, 0, 0, 0, "ex", "key", bytes(500))
    return Batch(number, puts={entry_id(1, number * 10 + at): row for at in range(5)})


def test_batches_that_can_not_be_folded_stay_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(tmp_path / "data", fold_after_s=0)
    with monkeypatch.context() as full:
        full.setattr(sqlite, "apply_batch", no_room)
        write(store, some(1))
        eventually(lambda: "the journal can't be folded into the tables" in caplog.text)
        write(store, some(2))
        assert store.readable == 0
        copy = copy_of(tmp_path / "data")
    found = SqliteStore(copy)
    assert len(found.read(1, 0, 100)) == 10
    found.close()
    eventually(lambda: store.readable == 2)  # it is tried again
    store.close()


def test_a_journal_that_can_not_be_folded_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "MOST_JOURNAL", 5000)
    store = SqliteStore(tmp_path, fold_after_s=NEVER_S)
    answers: SimpleQueue[Exception | None] = SimpleQueue()
    with monkeypatch.context() as full:
        full.setattr(sqlite, "apply_batch", no_room)
        write(store, some(1))
        write(store, some(2))
        store.commit(some(3), answers.put)  # the broker is told, and blocks its publishers
        assert isinstance(answers.get(timeout=30), sqlite3.OperationalError)
    write(store, some(3))
    assert store.readable == 3
    store.close()


# -- synced --------------------------------------------------------------------------------------
def test_every_transaction_is_synced(tmp_path: Path) -> None:
    """WAL with synchronous=FULL: SQLite syncs the log at the end of each transaction."""
    store = SqliteStore(tmp_path)
    write(store, some(1))
    for pragma, wanted in (("journal_mode", "wal"), ("synchronous", 2)):
        assert store._write.execute(f"PRAGMA {pragma}").fetchone() == (wanted,)
    store.close()
