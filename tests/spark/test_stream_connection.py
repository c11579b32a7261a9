"""The connection that a task reads streams over: one for all, made again when it breaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pytest
from pika import spec

from tests.support.brokers import TestBroker
from tests.support.proxy import Proxy
from tests.support.wire import Channel, Connection
from tests.support.wire_frames import Gone
from warren.client.blocking_stream import StreamTap
from warren.errors import ClientError, QueueMissing
from warren.spark import stream as stream_module
from warren.spark.drain.job import Range
from warren.spark.options import SourceOptions
from warren.spark.stream import STREAM, stream_rows

COUNT = 40
_MIB = 1 << 20


@pytest.fixture
def stream(channel: Channel, name: Callable[..., str]) -> str:
    """A stream of more than a task takes at once: numbered messages of a MiB each."""
    made = name("heavy")
    fill(channel, made, _MIB)
    return made


@pytest.fixture
def proxy(broker: TestBroker) -> Iterator[Proxy]:
    with Proxy(broker.host, broker.port) as proxy:
        yield proxy


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the first part is there, most of the rest is in nobody's buffer yet."""
    monkeypatch.setattr(stream_module, "_PART_BYTES", 4 * _MIB)


def fill(channel: Channel, stream: str, size: int) -> None:
    channel.declare(stream, durable=True, arguments={"x-queue-type": "stream"})
    channel.confirm()
    for number in range(COUNT):
        channel.publish(stream, b"%08d" % number + bytes(size))
        channel.expect(spec.Basic.Ack)


def rows(
    url: str, *ranges: Range, timeout_ms: int = 30_000, **settings: float
) -> Iterator[pa.RecordBatch]:
    options = {"uri": url, "queues": "-", "drainTimeoutMs": str(timeout_ms)}
    return stream_rows(SourceOptions.parse(options), ranges, **settings)


def numbers(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return [int(body[:8]) for batch in batches for body in batch.column("body").to_pylist()]


@pytest.mark.usefixtures("small_parts")
def test_a_cut_connection_is_made_again_and_reading_goes_on_where_it_was(
    stream: str, proxy: Proxy
) -> None:
    batches = rows(proxy.url, Range(stream, 0, COUNT, STREAM))
    first = next(batches)
    assert proxy.cut() == 1

    assert numbers([first, *batches]) == list(range(COUNT))
    assert proxy.accepted == 2


@pytest.mark.usefixtures("small_parts")
def test_a_connection_that_fell_silent_is_made_again(stream: str, proxy: Proxy) -> None:
    batches = rows(proxy.url, Range(stream, 0, COUNT, STREAM), timeout_ms=1_000)
    first = next(batches)
    proxy.freeze()

    assert numbers([first, *batches]) == list(range(COUNT))
    assert proxy.accepted >= 2


@pytest.mark.usefixtures("small_parts")
def test_a_broker_that_stays_away_is_given_up(stream: str, proxy: Proxy) -> None:
    batches = rows(proxy.url, Range(stream, 0, COUNT, STREAM), reconnect_s=0.3)
    next(batches)
    proxy.refuse()
    proxy.cut()

    with pytest.raises(ClientError):
        list(batches)


def test_a_stream_that_does_not_run_yet_is_waited_for(
    broker: TestBroker, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, windows = StreamTap.start, [0]  # refused with the code of one without a replica

    def refused_once(tap: StreamTap, queue: str, offset: int | str, window: int) -> None:
        start(tap, queue, offset, windows.pop() if windows else window)

    monkeypatch.setattr(StreamTap, "start", refused_once)

    assert numbers(rows(broker.url, Range(stream, 0, COUNT, STREAM))) == list(range(COUNT))


@pytest.mark.parametrize("more", [{"queues": "nowhere*"}, {"onMissingQueue": "wait"}])
def test_a_stream_that_went_as_it_came_is_left_out(
    broker: TestBroker, more: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    options = SourceOptions.parse({"uri": broker.url, "queues": "nowhere", **more})

    assert list(stream_rows(options, [Range("nowhere", 0, COUNT, STREAM)])) == []

    assert "stream 'nowhere' is gone" in caplog.text


@pytest.mark.usefixtures("small_parts")
def test_one_that_is_named_is_missed_at_once_though_it_went_in_the_middle(
    broker: TestBroker, channel: Channel, stream: str
) -> None:
    options = SourceOptions.parse({"uri": broker.url, "queues": stream})
    batches = stream_rows(options, [Range(stream, 0, 2 * COUNT, STREAM)])
    next(batches)
    channel.call(spec.Queue.Delete(queue=stream))
    began = time.monotonic()

    with pytest.raises(QueueMissing, match=stream):
        list(batches)
    assert time.monotonic() - began < options.drain_timeout_s / 2


@pytest.mark.usefixtures("small_parts")
def test_the_broker_does_not_hang_up_while_spark_is_busy(
    broker: TestBroker, stream: str, proxy: Proxy
) -> None:
    batches = rows(proxy.url + "?heartbeat=1", Range(stream, 0, COUNT, STREAM))
    first = next(batches)
    silent = Connection.open(broker.url, heartbeat=1)
    with pytest.raises(Gone):  # so long does the broker wait for a heartbeat
        while True:
            silent.pump()
    silent.close()

    assert numbers([first, *batches]) == list(range(COUNT))
    assert proxy.accepted == 1


def test_large_messages_are_not_held_all_at_once(broker: TestBroker, stream: str) -> None:
    batches = list(rows(broker.url, Range(stream, 0, COUNT, STREAM)))

    assert numbers(batches) == list(range(COUNT))
    # A batch is a slice of what was held.
    assert max(batch.get_total_buffer_size() for batch in batches) < 36 * _MIB


def test_all_ranges_of_a_task_are_read_over_one_connection(
    channel: Channel, name: Callable[..., str], proxy: Proxy
) -> None:
    one, two = name("one"), name("two")
    fill(channel, one, 100)
    fill(channel, two, 100)
    ranges = [Range(one, 0, 15, STREAM), Range(two, 5, COUNT, STREAM), Range(one, 15, 20, STREAM)]

    assert numbers(rows(proxy.url, *ranges)) == [*range(15), *range(5, COUNT), *range(15, 20)]
    assert proxy.accepted == 1
