"""What a ledger keeps of earlier batch reads, for one that begins with it (``replay``)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from warren.errors import LedgerPruned
from warren.spark.ledger.ledger import Ledger
from warren.spark.portions import Portions, slices


@dataclass(frozen=True, slots=True)
class Kept:
    """Segments of a queue that were there when the read was planned."""

    queue: str
    starts: tuple[int, ...]
    #: Rows from this offset on, and none of them may be missing; None: whatever is there.
    since: int | None


def kept_of(
    ledger: Ledger, queue: str, starts: Sequence[int], *, end: int, since: int | None
) -> Kept | None:
    """What to begin with, of segments of which the last ends at ``end``; None if there is nothing.

    Raises LedgerPruned if the ledger has forgotten the row at ``since``.
    """
    if since is None:
        return Kept(queue, tuple(starts), None) if starts else None
    if since >= end:
        return None
    first = bisect_right(starts, since) - 1
    if first < 0:
        raise LedgerPruned(ledger.place, queue, since)
    return Kept(queue, tuple(starts[first:]), since)


def kept_rows(ledger: Ledger, kept: Sequence[Kept]) -> Iterator[pa.RecordBatch]:
    """Their rows; raises LedgerPruned if some are gone since."""
    portions = Portions()
    for each in kept:
        at = each.since
        for start in each.starts:
            segment = ledger.read(each.queue, start)
            if segment is None or (at is not None and start > at):
                raise LedgerPruned(ledger.place, each.queue, each.since)
            if at is None or start >= at:
                yield from portions.add(segment)
            else:
                yield from portions.rest()
                offsets = segment.batch.column("offset")
                yield from slices(segment.batch.filter(pc.greater_equal(offsets, at)))
            at = None if at is None else max(at, segment.end)
    yield from portions.rest()
