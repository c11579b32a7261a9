"""What the ledger holds already of what the broker gives out, and when a doubt is over."""

from __future__ import annotations

from collections.abc import Sequence

from warren.client.blocking_reader import SINGLE_ACTIVE, Deliveries, Tap
from warren.spark.deliveries import to_batch
from warren.spark.drain.job import Job, keys_of_redelivered
from warren.spark.ledger.match import Key, Match, keys_of, match_in_doubt, match_settled
from warren.spark.ledger.segment import Segment


def held_already(job: Job, took: Deliveries) -> tuple[list[int], tuple[bool, ...], bool]:
    """Which messages are in the ledger, which segments in doubt came back whole, and whether what
    came tells that no more of them will."""
    keys = keys_of_redelivered(job.queue, took)
    found = _match(job, keys, job.resolving)
    known = set(found.dropped)
    if job.looking:
        left = [index for index in range(len(keys)) if index not in known]
        back = [keys[index] for index in left]
        again = match_settled(back, job.recent, shortest=job.least_run(back))
        known.update(left[index] for index in again)
    return sorted(took.redelivered[index] for index in known), found.returned_whole, found.passed


def is_doubted(job: Job, took: Deliveries) -> bool:
    """Is here what a segment holds that could not be cleared up, as it came too late for that or
    behind messages of a higher priority? Then it is cleared up first."""
    if not job.doubted:
        return False
    found = _match(job, keys_of_redelivered(job.queue, took), job.doubted)
    if not found.dropped or not job.may_retake():
        return False
    job.clear_again()
    return True


def _match(job: Job, keys: Sequence[Key], segments: Sequence[Segment]) -> Match:
    held = [keys_of(segment.batch) for segment in segments]
    # A classic queue puts what it takes back where it was: in front of all that was never taken,
    # behind what was taken before it and is forgotten.
    return match_in_doubt(keys, held, in_place=not job.counts, forgotten=job.recent)


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
