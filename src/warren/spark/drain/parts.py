"""How many messages of a queue are taken at once, in parts that fit into memory, and written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warren.client.blocking_reader import Tap
from warren.spark.drain.job import FIRST_IN_TURNS, FIRST_PART, Job
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.segment import Segment

#: Octets in one segment, and in all that a task has not written, at the most.
MOST_BYTES = 256 << 20
#: What a message of a queue weighed lately, by ledger and queue: for this process's next tasks.
_WEIGHTS: dict[tuple[str, str], int] = {}
_MOST_WEIGHTS = 10_000
#: Full windows wait for others, to be written together, until they are so many octets, or so long.
_TOGETHER_BYTES = 4 << 20
_TOGETHER_S = 0.05
#: A window whose first messages may be yet to come may hold so many times as much as all others.
_WAITING_TIMES = 4
#: Messages of a queue's first part at least, however many are read beside it.
_LEAST_FIRST = 20


class Parts:
    """Goes by what messages weighed lately."""

    def __init__(self, ledger: Ledger, most: int) -> None:
        self._ledger = ledger
        self._most = most
        #: Queues that are read at the same time.
        self.beside = 1

    def first(self, queue: str, *, in_turns: bool = False) -> int:
        """Messages of a queue of which nothing was read yet in this task.

        ``in_turns``: it may put what comes back out of its order, and must be taken back whole.
        """
        mean = _WEIGHTS.get((self._ledger.place, queue))
        if mean:
            return self._of(mean)
        # Of unknown weight, many together must not be more than one alone.
        most = FIRST_IN_TURNS if in_turns else FIRST_PART
        return min(max(_LEAST_FIRST, most // self.beside), self._most)

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
        octets = min(self._ledger.files.segment_bytes, MOST_BYTES // self.beside)
        return max(1, min(self._most, octets // mean))


def held_bytes(jobs: Iterable[Job]) -> int:
    """Octets in all windows, also in those that are being acknowledged."""
    return sum(job.tap.took.octets for job in jobs if job.tap is not None)


def overflow(jobs: Iterable[Job], most_bytes: int) -> None:
    """If all windows together hold more than that, the heaviest is to be written as it is, or
    compared if it is one that is compared.

    Not one whose first messages may be yet to come, unless it alone holds far more.
    """
    far_more = most_bytes * _WAITING_TIMES
    held = [
        (job.tap.took.octets, job)
        for job in jobs
        if job.tap is not None and (job.taking or job.has_seen_all or _is_endless(job, far_more))
    ]
    if sum(octets for octets, _ in held) > most_bytes:
        may = [each for each in held if each[0] > far_more or not each[1].waits_for_first]
        if may:
            max(may, key=lambda each: each[0])[1].overflows = True


def _is_endless(job: Job, most_bytes: int) -> bool:
    """Is so much compared with the ledger, and nothing new among it? All that a killed broker had
    is flagged, and what the ledger has of it is the first."""
    return job.comparing and job.tap is not None and job.tap.took.octets > most_bytes


def is_time_to_write(full: Sequence[tuple[Job, Tap]], left: Iterable[Job], now: float) -> bool:
    """Are full windows to be written down, or to wait for those that fill?"""
    if sum(job.taking for job, _ in full) == sum(job.taking for job in left):
        return True
    heavy = sum(tap.took.octets for _, tap in full) >= _TOGETHER_BYTES
    if heavy or any(job.overflows for job, _ in full):
        return True
    for job, _ in full:
        job.full_at = job.full_at or now
    return any(now - job.full_at >= _TOGETHER_S for job, _ in full)
