"""A queue that is not ours, or keeps silent: how long it is waited for, and what is done then."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from warren.client.blocking_reader import EXCLUSIVE, SINGLE_ACTIVE, Tap
from warren.errors import (
    AccessRefused,
    NotFound,
    PreconditionFailed,
    QueueBusy,
    QueueUnavailable,
    ReadRefused,
    Unavailable,
)
from warren.errors.refusals import is_no_permission
from warren.spark.drain.job import Job

log = logging.getLogger(__name__)

#: A queue that somebody else holds is asked for again after so long.
_RETRY_S = 0.05
_NO_ANSWER = "the broker answers, and can't say that the queue has read an acknowledgement"


class Patience:
    """With who holds a queue, for ``busy_s``, and with a node that is down, for ``away_s``.

    Where all rows of a range are in the ledger, and only a segment in doubt is to be cleared up,
    that is left to the next task; else the task fails.
    """

    def __init__(self, busy_s: float, away_s: float) -> None:
        self._busy_s, self._away_s = busy_s, away_s

    def is_missing(self, job: Job, tap: Tap) -> bool:
        """Why a channel was closed: True if there is no such queue, else it is tried again.

        Raises what can't be waited for.
        """
        refusal = tap.refusal
        if tap.failure is not None and not tap.connection.is_open:
            raise tap.failure  # with all the others
        if isinstance(refusal, Unavailable):  # its node is down: it comes back
            job.wait_for_node(refusal, time.monotonic())
            return False
        if isinstance(refusal, PreconditionFailed) and "timed out" in refusal.text:
            job.lose()  # Spark was busy for longer than the broker waits for acknowledgements
            job.connected_again(restarted=False)
            return False
        job.tap = None
        if is_no_permission(refusal):
            raise ReadRefused(str(refusal))
        if isinstance(refusal, AccessRefused) and job.mode == EXCLUSIVE:
            self._is_held(job, tap)
        elif refusal is not None and not isinstance(refusal, NotFound):
            raise refusal
        return isinstance(refusal, NotFound)

    def _is_held(self, job: Job, tap: Tap) -> None:
        # RabbitMQ refuses the exclusive flag on a queue with a single active consumer, too:
        # refused by a queue that has no consumer, that is what it must be.
        job.refused_alone += 1 if tap.others == 0 else 0
        if job.refused_alone >= 2:
            job.mode = SINGLE_ACTIVE
        now = time.monotonic()
        job.busy_since = job.busy_since or now
        job.retry_at = now + _RETRY_S
        self.with_others(job, now - job.busy_since)

    def with_others(self, job: Job, waited_s: float) -> None:
        """Raises QueueBusy when somebody else has held the queue for too long."""
        if waited_s <= self._busy_s:
            return
        if not job.is_safe:
            raise QueueBusy(job.queue, self._busy_s)
        log.warning("queue %s is busy; its segment stays in doubt for now", job.queue)
        job.give_up_clearing()

    def with_answer(self, job: Job, now: float) -> None:
        """Raises QueueUnavailable when it was not said for too long that an acknowledgement was
        read: of a quorum queue without a majority of its nodes the broker can't say it."""
        if now - job.asked_at <= self._away_s:
            return
        if not job.is_safe:
            raise QueueUnavailable(job.queue, self._away_s, _NO_ANSWER)
        log.warning("queue %s does not answer; its segment stays in doubt for now", job.queue)
        job.give_up_clearing()

    def with_nodes(self, left: Sequence[Job], now: float) -> None:
        """Raises QueueUnavailable when queues alone are left whose nodes stay down for too long."""
        if not all(job.away for job in left):
            return
        for job in left:
            assert job.away is not None
            if now - job.away.since <= self._away_s:
                continue
            if not job.is_safe:
                raise QueueUnavailable(job.queue, self._away_s, job.away.reason)
            log.warning("queue %s is not there; its segment stays in doubt for now", job.queue)
            job.give_up_clearing()
