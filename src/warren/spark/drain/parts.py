"""How many messages of a queue are taken at once: parts that fit into memory."""

from __future__ import annotations

from warren.spark.drain.job import FIRST_PART
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.segment import Segment

#: What a message of a queue weighed lately, by ledger and queue: for this process's next tasks.
_WEIGHTS: dict[tuple[str, str], int] = {}
_MOST_WEIGHTS = 10_000


class Parts:
    """Goes by what messages weighed lately."""

    def __init__(self, ledger: Ledger, most: int) -> None:
        self._ledger = ledger
        self._most = most

    def first(self, queue: str) -> int:
        """Messages of a queue of which nothing was read yet in this task."""
        mean = _WEIGHTS.get((self._ledger.place, queue))
        return self._of(mean) if mean else min(FIRST_PART, self._most)

    def after(self, segment: Segment) -> int:
        """Messages to take next, behind this segment."""
        rows = segment.rows
        if not rows:
            return self.first(segment.queue)
        mean = max(1, segment.octets // rows)
        if len(_WEIGHTS) >= _MOST_WEIGHTS:
            _WEIGHTS.clear()
        _WEIGHTS[self._ledger.place, segment.queue] = mean
        return self._of(mean)

    def _of(self, mean: int) -> int:
        return max(1, min(self._most, self._ledger.files.segment_bytes // mean))
