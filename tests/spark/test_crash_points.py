"""A process of Spark that dies at each step of the way from a queue into a table, one by one: each
message is in the table once, in order, nothing is left in the queue and nothing in doubt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.spark.crashing import IN_A_TASK, IN_THE_READER, CrashingSource, crash_at
from tests.spark.drains import publish
from tests.spark.queries import Query
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.wire import Channel
from warren.spark.ledger.ledger import Ledger

# On one broker: what brokers do with the messages of a task that died is held to both in
# ``test_exactly_once_steps``.
pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.parametrize("broker", ["warren"], indirect=True),
]


@pytest.fixture
def query(spark: SparkSession, broker: TestBroker, tmp_path: Path) -> Query:
    spark.dataSource.register(CrashingSource)
    return Query(spark, broker.url, tmp_path, CrashingSource.name())


@pytest.fixture
def queue(channel: Channel, name: Callable[..., str]) -> str:
    queue = name("crashing")
    channel.declare(queue, durable=True)
    publish(channel, queue, range(40))
    return queue


def check(query: Query, channel: Channel, queue: str) -> None:
    assert query.numbers() == list(range(40))
    check_left(query, channel, queue)


def check_left(query: Query, channel: Channel, queue: str) -> None:
    eventually(lambda: channel.declare(queue, passive=True).consumer_count == 0, within_s=30)
    assert channel.count(queue) == 0
    assert Ledger.at(str(query.folder / "ledger")).shelves().of(queue).in_doubt == []


@pytest.mark.parametrize("point", IN_A_TASK)
def test_a_worker_that_dies_at_a_step_loses_and_doubles_nothing(
    query: Query, channel: Channel, queue: str, point: str
) -> None:
    order = crash_at(str(query.folder / "ledger"), point)

    query.run(queue, maxMessagesPerTrigger=20)  # Spark tries the task again

    assert not order.exists(), f"it never came to {point!r}"
    check(query, channel, queue)


@pytest.mark.parametrize("point", IN_THE_READER)
def test_a_driver_that_dies_at_a_step_loses_and_doubles_nothing(
    query: Query, channel: Channel, queue: str, point: str
) -> None:
    order = crash_at(str(query.folder / "ledger"), point)
    with pytest.raises(StreamingQueryException):
        query.run(queue, maxMessagesPerTrigger=10, ledgerRetention="0s")
    assert not order.exists(), f"it never came to {point!r}"

    query.run(queue, maxMessagesPerTrigger=10, ledgerRetention="0s")  # from the checkpoint

    check(query, channel, queue)
    shelf = Ledger.at(str(query.folder / "ledger")).shelves().of(queue)
    assert shelf.settled == set(shelf.starts)  # no mark without its segment


def test_a_worker_that_dies_while_it_clears_up_loses_and_doubles_nothing(
    query: Query, channel: Channel, queue: str
) -> None:
    order = crash_at(str(query.folder / "ledger"), "after segment", "before cleared")
    with pytest.raises(StreamingQueryException):
        query.run(queue, maxMessagesPerTrigger=20)  # Spark tries the task again, once
    assert not order.exists(), "it never came to the second point"

    query.run(queue, maxMessagesPerTrigger=20)

    check(query, channel, queue)


def test_a_batch_read_whose_worker_dies_gives_each_row_once(
    query: Query, channel: Channel, queue: str
) -> None:
    ledger = str(query.folder / "ledger")
    rows = query.spark.read.format(query.source).options(uri=query.uri, queues=queue, ledger=ledger)
    rows = rows.option("maxMessagesPerTrigger", 10)

    found: list[int] = []
    for point in ("before segment", "after segment", "after ack", "after the last row"):
        order = crash_at(ledger, point)
        found += [int(row.body) for row in rows.load().select("body").collect()]
        assert not order.exists(), f"it never came to {point!r}"

    assert found == list(range(40))
    check_left(query, channel, queue)


def test_a_batch_write_whose_worker_dies_publishes_again_with_the_same_ids(
    query: Query, channel: Channel, name: Callable[..., str]
) -> None:
    queue, ledger = name("written"), str(query.folder / "ledger")
    channel.declare(queue, durable=True)
    order = crash_at(ledger, "after the last confirm")
    rows = query.spark.range(5).coalesce(1).selectExpr("CAST(id AS STRING) AS body")
    rows.write.format(query.source).options(uri=query.uri, routingKey=queue, ledger=ledger).mode(
        "append"
    ).save()

    assert not order.exists(), "it never came to the last confirm"
    messages = [channel.get(queue) for _ in range(10)]
    found = [(each.body, each.properties.message_id) for each in messages if each is not None]
    first, again = found[:5], found[5:]
    assert [body for body, _ in first] == [b"0", b"1", b"2", b"3", b"4"]
    assert len({message_id for _, message_id in first}) == 5
    assert again == first
    assert channel.count(queue) == 0
