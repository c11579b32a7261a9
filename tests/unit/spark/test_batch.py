"""Batch reads on the model of a broker: what one begins with, and what it leaves."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from tests.unit.spark.model_broker import Model
from warren.errors import ConfigError, LedgerGone, LedgerPruned, ReadByAnother, ReadTooOld
from warren.spark.batch import QueueReader
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range
from warren.spark.kept import Kept
from warren.spark.ledger.ledger import Ledger
from warren.spark.queue_info import QueueInfo
from warren.spark.read_plan import (
    KEPT_S,
    ReadPlan,
    ReadTask,
    find_plan,
    new_token,
    settle_plan,
)
from warren.spark.source import QueueStreamReader

SCHEMA = StructType([StructField("offset", LongType()), StructField("body", BinaryType())])
Rows = list[tuple[int, bytes]]


class Catalog:
    """The model's one queue."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def queues(self, link: Any) -> dict[str, QueueInfo]:
        return {"q": QueueInfo("q", "classic")}

    def ready(self, link: Any) -> dict[str, int]:
        return {"q": len(self._model.queue.ready)}


class Script:
    """Runs of a script that reads what is in the queue."""

    def __init__(self, model: Model, folder: Path) -> None:
        self.model, self.folder = model, folder

    def publish(self, *bodies: bytes) -> None:
        for body in bodies:
            self.model.queue.publish(body)

    def load(self, token: str | None = None, **options: str) -> QueueReader:
        model = self.model

        class Reader(QueueReader):
            def drain(self, ledger: Ledger, run: str) -> Drain:
                return Drain(self._options, ledger, run=run, own_only=True, connect=model.connect)

        given = {"queues": "q", "ledger": str(self.folder), "drainTimeoutMs": "1", **options}
        return Reader(given, SCHEMA, token)

    def read(self, **options: str) -> Rows:
        return self.action(self.load(**options))()

    def action(self, reader: QueueReader) -> Callable[[], Rows]:
        tasks = reader.partitions()

        def rows() -> Rows:
            batches = [batch for task in tasks for batch in reader.read(task)]
            return [(row["offset"], row["body"]) for batch in batches for row in batch.to_pylist()]

        return rows


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    model = Model()
    monkeypatch.setattr("warren.spark.batch.Catalog", lambda _: Catalog(model))
    monkeypatch.setattr(
        "warren.spark.batch.BlockingConnection.open", lambda *_, **__: nullcontext()
    )
    return Script(model, tmp_path / "ledger")


def forget(script: Script, *starts: int) -> None:
    for start in starts:
        os.unlink(script.folder / f"q@{start:020d}.arrow")


def test_a_read_begins_behind_what_was_read(script: Script) -> None:
    script.publish(b"a", b"b")
    assert script.read() == [(0, b"a"), (1, b"b")]

    script.publish(b"c")

    assert script.read() == [(2, b"c")]


def test_a_read_that_is_planned_again_reads_the_same(script: Script) -> None:
    token = new_token()
    script.publish(b"a", b"b")
    first, second = script.action(script.load(token)), script.action(script.load(token))
    assert first() == second() == [(0, b"a"), (1, b"b")]

    script.publish(b"c")

    assert script.action(script.load(token))() == [(0, b"a"), (1, b"b")]
    assert script.read() == [(2, b"c")]
    assert script.action(script.load(token))() == [(0, b"a"), (1, b"b")]


def test_a_replay_that_is_planned_again_reads_the_same(script: Script) -> None:
    token = new_token()
    script.publish(b"a", b"b")
    script.read()
    script.publish(b"c")
    expected = [(1, b"b"), (2, b"c")]
    assert script.action(script.load(token, replay="1"))() == expected

    script.publish(b"d")

    assert script.action(script.load(token, replay="1"))() == expected


@pytest.mark.parametrize("later", [0, 9], ids=["the rest", "the rest and more"])
def test_what_another_load_has_read_since_an_action_took_a_part_is_told(
    script: Script, later: int
) -> None:
    script.publish(*[b"%d" % number for number in range(9)])
    reader = script.load()
    (task,) = reader.partitions()
    ledger = Ledger.at(str(script.folder))
    list(reader.drain(ledger, task.run).rows([Range("q", 0, 3)]))  # as take() does
    script.publish(*[b"later"] * later)
    assert script.read()[0] == (3, b"3")

    with pytest.raises(ReadByAnother, match=r"from offset 3 on.* load\(\) again .*replay=true"):
        script.action(reader)()

    assert len(script.read(replay="true")) == 9 + later


def test_a_read_that_found_nothing_finds_nothing_again(script: Script) -> None:
    token = new_token()
    assert script.action(script.load(token))() == []

    script.publish(b"a")

    assert script.action(script.load(token))() == []


def test_of_two_that_plan_a_read_at_once_the_first_settles_it(tmp_path: Path) -> None:
    ledger, token = Ledger.at(str(tmp_path)), new_token()
    identity = ledger.create()
    first = ReadPlan(identity, (ReadTask((Range("q", 0, 2),), (Kept("q", (0, 1), None),)),))
    other = ReadPlan(identity, (ReadTask((Range("q", 0, 3),)),))

    assert settle_plan(ledger, token, first) == first
    assert settle_plan(ledger, token, other) == first
    assert find_plan(ledger, new_token()) is None


def test_plans_are_forgotten_after_a_day_and_then_not_made_again(script: Script) -> None:
    old, young = new_token(time.time() - KEPT_S - 60), new_token(time.time() - KEPT_S + 60)
    script.publish(b"a")
    script.read()
    plan = ReadPlan(Ledger.at(str(script.folder)).create(), ())
    for token in (old, young):
        settle_plan(Ledger.at(str(script.folder)), token, plan)
    assert script.action(script.load(old))() == script.action(script.load(young))() == []

    script.publish(b"b")
    script.read()

    assert script.action(script.load(young))() == []
    with pytest.raises(ReadTooOld, match=r"24 hours ago.* load\(\) again"):
        script.load(old).partitions()


def test_a_read_whose_ledger_is_gone_takes_nothing(script: Script) -> None:
    script.publish(b"a")
    rows = script.action(script.load())
    rows()
    shutil.rmtree(script.folder)
    script.publish(b"b")

    with pytest.raises(LedgerGone, match=r"it is gone.* load\(\) again"):
        rows()
    assert not script.folder.exists()
    assert script.read() == [(0, b"b")]
    with pytest.raises(LedgerGone, match="its id is"):
        rows()


def test_a_read_keeps_to_its_octets_by_what_was_read_before(script: Script) -> None:
    script.publish(*[bytes(1000)] * 20)
    assert len(script.read(maxBytesPerTrigger="8k")) == 2  # nobody knows yet what they weigh

    assert len(script.read(maxBytesPerTrigger="8k")) == 8
    assert len(script.read(maxBytesPerTrigger="8k", maxMessagesPerTrigger="3")) == 3
    assert len(script.read(maxBytesPerTrigger="1")) == 1
    assert len(script.read()) == 6


def test_replay_begins_with_what_the_ledger_keeps(script: Script) -> None:
    script.publish(b"a", b"b")
    script.read()  # and what was to be done with it failed
    script.publish(b"c")
    script.read()
    script.publish(b"d")

    kept = [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
    assert script.read(replay="true") == kept
    assert script.read(replay="true", ledgerRetention="0s") == kept  # nor does it forget
    assert script.read() == []


@pytest.mark.parametrize("since", range(6))
def test_replay_begins_at_an_offset(script: Script, since: int) -> None:
    script.publish(b"a", b"b")
    script.read()
    script.publish(b"c")
    script.read()
    script.publish(b"d")

    rows = [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
    # What lies ahead of the ledger's end is what comes next.
    assert script.read(replay=str(since)) == rows[min(since, 3) :]


def test_an_action_on_replayed_rows_can_be_repeated(script: Script) -> None:
    script.publish(b"a")
    script.read()
    script.publish(b"b")
    rows = script.action(script.load(replay="true"))

    assert rows() == rows() == [(0, b"a"), (1, b"b")]


@pytest.mark.parametrize(("gone", "since"), [([0], 0), ([0], 1), ([2], 0), ([2], 2)])
def test_replay_from_an_offset_that_is_forgotten_is_refused(
    script: Script, gone: list[int], since: int
) -> None:
    for bodies in ((b"a", b"b"), (b"c",), (b"d",)):
        script.publish(*bodies)
        script.read()
    forget(script, *gone)

    with pytest.raises(LedgerPruned, match=f"from offset {since} on: replay=true begins"):
        script.read(replay=str(since))


def test_replay_of_what_there_is_takes_what_there_is(script: Script) -> None:
    script.publish(b"a")
    script.read()
    script.publish(b"b")
    script.read()
    forget(script, 0)

    assert script.read(replay="true") == [(1, b"b")]


def test_rows_that_are_forgotten_after_the_read_was_planned_are_missed(script: Script) -> None:
    script.publish(b"a")
    script.read()
    script.publish(b"b")
    script.read()
    rows = script.action(script.load(replay="true"))
    forget(script, 0)

    with pytest.raises(LedgerPruned):
        rows()


def test_replay_is_for_batch_reads_with_a_ledger(tmp_path: Path) -> None:
    given = {"queues": "q", "ledger": str(tmp_path), "replay": "true"}
    with pytest.raises(ConfigError, match=r"replay.*spark\.read"):
        QueueStreamReader(given, SCHEMA).initialOffset()
    with pytest.raises(ConfigError, match=r"replay.*peek does without"):
        QueueReader({**given, "peek": "true"}, SCHEMA)
    with pytest.raises(ConfigError, match="true, false or an offset"):
        QueueReader({**given, "replay": "yes"}, SCHEMA)


def test_a_read_that_was_planned_with_a_ledger_that_is_gone_takes_nothing(script: Script) -> None:
    script.publish(b"a", b"b")
    action = script.action(script.load())
    shutil.rmtree(script.folder)
    Ledger.at(str(script.folder)).create()

    with pytest.raises(LedgerGone, match="its id is"):
        action()

    assert len(script.model.queue.ready) == 2
