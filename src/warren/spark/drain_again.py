"""Messages that come again while a queue is drained.

A quorum queue takes back what it gave out when its leader loses sight of the node we are connected
to, and gives it out again, flagged, on the same channel when it sees it again: our connection
lives, new tags come, and acknowledgements of the old ones are void (tried on RabbitMQ 3.10; a new
leader alone, elected or transferred, takes nothing back). Classic queues never do. So what is
flagged is looked at also while no connection is lost.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from warren.client.blocking_reader import SINGLE_ACTIVE, Deliveries, Tap
from warren.spark.drain_job import MOST_UNACKED, Job, Known
from warren.spark.ledger import Ledger
from warren.spark.ledger_match import Key, came_twice, keys_of, match_settled, with_ids

#: For so long an acknowledgement may be on its way through a cluster.
_UNREAD_S = 5.0


class Again:
    """Tells messages that the ledger holds, or that are here twice, from new ones."""

    def __init__(self, ledger: Ledger, retention_s: float) -> None:
        self._ledger = ledger
        self._retention_s = retention_s

    def comes_again(self, job: Job, tap: Tap, batch: pa.RecordBatch) -> bool:
        """Before anything is written: has the broker forgotten, or taken back, something?"""
        if job.had_fresh and job.mode == SINGLE_ACTIVE:
            job.suspicious = True  # had by nobody but us
        if job.suspicious:
            recent = self._recent(job)
            job.suspicious = bool(recent)
            if recent:
                job.look(recent)
                return True
        return self.retake(job, tap, batch) or self._known_by_id(job, tap.took, batch)

    def prepare(self, job: Job) -> None:
        """The broker may have been restarted: more may come back than is in doubt."""
        if job.resolving and not job.looking:
            recent = self._recent(job)
            if recent:
                job.look(recent)
        if job.mode == SINGLE_ACTIVE:
            unread = sum(job.known[start].rows for start in self._youngest(job, _UNREAD_S))
            job.give_back(max(job.given_back, job.wanted + unread))

    def retake(self, job: Job, tap: Tap, batch: pa.RecordBatch) -> bool:
        """Is a message here twice? Then all go back, and are taken once more."""
        took = tap.took
        if len(took) > tap.window:  # more than the window holds
            return True
        if len(set(took.bodies)) == len(took):
            return False
        return came_twice(batch, took.redelivered) and job.may_retake()

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

    def _youngest(self, job: Job, within_s: float | None = None) -> list[int]:
        """Where the youngest settled segments start, newest first."""
        within_s = self._retention_s if within_s is None else within_s
        found: list[int] = []
        newest: float | None = None
        doubtful = {segment.start for segment in job.resolving}
        left = MOST_UNACKED - sum(segment.rows for segment in job.resolving)
        for start in reversed(self._ledger.shelves().of(job.queue).starts):
            about = None if start in doubtful else self._about(job, start)
            if about is None:
                continue
            newest = newest or about.written_at
            left -= about.rows
            if newest - about.written_at > within_s or left < 0:
                break
            found.append(start)
        return found

    def _about(self, job: Job, start: int) -> Known | None:
        if start not in job.known:
            segment = self._ledger.read(job.queue, start)
            if segment is None:
                return None
            ids = segment.batch.column("message_id").drop_null()
            job.known[start] = Known(segment.rows, segment.written_at, ids)
        return job.known[start]
