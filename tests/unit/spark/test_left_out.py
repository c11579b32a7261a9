"""A queue that can't be read must not hold up the others for ever: it is told before a batch is
written down, and a batch that was written down with it goes on once the option leaves it out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import BinaryType, StructField, StructType

from tests.unit.spark.test_driver import weigh_down
from tests.unit.spark.test_queues import CLASSIC, QUORUM, STREAM, Broker, modes, options
from warren.client.kinds import QueueKind
from warren.errors import NotSingleActive
from warren.spark.driver import Driver, QueuePartition
from warren.spark.ledger.ledger import Ledger
from warren.spark.left_out import LEFT_OUT
from warren.spark.listing import Listing
from warren.spark.queue_info import QueueInfo
from warren.spark.source import QueueStreamReader

BODIES = StructType([StructField("body", BinaryType())])


def list_all(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> None:
    """The management API tells the same as the broker."""

    def queues(_: Listing) -> list[QueueInfo]:
        return [
            QueueInfo(name, kind.type, kind.single_active) for name, kind in broker.queues.items()
        ]

    monkeypatch.setattr(Listing, "queues", queues)


def test_a_queue_of_a_pattern_that_can_not_be_read_is_told_before_a_batch_is_planned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broker = Broker(monkeypatch, q1=CLASSIC)
    list_all(monkeypatch, broker)
    driver = Driver(options("q?", ledger=str(tmp_path)))
    end = driver.latest(driver.initial(), None, None)
    broker.queues["q2"] = QUORUM

    with pytest.raises(NotSingleActive, match="'q2'"):
        driver.latest(end, None, None)
    assert broker.asked == []

    assert Driver(options("q1", ledger=str(tmp_path))).latest(end, None, None)["queues"] == {
        "q1": 10
    }


def test_one_in_which_nothing_is_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broker = Broker(monkeypatch, q1=CLASSIC, q2=QUORUM)
    list_all(monkeypatch, broker)
    ready = {"q1": 5, "q2": 0}
    monkeypatch.setattr("warren.spark.queues.count_ready", lambda link, names: ready)
    driver = Driver(options("q?", ledger=str(tmp_path)))

    end = driver.latest(driver.initial(), None, None)

    assert end["queues"] == {"q1": 5, "q2": 0}


def test_one_that_comes_just_before_it_is_counted_is_asked_what_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broker = Broker(monkeypatch)
    count = broker._count

    def counted(link: Any, names: list[str]) -> dict[str, int | None]:
        broker.queues["q"] = QUORUM
        return count(link, names)

    monkeypatch.setattr("warren.spark.queues.count_ready", counted)
    driver = Driver(options(ledger=str(tmp_path), onMissingQueue="wait"))

    with pytest.raises(NotSingleActive, match="'q'"):
        driver.latest({"ledger": "", "queues": {}}, None, None)
    assert broker.asked == ["q", "q"]


class Query:
    """One that has written down a batch which takes 5 messages of ``good`` and of ``bad``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = Ledger.at(str(folder))
        self.id = self.ledger.create()

    def modes(self, queues: str) -> dict[str, str]:
        driver = Driver(options(queues, ledger=str(self.folder)))
        return modes(driver, self.id, good=5, bad=5)

    def read(self, queues: str) -> list[bytes]:
        """The rows of what is left out."""
        given = {"queues": queues, "ledger": str(self.folder), "minPartitions": "2"}
        reader = QueueStreamReader(given, BODIES)
        start = {"ledger": self.id, "queues": {"good": 0, "bad": 0}}
        end = {"ledger": self.id, "queues": {"good": 5, "bad": 5}}
        rows: list[bytes] = []
        for task in reader.partitions(start, end):
            assert isinstance(task, QueuePartition)
            if task.ranges[0].mode == LEFT_OUT:
                for batch in reader.read(task):
                    rows += batch.column("body").to_pylist()
        return rows


@pytest.fixture
def query(tmp_path: Path) -> Query:
    return Query(tmp_path)


def test_a_batch_goes_on_without_a_queue_that_the_option_leaves_out(
    monkeypatch: pytest.MonkeyPatch, query: Query, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker(monkeypatch, good=CLASSIC, bad=QUORUM)
    with pytest.raises(NotSingleActive, match="'bad'"):
        query.modes("good,bad")

    for _ in range(2):  # and once more, when it was cut off
        assert query.modes("good") == {"good": "exclusive", "bad": LEFT_OUT}
        assert query.read("good") == []
    assert "offsets 0 to 5, stays in the queue" in caplog.text

    broker.queues["bad"] = QueueKind("quorum", single_active=True)
    assert query.modes("good,bad") == {"good": "exclusive", "bad": "single active"}
    (held,) = query.ledger.chain("bad", 0, 5)  # which this batch reads now, and not the queue
    assert (held.rows, held.end) == (0, 5)
    shelf = query.ledger.shelves().of("bad")
    assert (shelf.in_doubt, shelf.unordered) == ([], True)


@pytest.mark.parametrize("kept", [(0, 2), (0, 5), (2, 3), (7, 1)])
def test_what_the_ledger_has_of_a_batch_is_read_though_the_option_leaves_its_queue_out(
    monkeypatch: pytest.MonkeyPatch, query: Query, kept: tuple[int, int]
) -> None:
    Broker(monkeypatch, good=CLASSIC, bad=CLASSIC)
    weigh_down(query.ledger, "bad", *kept, 1)

    assert query.modes("good") == {"good": "exclusive", "bad": "exclusive"}


def test_nor_is_one_left_out_whose_mark_tells_of_a_segment_that_was_lost(
    monkeypatch: pytest.MonkeyPatch, query: Query
) -> None:
    Broker(monkeypatch, good=CLASSIC, bad=CLASSIC)
    query.ledger.settle("bad", 0)

    assert query.modes("good") == {"good": "exclusive", "bad": "exclusive"}


def test_nor_a_stream_which_loses_nothing_by_being_read(
    monkeypatch: pytest.MonkeyPatch, query: Query
) -> None:
    Broker(monkeypatch, good=CLASSIC, bad=STREAM)

    assert query.modes("good") == {"good": "exclusive", "bad": "stream"}


@pytest.mark.parametrize("rows", [2, 5])
def test_what_an_attempt_that_slept_writes_after_all_is_handed_out(
    monkeypatch: pytest.MonkeyPatch, query: Query, rows: int
) -> None:
    Broker(monkeypatch, good=CLASSIC, bad=QUORUM)
    write, late = Ledger.write, [rows]

    def beaten(ledger: Ledger, segment: Any) -> bool:
        if late:
            weigh_down(Ledger.at(str(query.folder)), "bad", 0, late.pop(), 1)
        return write(ledger, segment)

    monkeypatch.setattr(Ledger, "write", beaten)

    assert query.read("good") == [b"\0"] * rows
    assert [each.end for each in query.ledger.chain("bad", 0, 5)] == sorted({rows, 5})


def test_what_is_left_out_begins_where_it_did(
    monkeypatch: pytest.MonkeyPatch, query: Query
) -> None:
    """A queue that was new to the query, and not to the ledger, which has forgotten its first
    rows."""
    Broker(monkeypatch, good=CLASSIC, bad=CLASSIC)
    weigh_down(query.ledger, "bad", 5, 5, 1)
    driver = Driver(options("good", ledger=str(query.folder)))
    start = {"ledger": query.id, "queues": {"good": 0}}

    (task,) = driver.partitions(start, {"ledger": query.id, "queues": {"good": 0, "bad": 12}})

    assert isinstance(task, QueuePartition)
    assert [(each.start, each.end) for each in task.ranges] == [(5, 12)]


def test_who_can_not_be_asked_is_left_out_as_well(
    monkeypatch: pytest.MonkeyPatch, query: Query
) -> None:
    """Its node is down, or it is another connection's own. The ledger has rows of it, so it is no
    stream."""
    broker = Broker(monkeypatch, good=CLASSIC)
    weigh_down(query.ledger, "bad", 0, 5, 1)
    driver = Driver(options("good", ledger=str(query.folder)))
    start = {"ledger": query.id, "queues": {"good": 0, "bad": 5}}

    tasks = driver.partitions(start, {"ledger": query.id, "queues": {"good": 5, "bad": 9}})

    found = {each.queue: each.mode for task in tasks for each in task.ranges}  # type: ignore[attr-defined]
    assert found == {"good": "exclusive", "bad": LEFT_OUT}
    assert "bad" not in broker.asked
