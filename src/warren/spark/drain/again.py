"""Messages that come again while a queue is drained.

A quorum queue takes back what it gave out when its leader loses sight of the node we are connected
to, and gives it out again, flagged, on the same channel when it sees it again: our connection
lives, new tags come, and acknowledgements of the old ones are void (tried on RabbitMQ 3.10; a new
leader alone, elected or transferred, takes nothing back). Classic queues never do. So what is
flagged is looked at also while no connection is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from warren.client.blocking_reader import SINGLE_ACTIVE, Deliveries, Tap
from warren.spark.drain.job import MOST_UNACKED, Job, Known
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.match import (
    Key,
    came_twice,
    delivery_counts,
    keys_of,
    match_settled,
    with_ids,
)

#: What is compared weighs so many octets, about: it is all in memory.
_MOST_BYTES = 256 << 20
#: Queues of a task that are compared with settled segments at the same time.
_MOST_LOOKING = 8


class Again:
    """Tells messages that the ledger holds, or that are here twice, from new ones."""

    def __init__(self, ledger: Ledger, retention_s: float) -> None:
        self._ledger = ledger
        self._retention_s = retention_s

    def has_to_wait(self, job: Job, tap: Tap, jobs: Sequence[Job]) -> bool:
        """Are enough others being compared with settled segments, as this one is to be?

        After a restart that may be all queues of a task.
        """
        if not job.suspicious or job.looking or not tap.took.redelivered:
            return False
        at_it = [other for other in jobs if other.looking and not (other.away or other.busy_since)]
        return len(at_it) >= _MOST_LOOKING

    def comes_again(self, job: Job, tap: Tap, batch: pa.RecordBatch) -> bool:
        """Before anything is written: has the broker forgotten, or taken back, something?"""
        if job.had_fresh and job.mode == SINGLE_ACTIVE:
            job.suspicious = True  # had by nobody but us
        return self.is_not_all(job, tap, batch) or self._known_by_id(job, tap.took, batch)

    def is_not_all(self, job: Job, tap: Tap, batch: pa.RecordBatch) -> bool:
        """Must the window be taken once more, because it holds too much or too little?

        If not, what was taken is in the order of the queue now.
        """
        if self._retake(job, tap, batch) or self._is_part(job, tap, batch):
            return True
        if not job.suspicious or job.looking:
            return False
        recent = self._recent(job)
        job.suspicious = bool(recent)
        if recent:
            job.look(recent)
        return bool(recent)

    def _is_part(self, job: Job, tap: Tap, batch: pa.RecordBatch) -> bool:
        """Of a quorum queue, is here only a part of what it took back?

        It puts what it takes back behind what it took back before, and counts: who takes a part of
        that and gives it back has changed the order (a classic queue puts it where it was). Then
        those come first that were given out most often, for it is the first that were taken; and
        only who has all that was taken back, and so something behind it, has those.
        """
        counts = delivery_counts(batch) if job.counts else []
        if not any(counts):
            return False
        job.quorum = True
        full = len(tap.took.redelivered) == len(tap.took) >= tap.window
        if job.unsure and full and not tap.exhausted and tap.window < MOST_UNACKED:
            job.more = 2 * tap.window
            return True
        order = sorted(range(len(counts)), key=lambda index: -counts[index])
        if order != list(range(len(counts))):
            tap.rearrange(order)
        return False

    def _retake(self, job: Job, tap: Tap, batch: pa.RecordBatch) -> bool:
        """Is a message here twice? Then all go back, and are taken once more."""
        took = tap.took
        if len(took) > tap.window:  # more than the window holds
            return True
        if len(set(took.bodies)) == len(took):
            return False
        return job.counts and came_twice(batch) and job.may_retake()

    def _known_by_id(self, job: Job, took: Deliveries, batch: pa.RecordBatch) -> bool:
        """Are messages with ids here that the youngest settled segments hold?"""
        flagged = pa.array(took.redelivered, pa.int64())
        ids = batch.column("message_id").take(flagged)
        if ids.null_count == len(ids):
            return False
        held = [job.known[start].ids for start in self._youngest(job)]
        if not held or not pc.any(pc.is_in(ids, value_set=pa.concat_arrays(held))).as_py():
            return False
        recent = with_ids(self._recent(job))
        if not match_settled(keys_of(batch.take(flagged)), recent) or not job.may_retake():
            return False
        job.look(recent, at_least=len(took))
        return True

    def _recent(self, job: Job) -> list[Key]:
        """The rows of the youngest settled segments, oldest first."""
        held = (self._ledger.read(job.queue, start) for start in reversed(self._youngest(job)))
        return [key for segment in held if segment is not None for key in keys_of(segment.batch)]

    def _youngest(self, job: Job) -> list[int]:
        """Where the youngest settled segments start, newest first."""
        found: list[int] = []
        looked_at: dict[int, Known] = {}
        newest: float | None = None
        doubtful = {segment.start for segment in job.resolving}
        left = MOST_UNACKED - sum(segment.rows for segment in job.resolving)
        room = _MOST_BYTES
        for start in reversed(self._ledger.shelves().of(job.queue).starts):
            about = None if start in doubtful else self._about(job, start)
            if about is None:
                continue
            looked_at[start] = about
            newest = newest or about.written_at
            left -= about.rows
            if newest - about.written_at > self._retention_s or left < 0 or room <= 0:
                break
            room -= about.octets
            found.append(start)
        job.known = looked_at  # those before are too old now
        return found

    def _about(self, job: Job, start: int) -> Known | None:
        if start not in job.known:
            segment = self._ledger.read(job.queue, start)
            if segment is None:
                return None
            ids = segment.batch.column("message_id").drop_null()
            job.known[start] = Known(segment.rows, segment.octets, segment.written_at, ids)
        return job.known[start]
