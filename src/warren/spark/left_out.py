"""Queues that a batch was planned with, and that the option ``queues`` no longer means.

A batch that Spark has written down is run again until it is done, with all its queues. One that
can't be read, and is taken out of the option for that, must not hold up the others for ever. Where
nothing of its range was taken, nothing was acknowledged (the ledger's third law), so the range can
stay empty: its messages are in the queue. The ledger is told so first, for a batch that is run once
more must have the same rows, whatever the option says by then.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from warren.client.blocking_reader import Deliveries
from warren.spark.deliveries import to_batch
from warren.spark.drain.job import Range
from warren.spark.drain.runs import require_ours
from warren.spark.ledger.ledger import Ledger, Shelf
from warren.spark.ledger.segment import Segment
from warren.spark.portions import Portions

#: How such a range is read: not at all.
LEFT_OUT = "left out"


def is_untouched(ledger: Ledger, shelf: Shelf, queue: str, start: int, end: int) -> bool:
    """Whether nothing of this range was taken, as far as the ledger knows.

    Where it knows of anything from there on, were it a mark without its segment, the drain judges.
    """
    known = {at for at in (*shelf.starts, *shelf.settled) if at >= start}
    if known != {start}:
        return not known
    segment = ledger.read(queue, start)  # left out before, or gone when it was to be read
    return segment is not None and not segment.rows and segment.end == end


def leave_out(ledger: Ledger, ranges: Sequence[Range], run: str) -> Iterator[pa.RecordBatch]:
    """Have these stay empty; the rows of what an attempt that had slept wrote in the meantime."""
    portions = Portions()
    require = partial(require_ours, run=run, place=ledger.place, own_only=False)
    for wanted in ranges:
        queue, at = wanted.queue, wanted.start
        while at < wanted.end:
            for segment in ledger.chain(queue, at, wanted.end, require=require):
                yield from portions.add(segment)
                at = segment.end
            if at < wanted.end:
                empty = to_batch(Deliveries(), queue, at, 0)
                if ledger.write(Segment(queue, at, wanted.end, empty, time.time(), run)):
                    # Attempts that died may have given messages back in any order.
                    ledger.settle(queue, at, unordered=True)
                    at = wanted.end
    yield from portions.rest()
