"""The order in which a task hands out the segments of its queues."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from warren.errors import LedgerPruned
from warren.spark.drain.job import Range
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.segment import Segment

#: Octets of segments that wait in memory for their turn. More are read again when it comes.
_MOST_BYTES = 128 << 20


class Turns:
    """The first segment of each queue, then the second of each, and so on.

    A drain has segments in the order in which brokers and disks were ready, a task that is tried
    again finds them in the ledger queue by queue, and may have to drain the rest. What numbers the
    rows behind the source, as the sink does for its message ids, must find them in one order.
    """

    def __init__(
        self, ranges: Sequence[Range], ledger: Ledger, most_bytes: int = _MOST_BYTES
    ) -> None:
        self._ledger = ledger
        self._most_bytes = most_bytes
        self._ends = {wanted.queue: wanted.end for wanted in ranges if wanted.start < wanted.end}
        #: Whose turn it is, and then whose.
        self._round = deque(self._ends)
        #: By queue, what waits for its turn: whole, or its start if there is no room for it.
        self._waiting: dict[str, deque[Segment | int]] = {queue: deque() for queue in self._ends}
        self._octets = 0

    def order(self, segments: Iterable[Segment]) -> Iterator[Segment]:
        """The same segments: all of a range, those of one queue in their order."""
        for segment in segments:
            self._wait(segment)
            yield from self._due()
        if self._round:
            raise AssertionError(f"no more segments came of {', '.join(self._round)}")

    def _wait(self, segment: Segment) -> None:
        waiting = self._waiting[segment.queue]
        is_next = self._round[0] == segment.queue and not waiting
        if is_next or self._octets + segment.octets <= self._most_bytes:
            self._octets += segment.octets
            waiting.append(segment)
        else:
            waiting.append(segment.start)

    def _due(self) -> Iterator[Segment]:
        while self._round and self._waiting[self._round[0]]:
            queue = self._round.popleft()
            segment = self._take(queue)
            if segment.end < self._ends[queue]:
                self._round.append(queue)
            yield segment

    def _take(self, queue: str) -> Segment:
        waited = self._waiting[queue].popleft()
        if isinstance(waited, Segment):
            self._octets -= waited.octets
            return waited
        segment = self._ledger.read(queue, waited)
        if segment is None:
            raise LedgerPruned(self._ledger.place, queue)
        return segment
