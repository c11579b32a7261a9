"""Streams: the broker keeps what was read, so its own offsets do, and no ledger is needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa

from warren.client.blocking import BlockingConnection
from warren.client.blocking_stream import StreamEdge, StreamTap
from warren.errors import ConnectionLost, OffsetGone
from warren.spark.deliveries import to_batch
from warren.spark.drain_job import Range, slices
from warren.spark.options import SourceOptions

STREAM = "stream"
_WINDOW = 2_000
#: AMQP's prefetch has 16 bits, and so has the number of messages in a chunk of RabbitMQ's log.
_CHUNK = 65_535
#: The most messages that are weighed.
_LOOKED_AT = 50
_PART = 20_000
#: A stream that has something answers at once; this long is waited for more, and no longer, for
#: one that is written to has more for ever.
_QUIET_S = 0.1
#: This long is waited for the first message of a stream that may be empty, once the broker has
#: said that it begins.
_EMPTY_S = 0.5
_ANSWER_S = 30.0


def stream_end(link: BlockingConnection, queue: str) -> int:
    """The offset that the next message will get; of a stream that is written to, got lately."""
    return _edge(link, queue, "last", _CHUNK)[1]


def stream_start(link: BlockingConnection, queue: str, wanted: str) -> int:
    """The offset that ``startingOffset`` means."""
    if wanted.isdigit():
        return int(wanted)
    if wanted == "first":
        return _edge(link, queue, "first", 1)[0]
    first, after = _edge(link, queue, "last", _CHUNK)
    return first if wanted == "last" else after


def stream_weight(link: BlockingConnection, queue: str, at: int) -> tuple[int, int]:
    """How many messages from an offset on were looked at, and the octets of their bodies."""
    tap = link.begin_channel(StreamTap)
    tap.start(queue, at, _LOOKED_AT)
    _listen(tap, lambda: bool(tap.offsets), _ANSWER_S)
    tap.close()
    return len(tap.offsets), tap.took.body_bytes


def _edge(link: BlockingConnection, queue: str, where: str, window: int) -> tuple[int, int]:
    """The first offset that comes and the one behind the last; (0, 0) of an empty stream."""
    tap = link.begin_channel(StreamEdge)
    tap.start(queue, where, window)
    _answer(tap, lambda: tap.began, queue)
    _listen(tap, lambda: tap.first is not None, _EMPTY_S)
    if tap.first is not None and window > 1:
        tap.ask(queue)
        _listen(tap, lambda: False, _QUIET_S)
        _answer(tap, lambda: tap.answered, queue)
    tap.close()
    return (tap.first, tap.end) if tap.first is not None else (0, 0)


def _answer(tap: StreamTap, done: Callable[[], bool], queue: str) -> None:
    if not _listen(tap, done, _ANSWER_S):
        raise TimeoutError(f"stream '{queue}' does not answer")


def _listen(tap: StreamTap, done: Callable[[], bool], timeout_s: float) -> bool:
    """Read until ``done``, but not longer than told; was it?"""
    deadline = time.monotonic() + timeout_s
    while not done() and (left_s := deadline - time.monotonic()) > 0:
        tap.connection.pump(left_s)
        _check(tap)
    return done()


def _check(tap: StreamTap) -> None:
    if not tap.is_open:
        raise tap.refusal or ConnectionLost(tap.connection.address, "the channel was closed")


def stream_rows(options: SourceOptions, ranges: Iterable[Range]) -> Iterator[pa.RecordBatch]:
    """The rows of ranges of streams, each from and to an offset."""
    connect = partial(BlockingConnection.open, options.endpoints, name="warren spark")
    for wanted in ranges:
        with connect() as link:
            yield from _rows(link, wanted, options.drain_timeout_s)


def _rows(link: BlockingConnection, wanted: Range, timeout_s: float) -> Iterator[pa.RecordBatch]:
    tap = link.begin_channel(StreamTap)
    tap.start(wanted.queue, wanted.start, _WINDOW)
    at = wanted.start
    deadline = time.monotonic() + timeout_s
    while at < wanted.end:
        if link.pump(max(0.001, deadline - time.monotonic())):
            deadline = time.monotonic() + timeout_s
        elif time.monotonic() > deadline:
            raise TimeoutError(f"stream '{wanted.queue}' gave nothing at offset {at}")
        _check(tap)
        if not tap.offsets or (tap.offsets[-1] + 1 < wanted.end and len(tap.offsets) < _PART):
            continue
        batch, offsets = _batch(tap, wanted)
        missing = _first_missing(at, offsets)
        if missing < min(wanted.end, offsets[-1]):
            # RabbitMQ uses up an offset of its own where a segment of the log begins.
            head = stream_start(link, wanted.queue, "first")
            if head > missing:
                raise OffsetGone(wanted.queue, missing, head)
        at = offsets[-1] + 1
        yield from slices(batch)


def _first_missing(at: int, offsets: list[int]) -> int:
    """The first offset from ``at`` on that did not come."""
    if offsets[0] == at and offsets[-1] - at + 1 == len(offsets):
        return offsets[-1] + 1
    for offset in offsets:
        if offset > at:
            break
        at = max(at, offset + 1)
    return at


def _batch(tap: StreamTap, wanted: Range) -> tuple[pa.RecordBatch, list[int]]:
    """What came, without what lies before or behind the range, and all offsets seen."""
    took, offsets = tap.take()
    batch = to_batch(took, wanted.queue, 0, int(time.time() * 1e6))
    batch = batch.set_column(1, batch.schema.field(1), pa.array(offsets, pa.int64()))
    inside = [wanted.start <= offset < wanted.end for offset in offsets]
    return batch.filter(pa.array(inside)), offsets
