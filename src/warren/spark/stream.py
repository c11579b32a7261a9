"""Streams: the broker keeps what was read, so its own offsets do, and no ledger is needed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa

from warren.client.blocking import BlockingConnection
from warren.client.blocking_stream import StreamEdge, StreamTap
from warren.errors import (
    ConnectionLost,
    NotFound,
    OffsetGone,
    PreconditionFailed,
    Unavailable,
)
from warren.spark.deliveries import to_batch
from warren.spark.drain.job import Range
from warren.spark.options import SourceOptions
from warren.spark.portions import slices
from warren.spark.task_connection import BROKEN, RECONNECT_S, TaskConnection

log = logging.getLogger(__name__)

STREAM = "stream"
#: What is logged of one that may go.
GONE = "stream '%s' is gone, and with it what was still to be read"
_WINDOW = 2_000
#: AMQP's prefetch has 16 bits, and so has the number of messages in a chunk of RabbitMQ's log.
_CHUNK = 65_535
#: The most messages that are weighed.
_LOOKED_AT = 50
#: Messages and octets that become one batch, about: Arrow takes 2 GiB.
_PART = 20_000
_PART_BYTES = 32 << 20
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
    if tap.cancelled is not None:  # whether it is gone is told to who asks for it again
        raise ConnectionLost(tap.connection.address, "the broker has ended the reading")
    if tap.is_open:
        return
    if tap.refusal is None or isinstance(tap.refusal, PreconditionFailed):
        # RabbitMQ refuses so while it starts: "does not have a running replica" yet.
        reason = str(tap.refusal or "the channel was closed")
        raise ConnectionLost(tap.connection.address, reason)
    raise tap.refusal


def stream_rows(
    options: SourceOptions, ranges: Iterable[Range], *, reconnect_s: float = RECONNECT_S
) -> Iterator[pa.RecordBatch]:
    """The rows of ranges of streams, each from and to an offset, over one connection."""
    # Nobody sends heartbeats while Spark is busy with what it was given.
    endpoints = [endpoint.but(heartbeat_s=0) for endpoint in options.endpoints]
    connect = partial(BlockingConnection.open, endpoints, name="warren spark")
    connection = TaskConnection(connect, reconnect_s)
    try:
        for wanted in ranges:
            yield from _rows(connection, wanted, options)
    finally:
        connection.close()


def _rows(
    connection: TaskConnection, wanted: Range, options: SourceOptions
) -> Iterator[pa.RecordBatch]:
    """The rows of one range; after a lost connection it goes on where it was."""
    at = wanted.start
    while at < wanted.end:
        try:
            for batch, behind in _parts(connection.link, wanted, at, options.drain_timeout_s):
                at = behind
                connection.works()
                yield from slices(batch)
        except BROKEN as error:
            if not connection.lost(error):
                raise
        except Unavailable:
            raise
        except NotFound:
            options.require_there(wanted.queue)
            log.warning(GONE, wanted.queue)
            return


def _parts(
    link: BlockingConnection, wanted: Range, at: int, timeout_s: float
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """A range's rows from ``at`` on, in parts, each with the offset behind it."""
    tap = link.begin_channel(StreamTap)
    tap.start(wanted.queue, at, min(_WINDOW, wanted.end - at))
    deadline = time.monotonic() + timeout_s
    while at < wanted.end:
        if link.pump(max(0.001, deadline - time.monotonic())):
            deadline = time.monotonic() + timeout_s
        elif time.monotonic() > deadline:
            raise TimeoutError(f"stream '{wanted.queue}' gave nothing at offset {at}")
        _check(tap)
        if not _is_part(tap, wanted.end):
            continue
        batch, offsets = _batch(tap, wanted.queue, at, wanted.end)
        missing = _first_missing(at, offsets)
        if missing < min(wanted.end, offsets[-1]):
            # RabbitMQ uses up an offset of its own where a segment of the log begins.
            head = stream_start(link, wanted.queue, "first")
            if head > missing:
                raise OffsetGone(wanted.queue, missing, head)
        at = offsets[-1] + 1
        if at >= wanted.end:
            tap.stop()
        yield batch, at
        deadline = time.monotonic() + timeout_s  # however long Spark took


def _is_part(tap: StreamTap, end: int) -> bool:
    """Has enough come, or all there is to come?"""
    if not tap.offsets:
        return False
    enough = len(tap.offsets) >= _PART or tap.took.octets >= _PART_BYTES
    return enough or tap.offsets[-1] + 1 >= end


def _first_missing(at: int, offsets: list[int]) -> int:
    """The first offset from ``at`` on that did not come."""
    if offsets[0] == at and offsets[-1] - at + 1 == len(offsets):
        return offsets[-1] + 1
    for offset in offsets:
        if offset > at:
            break
        at = max(at, offset + 1)
    return at


def _batch(tap: StreamTap, queue: str, at: int, end: int) -> tuple[pa.RecordBatch, list[int]]:
    """What came, without what lies before ``at`` or behind the range, and all offsets seen."""
    took, offsets = tap.take()
    batch = to_batch(took, queue, 0, int(time.time() * 1e6))
    batch = batch.set_column(1, batch.schema.field(1), pa.array(offsets, pa.int64()))
    inside = [at <= offset < end for offset in offsets]
    return batch.filter(pa.array(inside)), offsets
