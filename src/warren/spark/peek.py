"""Looking at the messages of queues, which stay there."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence

import pyarrow as pa

from warren.client.blocking import BlockingConnection
from warren.client.blocking_reader import SINGLE_ACTIVE, Deliveries, Tap
from warren.errors import AccessRefused, QueueBusy, ReadRefused, WarrenError
from warren.errors.refusals import is_no_permission
from warren.spark.deliveries import to_batch
from warren.spark.drain.job import Range
from warren.spark.options import SourceOptions
from warren.spark.portions import slices

log = logging.getLogger(__name__)

#: The most that a queue can be asked to show: AMQP's prefetch has 16 bits.
_MOST_PEEKED = 65_535
#: Octets of bodies and properties of a queue, about: all is held until it goes back.
_MOST_BYTES = 256 << 20
_QUIET_S = 0.05


class Look(Tap):
    """Takes messages until they are too many octets, and lets the rest pass."""

    def __init__(self, connection: BlockingConnection) -> None:
        super().__init__(connection)
        self.run = None  # one by one: each may be the last that there is room for
        self._octets = 0

    @property
    def full(self) -> bool:
        return self._octets >= _MOST_BYTES

    def deliver(
        self,
        consumer_tag: bytes,
        delivery_tag: int,
        redelivered: bool,
        route: bytes,
        properties: bytes,
        body: bytes,
    ) -> None:
        if self.full:
            return
        self._octets += len(body) + len(properties)
        super().deliver(consumer_tag, delivery_tag, redelivered, route, properties, body)


def peek(options: SourceOptions, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
    """Look at the messages of queues; they go back in order, flagged redelivered."""
    for wanted in ranges:
        took = _seen(options, wanted)
        yield from slices(to_batch(took, wanted.queue, 0, int(time.time() * 1e6)))


def _seen(options: SourceOptions, wanted: Range) -> Deliveries:
    with BlockingConnection.open(options.endpoints, name="warren spark peek") as link:
        tap = link.begin_channel(Look)
        tap.start(wanted.queue, wanted.mode, min(_MOST_PEEKED, wanted.end - wanted.start))
        seen, deadline = 0, time.monotonic() + options.drain_timeout_s
        while tap.is_open and not tap.full and not (tap.done and tap.consuming):
            if not link.pump(_QUIET_S):
                tap.ask()
            if len(tap.took) > seen:
                seen, deadline = len(tap.took), time.monotonic() + options.drain_timeout_s
            elif time.monotonic() > deadline:
                break
        if not tap.is_open:
            raise _refused(wanted.queue, tap.refusal)
        tap.close()
    if not len(tap.took) and (not tap.done or (tap.others and wanted.mode == SINGLE_ACTIVE)):
        # They were ready when the read was planned: the active consumer is another.
        raise QueueBusy(wanted.queue, options.drain_timeout_s)
    if tap.full:
        _tell_cut(wanted, tap.took, f"they are {_MOST_BYTES >> 20} MiB already")
    elif len(tap.took) >= _MOST_PEEKED and wanted.end - wanted.start > _MOST_PEEKED:
        _tell_cut(wanted, tap.took, "AMQP has no number for more that are out at once")
    return tap.took


def _tell_cut(wanted: Range, took: Deliveries, why: str) -> None:
    log.warning(
        "of queue '%s' only the first %d messages are shown: %s", wanted.queue, len(took), why
    )


def _refused(queue: str, refusal: WarrenError | None) -> WarrenError:
    if is_no_permission(refusal):
        return ReadRefused(str(refusal))
    if isinstance(refusal, AccessRefused):
        return QueueBusy(queue, 0.0)
    assert refusal is not None
    return refusal
