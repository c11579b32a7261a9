"""How an attempt finds out that it slept while others did its work.

What is in the queue by then is not for its range: Spark is through with that, and the ledger may
have forgotten it. So the ledger is looked at before anything is taken, and once more before
anything is acknowledged if the last look is too old.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warren.clock import Moment, moment, seconds_since
from warren.errors import LedgerGap
from warren.spark.drain.job import Job
from warren.spark.ledger.ledger import Ledger, Shelf, Shelves
from warren.spark.ledger.segment import Segment

#: A look at what the ledger keeps counts for so long, while the connection lives.
_COUNTS_S = 10.0


class Looks:
    """When it was last seen, of each queue, that the ledger keeps what its range begins with.

    What another attempt has written since then is there for as long as segments are kept.
    """

    def __init__(self, ledger: Ledger, retention_s: float) -> None:
        self._ledger = ledger
        self._count_s = min(_COUNTS_S, retention_s / 2)

    def looked(self, jobs: Iterable[Job], shelves: Shelves, begun: Moment) -> None:
        """At a list that was begun then: what came while it was made may be missing.

        It counts for all that it has good news of: with many queues it may be long.
        """
        for job in jobs:
            if not lacks(job, shelves.of(job.queue)):
                job.looked_at = begun

    def forget(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            job.looked_at = None

    def are_due(self, jobs: Iterable[Job]) -> bool:
        return any(self._is_due(job) for job in jobs)

    def _is_due(self, job: Job) -> bool:
        if job.looked_at is None:
            return True
        return seconds_since(job.looked_at) > self._count_s

    def require_not_overtaken(
        self, made: Sequence[tuple[Job, Segment]], jobs: Iterable[Job]
    ) -> None:
        """Raises LedgerGap if others went on behind segments that were just made for some of them.

        Those at offsets that are forgotten are taken out again; nothing was acknowledged. Others
        stay: who slept right after making one finds that it counts, and was built upon.
        """
        old = [(job, segment) for job, segment in made if self._is_due(job)]
        if not old:
            return
        begun = moment()
        shelves = self._ledger.shelves()
        for _, segment in old:
            if segment.start in shelves.of(segment.queue).overtaken:
                self._ledger.take_out(segment.queue, segment.start)
        for _, segment in old:
            later = shelves.of(segment.queue).after(segment.start)
            if later is not None:
                raise LedgerGap(self._ledger.place, segment.queue, segment.start, later)
        self.looked(jobs, shelves, begun)


def lacks(job: Job, shelf: Shelf) -> bool:
    """Has the ledger later rows of a queue, and not those that are next?"""
    return job.at < job.range.end and not shelf.has(job.at) and shelf.after(job.at) is not None
