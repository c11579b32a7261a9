"""Rows in batches that are right for Spark: not too large to hold, not too small to be worth it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from warren.spark.ledger.segment import Segment, weigh

#: Octets of a batch at most, about; and of small ones that are put together.
_MOST_BYTES = 8 << 20
_SMALL_BYTES = 1 << 20


def slices(batch: pa.RecordBatch, octets: int | None = None) -> Iterator[pa.RecordBatch]:
    """A batch, of so many octets if that is known, in pieces."""
    rows = batch.num_rows
    if not rows:
        return
    step = max(1, _MOST_BYTES * rows // max(1, octets or weigh(batch)))
    for first in range(0, rows, step):
        yield batch.slice(first, step)


class Portions:
    """Puts the rows of small segments together: a batch costs as much as some thousand rows."""

    def __init__(self) -> None:
        self._held: list[pa.RecordBatch] = []
        self._octets = 0

    def add(self, segment: Segment) -> Iterator[pa.RecordBatch]:
        """What can be handed on now."""
        if segment.octets >= _SMALL_BYTES:
            yield from self.rest()
            yield from slices(segment.batch, segment.octets)
            return
        if segment.rows:
            self._held.append(segment.batch)
            self._octets += segment.octets
        if self._octets >= _SMALL_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What was held back."""
        held, self._held, self._octets = self._held, [], 0
        if held:
            yield held[0] if len(held) == 1 else pa.concat_batches(held)
