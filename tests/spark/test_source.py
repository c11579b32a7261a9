"""``format("rabbitmq")`` as a Spark user sees it, on both brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.spark import tables
from tests.spark.drains import publish
from tests.spark.queries import Query
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.wire import Channel
from warren.spark.columns import COLUMNS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]
# What a broker does is held to both brokers in ``test_exactly_once_steps``; starting queries takes
# its time, so what is Spark's part is tried on one.
on_one_broker = pytest.mark.parametrize("broker", ["warren"], indirect=True)


@pytest.fixture
def query(spark: SparkSession, broker: TestBroker, tmp_path: Path) -> Query:
    return Query(spark, broker.url, tmp_path)


@pytest.fixture
def queue(channel: Channel, name: Callable[..., str]) -> str:
    queue = name("spark")
    channel.declare(queue, durable=True)
    return queue


def test_all_messages_of_queues_are_in_the_table_once_over_several_runs(
    query: Query, channel: Channel, name: Callable[..., str]
) -> None:
    queues = [name("spark"), name("spark")]
    for queue in queues:
        channel.declare(queue, durable=True)
        publish(channel, queue, range(100))

    batches = query.run(",".join(queues), maxMessagesPerTrigger=80)
    publish(channel, queues[0], range(100, 110))
    query.run(",".join(queues), maxMessagesPerTrigger=80)

    assert [batch["numInputRows"] for batch in batches] == [80, 80, 40]
    assert query.numbers(queues[0]) == list(range(110))
    assert query.numbers(queues[1]) == list(range(100))
    assert [channel.count(queue) for queue in queues] == [0, 0]


@on_one_broker
def test_a_query_for_what_is_available_now_leaves_what_comes_later(
    query: Query, channel: Channel, queue: str
) -> None:
    publish(channel, queue, range(10))
    batches: list[int] = []

    def write(batch: DataFrame, _: int) -> None:
        batches.append(batch.count())
        if len(batches) < 5:  # else it might never end
            publish(channel, queue, range(5))

    rows = query.frame(queue, maxMessagesPerTrigger=5).writeStream.foreachBatch(write)
    rows = rows.option("checkpointLocation", str(query.folder / "checkpoint"))
    rows.trigger(availableNow=True).start().awaitTermination(120)

    assert batches == [5, 5]
    assert channel.count(queue) == 10


@on_one_broker
def test_a_message_comes_with_all_its_properties(
    query: Query, channel: Channel, queue: str
) -> None:
    channel.publish(
        queue, b"\x00body", content_type="application/json", content_encoding="gzip",
        headers={"text": "ü", "number": 5, "list": [1, "x"], "nothing": None}, delivery_mode=2,
        priority=4, correlation_id="c", reply_to="r", expiration="600000", message_id="m",
        timestamp=1_700_000_000, type="t", user_id="guest", app_id="a",
    )  # fmt: skip
    channel.publish(queue, b"")
    channel.sync()
    query.run(queue)

    found, bare = tables.rows(query.folder / "table")
    found["headers"] = dict(found["headers"])

    assert found.pop("received_at") is not None
    assert found.pop("timestamp").timestamp() == 1_700_000_000
    assert found == {
        "queue": queue, "offset": 0, "exchange": "", "routing_key": queue, "redelivered": False,
        "body": b"\x00body", "content_type": "application/json", "content_encoding": "gzip",
        "headers": {"text": "ü", "number": "5", "list": '[1, "x"]', "nothing": None},
        "delivery_mode": 2, "priority": 4, "correlation_id": "c", "reply_to": "r",
        "expiration": "600000", "message_id": "m", "type": "t", "user_id": "guest", "app_id": "a",
    }  # fmt: skip
    assert bare["body"] == b""
    properties = [column.name for column in COLUMNS if column.nullable]
    assert [bare[name] for name in properties] == [None] * len(properties)


@on_one_broker
def test_a_query_that_runs_takes_what_comes_and_new_queues_of_its_pattern(
    query: Query, broker: TestBroker, channel: Channel, name: Callable[..., str]
) -> None:
    stem = name("spark")
    first, later, stream = name(f"{stem}-a"), name(f"{stem}-b"), name(f"{stem}-c")
    channel.declare(first)
    with query.running(f"{stem}-*", managementUri=broker.management) as until:
        publish(channel, first, range(5))
        until(lambda: query.numbers() == list(range(5)))
        channel.declare(later)
        publish(channel, later, range(5, 9))
        channel.declare(stream, durable=True, arguments={"x-queue-type": "stream"})
        publish(channel, stream, range(9, 13))
        until(lambda: sorted(query.numbers()) == list(range(13)))


@on_one_broker
def test_a_query_keeps_to_its_octets_and_tasks_and_takes_a_queue_that_comes_later(
    query: Query, channel: Channel, name: Callable[..., str]
) -> None:
    queues = [name("spark") for _ in range(4)]
    for queue in queues:
        channel.declare(queue)
        for number in range(20):
            channel.publish(queue, b"%01000d" % number)
    channel.sync()
    later = name("spark")
    given = {"maxBytesPerTrigger": "40k", "minPartitions": 3, "onMissingQueue": "wait"}

    with query.running(",".join([*queues, later]), **given) as until:
        until(lambda: [query.numbers(queue) for queue in queues] == [list(range(20))] * 4)
        done = tables.batches(query.folder / "table")
        channel.declare(later)
        publish(channel, later, range(5))
        until(lambda: query.numbers(later) == list(range(5)))

    octets = [sum(len(row["body"]) for file in batch for row in file) for batch in done]
    assert len(octets) > 2  # the first one is small: nobody knows yet what a message weighs
    assert max(octets) <= 40 << 10
    assert octets[1] >= 30 << 10
    assert [len(batch) for batch in done] == [3] * len(done)


def test_quorum_queues_are_read_when_they_have_a_single_active_consumer(
    query: Query, channel: Channel, name: Callable[..., str]
) -> None:
    queue = name("spark")
    arguments = {"x-queue-type": "quorum", "x-single-active-consumer": True}
    channel.declare(queue, durable=True, arguments=arguments)
    publish(channel, queue, range(20))

    query.run(queue)

    assert query.numbers() == list(range(20))


@on_one_broker
def test_other_quorum_queues_are_refused_with_the_remedy(
    query: Query, channel: Channel, name: Callable[..., str]
) -> None:
    queue = name("spark")
    channel.declare(queue, durable=True, arguments={"x-queue-type": "quorum"})
    publish(channel, queue, range(3))

    with pytest.raises(Exception, match="x-single-active-consumer=true"):
        query.run(queue)

    assert channel.count(queue) == 3


@on_one_broker
def test_a_priority_queue_comes_in_its_own_order(
    query: Query, channel: Channel, name: Callable[..., str]
) -> None:
    queue = name("spark")
    channel.declare(queue, arguments={"x-max-priority": 3})
    publish(channel, queue, range(3), priority=1)
    publish(channel, queue, range(3, 6), priority=3)

    query.run(queue)

    assert query.numbers() == [3, 4, 5, 0, 1, 2]


def test_a_stream_is_read_by_its_own_offsets_and_without_a_ledger(
    query: Query, channel: Channel, name: Callable[..., str]
) -> None:
    stream = name("spark")
    channel.declare(stream, durable=True, arguments={"x-queue-type": "stream"})
    publish(channel, stream, range(30))
    query.run(stream, maxMessagesPerTrigger=20)
    publish(channel, stream, range(30, 35))
    query.run(stream)

    assert query.numbers() == list(range(35))
    assert not (query.folder / "ledger").exists()


# -- mistakes ------------------------------------------------------------------------------------
@on_one_broker
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"maxMessagePerTrigger": "5"}, "did you mean 'maxMessagesPerTrigger'"),
        ({"startingOffset": "frist"}, "must be first, last, next or an offset"),
        ({"peek": "true"}, "look with spark.read"),
        ({"queues": "nowhere-at-all"}, "no queue 'nowhere-at-all'"),
        ({"url": "amqp://guest:wrong@{host}:{port}/"}, "refused the login of 'guest'"),
    ],
)
def test_a_mistake_is_explained(
    query: Query, broker: TestBroker, queue: str, options: dict[str, str], words: str
) -> None:
    given = {
        key: value.format(host=broker.host, port=broker.port) for key, value in options.items()
    }
    with pytest.raises(Exception, match=words) as failed:
        query.run(given.pop("queues", queue), **given)
    assert "wrong" not in str(failed.value)


@on_one_broker
def test_two_queries_on_one_ledger_are_told_apart(
    query: Query, channel: Channel, queue: str, tmp_path: Path
) -> None:
    publish(channel, queue, range(3))
    query.run(queue)
    publish(channel, queue, range(3, 6))
    other = Query(query.spark, query.uri, tmp_path / "other")

    with pytest.raises(Exception, match="give this query a ledger of its own"):
        other.run(queue, ledger=str(tmp_path / "ledger"))

    query.run(queue)
    assert query.numbers() == list(range(6))


def joined(query: Query, queue: str) -> DataFrame:
    frame = query.frame(queue)
    return frame.join(frame.select("offset"), "offset")


def loaded_twice(query: Query, queue: str) -> DataFrame:
    return query.frame(queue).union(query.frame(queue))


@on_one_broker
@pytest.mark.parametrize("load", [joined, loaded_twice])
def test_a_query_that_has_two_sources_of_a_queue_is_stopped_and_nothing_is_lost(
    query: Query,
    channel: Channel,
    queue: str,
    tmp_path: Path,
    load: Callable[[Query, str], DataFrame],
) -> None:
    publish(channel, queue, range(3))

    with pytest.raises(Exception, match=f"loads queue '{queue}' twice"):
        query.finish(lambda: load(query, queue))

    (tmp_path / "ledger" / "owner.json").unlink()
    once = Query(query.spark, query.uri, tmp_path / "once")
    once.run(queue, ledger=str(tmp_path / "ledger"))
    assert once.numbers() == list(range(3))


@on_one_broker
def test_both_sides_of_a_union_of_a_query_with_itself_have_its_rows(
    query: Query, channel: Channel, queue: str
) -> None:
    frame = query.frame(queue)
    for start in (0, 3):
        publish(channel, queue, range(start, start + 3))
        query.finish(lambda: frame.union(frame))
    assert query.numbers() == [number for number in range(6) for _ in range(2)]


@on_one_broker
def test_two_sources_of_a_query_may_read_different_queues_through_one_ledger(
    query: Query, channel: Channel, name: Callable[[str], str]
) -> None:
    one, two = name("one"), name("two")
    for start in (0, 3):
        for queue in (one, two):
            channel.declare(queue)
            publish(channel, queue, range(start, start + 3))
        query.finish(lambda: query.frame(one).union(query.frame(two)))
    assert query.numbers(one) == query.numbers(two) == list(range(6))


@on_one_broker
def test_a_ledger_that_vanished_stops_the_query(
    query: Query, channel: Channel, queue: str, tmp_path: Path
) -> None:
    publish(channel, queue, range(3))
    query.run(queue)
    (tmp_path / "ledger").rename(tmp_path / "moved")
    publish(channel, queue, range(3, 6))

    with pytest.raises(Exception, match="not the one this query began with"):
        query.run(queue)
    assert channel.count(queue) == 3

    (tmp_path / "moved").rename(tmp_path / "ledger")
    query.run(queue)
    assert query.numbers() == list(range(6))


@on_one_broker
def test_a_slip_in_an_option_is_told_when_the_table_is_named(query: Query) -> None:
    with pytest.raises(AnalysisException, match="did you mean 'queues'"):
        query.frame("a", queus="b")


# -- spark.read ----------------------------------------------------------------------------------
def batch(query: Query, queue: str, **options: Any) -> DataFrame:
    given = {"uri": query.uri, "queues": queue, "ledger": str(query.folder / "ledger"), **options}
    return query.spark.read.format("rabbitmq").options(**given).load()


def bodies(frame: DataFrame) -> list[int]:
    return [int(row.body) for row in sorted(frame.select("offset", "body").collect())]


def test_a_batch_read_drains_what_is_there_once(query: Query, channel: Channel, queue: str) -> None:
    publish(channel, queue, range(5))
    first = batch(query, queue)
    assert bodies(first) == list(range(5))

    publish(channel, queue, range(5, 8))
    assert bodies(first) == list(range(5))  # from the ledger, while that has them
    assert bodies(batch(query, queue)) == [5, 6, 7]
    assert bodies(batch(query, queue, ledgerRetention="0s")) == []
    assert channel.count(queue) == 0
    publish(channel, queue, range(8, 10))
    with pytest.raises(Exception, match=r"no longer has the rows .* load\(\) again"):
        bodies(first)
    assert channel.count(queue) == 2


@on_one_broker
def test_both_sides_of_a_join_of_a_batch_read_with_itself_have_its_rows(
    query: Query, channel: Channel, name: Callable[..., str]
) -> None:
    queues = [name("spark"), name("spark")]
    for queue in queues:
        channel.declare(queue)
        publish(channel, queue, range(20))
    frame = batch(query, ",".join(queues))

    joined = frame.alias("one").join(frame.alias("other"), ["queue", "offset"])

    assert joined.count() == 40
    publish(channel, queues[0], range(3))
    assert joined.where("one.body = other.body").count() == frame.union(frame).count() / 2 == 40
    assert channel.count(queues[0]) == 3


@on_one_broker
def test_a_batch_read_that_is_planned_by_each_action_is_the_same_in_all(
    query: Query, channel: Channel, queue: str
) -> None:
    publish(channel, queue, range(20))
    setting = "spark.sql.python.filterPushdown.enabled"
    query.spark.conf.set(setting, "true")
    try:
        frame = batch(query, queue).where(f"routing_key = '{queue}'")
        assert frame.count() == 20
        frame.write.parquet(str(query.folder / "copy"))
    finally:
        query.spark.conf.unset(setting)

    assert query.spark.read.parquet(str(query.folder / "copy")).count() == 20


@on_one_broker
def test_a_batch_read_can_begin_with_what_earlier_ones_took(
    query: Query, channel: Channel, queue: str
) -> None:
    publish(channel, queue, range(5))
    assert batch(query, queue).count() == 5  # and what was to be done with them failed
    publish(channel, queue, range(5, 8))

    again = batch(query, queue, replay="true")

    assert bodies(again) == bodies(again) == list(range(8))
    assert bodies(batch(query, queue, replay="6")) == [6, 7]
    assert bodies(batch(query, queue)) == []


def test_a_batch_read_of_a_stream_takes_nothing_and_needs_no_ledger(
    query: Query, channel: Channel, name: Callable[..., str]
) -> None:
    stream = name("spark")
    channel.declare(stream, durable=True, arguments={"x-queue-type": "stream"})
    publish(channel, stream, range(5))

    reader = query.spark.read.format("rabbitmq").options(uri=query.uri, queues=stream)
    for more in ({}, {"peek": "true"}, {}):
        assert bodies(reader.options(**more).load()) == list(range(5))
    assert bodies(reader.option("startingOffset", "3").load()) == [3, 4]


def test_peek_needs_no_single_active_consumer(
    query: Query, channel: Channel, name: Callable[..., str]
) -> None:
    quorum = name("spark")
    channel.declare(quorum, durable=True, arguments={"x-queue-type": "quorum"})
    publish(channel, quorum, range(3))

    assert bodies(batch(query, quorum, peek="true")) == [0, 1, 2]


@on_one_broker
def test_a_schema_picks_columns(query: Query, channel: Channel, queue: str) -> None:
    publish(channel, queue, range(2))

    reader = query.spark.read.format("rabbitmq").schema("body BINARY, queue STRING NOT NULL")
    frame = reader.options(uri=query.uri, queues=queue, peek="true").load()

    assert [tuple(row) for row in frame.collect()] == [(b"0", queue), (b"1", queue)]


def test_peek_looks_and_leaves(query: Query, channel: Channel, queue: str) -> None:
    publish(channel, queue, range(5))

    frame = batch(query, queue, peek="true")

    assert bodies(frame) == bodies(frame) == list(range(5))
    eventually(lambda: channel.count(queue) == 5)
    assert bodies(batch(query, queue)) == list(range(5))


@on_one_broker
@pytest.mark.parametrize(
    ("schema", "given", "told"),
    [
        ("body BINARY", {"ledgers": "/nowhere"}, "did you mean 'ledger'"),
        ("bodies BINARY", {"ledger": "/nowhere"}, "'bodies'"),
    ],
)
def test_with_a_schema_of_the_users_a_slip_is_told_when_the_query_begins(
    query: Query, schema: str, given: dict[str, str], told: str
) -> None:
    """Spark asks for nothing before that."""
    reader = query.spark.readStream.format("rabbitmq").schema(schema)
    rows = reader.options(url=query.uri, queues="q", **given).load()

    running = query.start(rows, availableNow=True)
    with pytest.raises(StreamingQueryException, match=told):
        running.awaitTermination(120)
