"""A query that is started again, on a broker that may have been restarted with it: what the driver
plans, what a task drains, against the model of a broker."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from tests.unit.spark.model_broker import Model, Queue
from warren.client.blocking_reader import Deliveries
from warren.spark.deliveries import to_batch
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range
from warren.spark.driver import Driver, QueuePartition
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.segment import Segment
from warren.spark.options import SourceOptions
from warren.spark.plan import Offset
from warren.spark.queue_info import QueueInfo


class Catalog:
    """The model's queues."""

    def __init__(self, broker: Model) -> None:
        self._queues = broker.named

    def queues(self, link: Any) -> dict[str, QueueInfo]:
        return {name: QueueInfo(name, "classic") for name in self._queues}

    def kinds(self, link: Any, names: list[str]) -> dict[str, QueueInfo]:
        return {name: QueueInfo(name, "classic") for name in names}

    def have_changed(self, link: Any, names: list[str]) -> bool:
        return False

    def ready(self, link: Any) -> dict[str, int]:
        return {name: len(queue.ready) for name, queue in self._queues.items()}


class Query:
    """A query on a model, started again as often as a test likes: each has a driver of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        given = {"queues": "a,b", "ledger": str(folder), "prefetch": "4", "drainTimeoutMs": "200"}
        self._options = SourceOptions.parse({**given, "minPartitions": "2"})
        self._ledger = Ledger.at(str(folder))
        self.broker = Model()
        self.table: list[bytes] = []
        monkeypatch.setattr("warren.spark.driver.Catalog", lambda _: Catalog(self.broker))
        monkeypatch.setattr(
            "warren.spark.driver.BlockingConnection.open",
            lambda *_, **__: SimpleNamespace(is_open=True, abandon=lambda: None),
        )

    def start(self) -> Driver:
        return Driver(self._options)

    def ranges(self, driver: Driver, start: Offset, end: Offset) -> list[list[Range]]:
        """Of each task."""
        planned = driver.partitions(start, end)
        return [list(each.ranges) for each in planned if isinstance(each, QueuePartition)]

    def read(self, tasks: list[list[Range]]) -> list[bytes]:
        rows: list[bytes] = []
        for ranges in tasks:
            drain = Drain(self._options, self._ledger, connect=self.broker.connect)
            for batch in drain.rows(ranges):
                rows += batch.column("body").to_pylist()
        return rows

    def write_nothing(self, queue: str, start: int, end: int) -> None:
        """A range of which nothing came."""
        empty = to_batch(Deliveries(), queue, start, 0)
        assert self._ledger.write(Segment(queue, start, end, empty))
        self._ledger.settle(queue, start)

    def batch(self, driver: Driver, start: Offset, end: Offset | None = None) -> Offset:
        """One batch whose rows come into the table."""
        end = end or driver.latest(start, None, None)
        self.table += self.read(self.ranges(driver, start, end))
        return end


def suspected(tasks: list[list[Range]]) -> dict[str, bool]:
    return {each.queue: each.suspicious for ranges in tasks for each in ranges}


@pytest.fixture
def query(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Query:
    query = Query(monkeypatch, tmp_path)
    for name in "ab":
        publish(query.broker.add(name), 8)
    return query


def publish(queue: Queue, count: int) -> None:
    for _ in range(count):
        queue.publish(b"%d" % queue.published)


def test_what_a_broker_forgot_is_known_though_the_batch_it_was_in_is_run_again(
    query: Query,
) -> None:
    """A power cut of both, between the acknowledgement and Spark's commit."""
    driver = query.start()
    start = driver.initial()
    end = driver.latest(start, None, None)
    query.read(query.ranges(driver, start, end))
    query.broker.kill(forget=3)

    again = query.start()
    query.batch(again, again.initial(), end)
    for name in "ab":
        publish(query.broker.of(name), 2)
    query.batch(again, end)

    assert sorted(query.table) == sorted([b"%d" % number for number in range(10)] * 2)


def test_a_queue_is_suspected_until_something_of_it_is_in_the_ledger(query: Query) -> None:
    driver = query.start()
    start = driver.initial()
    end = driver.latest(start, None, None)
    tasks = query.ranges(driver, start, end)
    assert suspected(tasks) == {"a": True, "b": True}

    query.read([ranges for ranges in tasks if ranges[0].queue == "a"])  # a take() of few rows
    for name in "ab":
        publish(query.broker.of(name), 1)
    later = driver.latest(end, None, None)

    assert suspected(query.ranges(driver, end, later)) == {"a": False, "b": True}


def test_a_segment_without_rows_is_no_comparison(query: Query) -> None:
    """It is what one makes who waits behind a dead consumer."""
    driver = query.start()
    start = driver.initial()
    end = driver.latest(start, None, None)
    query.ranges(driver, start, end)
    query.write_nothing("a", 0, 8)
    query.read([[Range("b", 0, 8)]])
    for name in "ab":
        publish(query.broker.of(name), 1)
    later = driver.latest(end, None, None)

    assert suspected(query.ranges(driver, end, later)) == {"a": True, "b": False}


def test_and_again_over_a_connection_that_is_made_anew(query: Query) -> None:
    driver = query.start()
    end = query.batch(driver, driver.initial())
    publish(query.broker.of("a"), 1)
    assert suspected(query.ranges(driver, end, driver.latest(end, None, None))) == {"a": False}

    driver.close()

    assert suspected(query.ranges(driver, end, driver.latest(end, None, None))) == {"a": True}
