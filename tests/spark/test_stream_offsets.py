"""Offsets of a stream: what its retention has dropped is missed, and what never was is not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pika import spec
from pyspark.sql.types import BinaryType, StructType

from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.proxy import Proxy
from tests.support.wire import Channel, Connection
from warren.client.blocking import BlockingConnection
from warren.client.endpoint import Endpoint
from warren.errors import OffsetGone, StreamReplaced
from warren.spark.batch import BatchPartition, QueueReader
from warren.spark.drain.job import Range
from warren.spark.driver import Driver, QueuePartition
from warren.spark.options import SourceOptions
from warren.spark.plan import Offset
from warren.spark.stream import STREAM, stream_end, stream_rows, stream_start

COUNT = 40
#: A few messages fill a segment of the log: retention drops whole ones.
SMALL = {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 4_000}
LARGE = {"x-stream-max-segment-size-bytes": 10_000_000}
#: Far longer than anybody may take to find the end of a stream that is written to.
WRITTEN_S = 15.0


def fill(channel: Channel, stream: str, **more: Any) -> None:
    channel.declare(stream, durable=True, arguments={**SMALL, **more})
    channel.confirm()
    for number in range(COUNT):
        channel.publish(stream, b"%08d" % number + bytes(1000))
        channel.expect(spec.Basic.Ack)  # one by one: what is written at once is not divided


def read(broker: TestBroker, stream: str, start: int, end: int) -> list[int]:
    options = SourceOptions.parse({"uri": broker.url, "queues": stream})
    batches = stream_rows(options, [Range(stream, start, end, STREAM)])
    return [int(body[:8]) for batch in batches for body in batch.column("body").to_pylist()]


def edges(broker: TestBroker, stream: str) -> tuple[int, int]:
    options = SourceOptions.parse({"uri": broker.url, "queues": stream})
    with BlockingConnection.open(options.endpoints) as link:
        return stream_start(link, stream, "first"), stream_end(link, stream)


@contextmanager
def written_to(broker: TestBroker, stream: str) -> Iterator[threading.Thread]:
    """While a thread publishes to a stream again and again, what ``fill`` would publish next."""
    begun, stop = threading.Event(), threading.Event()

    def write() -> None:
        connection = Connection.open(broker.url)
        channel = connection.channel()
        number, deadline = COUNT, time.monotonic() + WRITTEN_S
        while time.monotonic() < deadline and not stop.wait(0.005):
            channel.publish(stream, b"%08d" % number + bytes(1000))
            number += 1
            begun.set()
        connection.close()

    writer = threading.Thread(target=write, name="writer", daemon=True)
    writer.start()
    try:
        assert begun.wait(30)
        yield writer
    finally:
        stop.set()
        writer.join(30)


def what_is_left(broker: TestBroker, stream: str) -> list[int]:
    try:
        return read(broker, stream, *edges(broker, stream))
    except OffsetGone:  # it is being trimmed right now
        return []


def test_a_range_that_retention_has_dropped_is_an_error_not_a_gap(
    broker: TestBroker, channel: Channel, name: Callable[..., str]
) -> None:
    stream = name("trimmed")
    fill(channel, stream, **{"x-max-length-bytes": 12_000})
    eventually(lambda: edges(broker, stream)[0] > 4, within_s=30)

    for until in (2, edges(broker, stream)[1]):
        with pytest.raises(OffsetGone, match=f"'{stream}' was to be read from offset 0"):
            read(broker, stream, 0, until)

    left = eventually(lambda: what_is_left(broker, stream), within_s=30)
    assert left == list(range(COUNT - len(left), COUNT))


def test_offsets_that_the_broker_uses_up_itself_are_not_missed(
    broker: TestBroker, channel: Channel, name: Callable[..., str]
) -> None:
    stream = name("segments")
    fill(channel, stream)
    eventually(lambda: len(read(broker, stream, 0, edges(broker, stream)[1])) == COUNT, within_s=30)
    end = edges(broker, stream)[1]

    for start in range(end - 12, end):  # also where a segment begins
        found = read(broker, stream, start, end)
        assert found == list(range(COUNT - len(found), COUNT))


def test_a_stream_that_comes_later_is_read_from_the_first_message_it_has(
    broker: TestBroker, channel: Channel, name: Callable[..., str], tmp_path: Path
) -> None:
    stream = name("late")
    given = {"uri": broker.url, "queues": stream, "ledger": str(tmp_path), "onMissingQueue": "wait"}
    driver = Driver(SourceOptions.parse(given))
    nothing = driver.latest(driver.initial(), None, None)
    fill(channel, stream, **{"x-max-length-bytes": 12_000})

    def planned() -> list[int]:
        tasks = driver.partitions(nothing, driver.latest(nothing, None, None))
        assert len(tasks) == 1
        assert isinstance(tasks[0], QueuePartition)
        [found] = tasks[0].ranges
        assert found.start > 4
        try:
            return read(broker, stream, found.start, found.end)
        except OffsetGone:  # it is being trimmed right now
            return []

    try:
        left = eventually(planned, within_s=30)
    finally:
        driver.close()
    assert left == list(range(COUNT - len(left), COUNT))


def test_a_stream_that_was_declared_again_is_not_taken_for_the_old_one(
    broker: TestBroker, channel: Channel, name: Callable[..., str]
) -> None:
    stream = name("again")
    fill(channel, stream)
    given = {"uri": broker.url, "queues": stream, "drainTimeoutMs": "500"}
    driver = Driver(SourceOptions.parse(given))
    try:
        read_up_to = eventually(lambda: read_to_the_end(driver), within_s=30)
        channel.call(spec.Queue.Delete(queue=stream))
        channel.declare(stream, durable=True, arguments=SMALL)
        channel.publish(stream, b"the first of another one")
        channel.expect(spec.Basic.Ack)

        with pytest.raises(StreamReplaced, match=f"'{stream}' was read up to offset"):
            eventually(lambda: driver.latest(read_up_to, None, None) != read_up_to, within_s=30)
    finally:
        driver.close()


def read_to_the_end(driver: Driver) -> dict[str, Any] | None:
    end = driver.latest(driver.initial(), None, None)
    return end if max(end["queues"].values()) >= COUNT else None


def test_a_batch_of_a_stream_keeps_to_its_octets_and_messages(
    broker: TestBroker, channel: Channel, name: Callable[..., str]
) -> None:
    stream = name("heavy")
    fill(channel, stream)  # 1,008 octets each
    driver = Driver(SourceOptions.parse({"uri": broker.url, "queues": stream}))
    limits = [(None, 10_500), (7, 10_500), (20, 10_500), (None, 1)]

    def ends() -> list[int]:
        start = driver.initial()
        return [driver.latest(start, *limit)["queues"][stream] for limit in limits]

    try:
        eventually(lambda: ends() == [10, 7, 10, 1], within_s=30)
    finally:
        driver.close()


def test_the_end_of_a_stream_that_is_written_to_is_found(
    broker: TestBroker, channel: Channel, name: Callable[..., str]
) -> None:
    stream = name("written")
    fill(channel, stream, **LARGE)
    with written_to(broker, stream) as writer:
        first, end = edges(broker, stream)
        assert writer.is_alive()

    found = read(broker, stream, first, end)
    assert found == list(range(len(found)))
    assert len(found) >= COUNT


@pytest.mark.parametrize("starting", ["first", "last", "next"])
def test_a_stream_that_is_written_to_is_planned_from_anywhere(
    broker: TestBroker, channel: Channel, name: Callable[..., str], starting: str
) -> None:
    stream = name("planned")
    fill(channel, stream, **LARGE)
    given = {"uri": broker.url, "queues": stream, "startingOffset": starting}
    bodies = StructType().add("body", BinaryType())
    driver = Driver(SourceOptions.parse(given))
    try:
        with written_to(broker, stream) as writer:
            start = driver.initial()
            end = driver.latest(start, None, None)
            tasks = QueueReader(given, bodies).partitions()
            assert writer.is_alive()
    finally:
        driver.close()

    planned_tasks = [each.task for each in tasks if isinstance(each, BatchPartition)]
    ranges = [each for task in planned_tasks for each in task.ranges]
    ranges.append(Range(stream, start["queues"][stream], end["queues"][stream], STREAM))
    for planned in ranges:
        found = read(broker, stream, planned.start, planned.end)
        begin = found[0] if found else 0
        assert found == list(range(begin, begin + len(found)))
        assert starting != "first" or found[:COUNT] == list(range(COUNT))


def test_the_end_is_exact_however_long_the_last_chunk_takes(
    broker: TestBroker, channel: Channel, name: Callable[..., str]
) -> None:
    stream = name("slow")
    channel.declare(stream, durable=True, arguments={"x-queue-type": "stream"})
    channel.confirm()
    body = bytes(30_000)
    channel.connection.wire.send(b"".join(channel.publishing(stream, body) for _ in range(COUNT)))
    channel.wait_confirms(COUNT)

    with Proxy(broker.host, broker.port) as proxy:
        proxy.delay(0.2)
        with BlockingConnection.open([Endpoint.from_uri(proxy.url)]) as link:
            assert stream_end(link, stream) == COUNT


@pytest.mark.parametrize("wanted", ["last", "next"])
def test_a_first_batch_that_is_run_again_begins_where_it_began(
    broker: TestBroker, channel: Channel, name: Callable[..., str], wanted: str
) -> None:
    """Spark asks again for the beginning of a query whose first batch it has not committed."""
    stream = name("begun")
    fill(channel, stream)
    eventually(lambda: edges(broker, stream)[1] >= COUNT, within_s=30)
    given = {"uri": broker.url, "queues": stream, "startingOffset": wanted}

    first = Driver(SourceOptions.parse(given))
    start = first.initial()
    publish_more(channel, stream)
    end = first.latest(start, None, None)
    planned = ranges_of(first, start, end)
    first.close()
    publish_more(channel, stream)
    second = Driver(SourceOptions.parse(given))
    again = ranges_of(second, second.initial(), end)
    behind = second.latest(end, None, None)
    last = second.latest(behind, None, None)
    second.close()

    assert again == planned
    assert planned[0].start < planned[0].end
    assert last.get("begin") is None  # it is of the first batch alone


def publish_more(channel: Channel, stream: str) -> None:
    for number in range(10):
        channel.publish(stream, b"%08d" % number + bytes(1000))
        channel.expect(spec.Basic.Ack)


def ranges_of(driver: Driver, start: Offset, end: Offset) -> list[Range]:
    planned = driver.partitions(start, end)
    return [each for task in planned if isinstance(task, QueuePartition) for each in task.ranges]
