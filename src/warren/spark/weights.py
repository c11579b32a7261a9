"""What a message of each queue weighs, about: for a limit of octets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from warren.spark.ledger.ledger import Ledger

#: What a message is taken to weigh before any was read.
_UNKNOWN_BYTES = 4096


class Weights:
    """Means by queue, each with the offset it was found at: nothing is weighed twice."""

    def __init__(self) -> None:
        self._means: dict[str, tuple[int, int]] = {}

    def of_queues(self, ledger: Ledger, queues: Iterable[str]) -> None:
        """Weigh what was read last of each; of a queue that gave nothing, the last that it gave."""
        shelves = ledger.shelves()
        for queue in queues:
            starts = shelves.of(queue).starts
            if not starts or self._is_known(queue, starts[-1]):
                continue
            segment = ledger.read(queue, starts[-1])
            if segment is not None:
                octets = int(segment.batch.column("body").nbytes)
                self._learn(queue, starts[-1], segment.rows, octets)

    def of_streams(
        self, positions: Mapping[str, int], weigh: Callable[[str, int], tuple[int, int]]
    ) -> None:
        """Weigh what comes next in each; ``weigh`` says of how many messages, and their octets."""
        for stream, position in positions.items():
            if not self._is_known(stream, position):
                self._learn(stream, position, *weigh(stream, position))

    def means(self, queues: Iterable[str]) -> dict[str, int]:
        """Of each queue; one that is not known weighs what the others do."""
        wanted = list(queues)
        known = [self._means[queue][1] for queue in wanted if self._knows(queue)]
        other = sum(known) // len(known) if known else _UNKNOWN_BYTES
        return {queue: self._means[queue][1] if self._knows(queue) else other for queue in wanted}

    def _knows(self, queue: str) -> bool:
        return queue in self._means and self._means[queue][1] > 0

    def _is_known(self, queue: str, at: int) -> bool:
        return queue in self._means and self._means[queue][0] == at

    def _learn(self, queue: str, at: int, count: int, octets: int) -> None:
        before = self._means.get(queue, (0, 0))[1]
        self._means[queue] = (at, max(1, octets // count) if count else before)
