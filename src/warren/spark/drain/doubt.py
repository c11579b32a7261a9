"""When a segment in doubt is known to be settled."""

from __future__ import annotations

from warren.client.blocking_reader import SINGLE_ACTIVE, Tap
from warren.spark.deliveries import to_batch
from warren.spark.drain.job import Job
from warren.spark.ledger.segment import Segment


def none_left(job: Job, tap: Tap) -> bool:
    """True if what has not come back will not: the acknowledgement had been read."""
    took = tap.took
    if job.mode == SINGLE_ACTIVE and not len(took):
        # We may be waiting behind somebody who holds them. No clock tells: a broker may never
        # find out that he is dead, and the segment has the time of another machine.
        return False
    fresh = set(range(len(took))).difference(took.redelivered)
    if tap.exhausted or not fresh:
        return tap.exhausted
    # On a priority queue, fresh messages may have overtaken those that came back.
    priorities = to_batch(took, job.queue, 0, 0).column("priority").to_pylist()
    lowest = min(priorities[index] or 0 for index in fresh)
    held = min((_lowest_priority(segment) for segment in job.resolving), default=0)
    return lowest <= held


def _lowest_priority(segment: Segment) -> int:
    return min(
        (priority or 0 for priority in segment.batch.column("priority").to_pylist()), default=0
    )
