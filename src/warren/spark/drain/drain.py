"""Draining queues into the ledger: what a task does with its ranges of offsets.

All queues of a task are drained at the same time over one connection, each on a channel of its
own. For each: what the ledger has is handed out again; segments in doubt are cleared up; then
messages are taken, written down, acknowledged, settled and handed out, in parts that fit into
memory. See ``ledger`` for why this is exactly once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa

from warren.client.blocking import BlockingConnection
from warren.client.blocking_reader import SINGLE_ACTIVE, Deliveries, Tap
from warren.clock import Moment, moment
from warren.errors import LedgerGap
from warren.spark.deliveries import to_batch
from warren.spark.drain.again import Again
from warren.spark.drain.doubt import held_already, is_doubted, none_left
from warren.spark.drain.job import Job, Range
from warren.spark.drain.looks import Looks, lacks
from warren.spark.drain.parts import MOST_BYTES, Parts, held_bytes, is_time_to_write, overflow
from warren.spark.drain.patience import Patience
from warren.spark.drain.runs import require_ours
from warren.spark.drain.turns import Turns
from warren.spark.ledger.ledger import Ledger, Settled, Shelf, Shelves
from warren.spark.ledger.segment import Segment
from warren.spark.ledger.writers import SegmentWriters
from warren.spark.options import SourceOptions
from warren.spark.portions import Portions
from warren.spark.task_connection import BROKEN, RECONNECT_S, TaskConnection

log = logging.getLogger(__name__)

#: Queues drained at the same time over one connection.
_AT_ONCE = 100
_MOST_BYTES = MOST_BYTES
_QUIET_S = 0.02

Probe = Callable[[str, str], None]


def _no_probe(point: str, queue: str) -> None:
    """Tests stop the world here."""


class Drain:
    """One task's work; ``rows`` is the whole of it."""

    def __init__(
        self,
        options: SourceOptions,
        ledger: Ledger,
        *,
        run: str = "",
        own_only: bool = False,
        retried: bool = True,
        connect: Callable[[], BlockingConnection] | None = None,
        probe: Probe = _no_probe,
        busy_s: float = 30.0,
        reconnect_s: float = RECONNECT_S,
    ) -> None:
        self._options = options
        self._ledger = ledger
        self._again = Again(ledger, options.retention_s)
        self._parts = Parts(ledger, options.prefetch)
        self._run = run
        self._own_only = own_only
        self._retried = retried
        connect = connect or partial(
            BlockingConnection.open, options.endpoints, name="warren spark"
        )
        self.connection = TaskConnection(connect, reconnect_s)
        self._probe = probe
        self._patience = Patience(busy_s, reconnect_s)
        self._writers = SegmentWriters(ledger)
        self._looks = Looks(ledger, options.retention_s)
        #: Those that are drained at the moment.
        self._group: list[Job] = []

    # -- all of it -------------------------------------------------------------------------------
    def rows(self, ranges: Iterable[Range]) -> Iterator[pa.RecordBatch]:
        """The rows of all ranges; of one queue in order, and all in the same order again."""
        ranges = list(ranges)
        portions = Portions()
        for segment in Turns(ranges, self._ledger).order(self._segments(ranges)):
            yield from portions.add(segment)
        yield from portions.rest()

    def keep_alive(self) -> None:
        """Keep the connection, while the rows that came last are somebody else's business.

        For the thread that goes through ``rows``, between two of them.
        """
        self.connection.keep_alive(lambda: held_bytes(self._group) <= _MOST_BYTES)

    def _segments(self, ranges: Iterable[Range]) -> Iterator[Segment]:
        jobs, ranges = list[Job](), list(ranges)
        self._parts.beside = min(len(ranges), _AT_ONCE)
        for wanted in ranges:
            part = self._parts.first(wanted.queue, in_turns=wanted.mode == SINGLE_ACTIVE)
            job = Job(wanted, wanted.start, wanted.mode, part)
            job.suspicious = wanted.suspicious
            job.unsure = self._retried or wanted.suspicious
            yield from self._written(job)
            jobs.append(job)
        # Only now: another attempt may have written one of those that were just handed out.
        begun = moment()
        shelves = self._ledger.shelves()
        for job in jobs:
            self._require_remembered(job, shelves.of(job.queue))
            self._ledger.drop_stray_marks(job.queue, shelves.of(job.queue))
            self._doubt(job, shelves.of(job.queue))
        yield from self._require_kept(jobs, shelves, begun)
        if any(job.resolving for job in jobs):
            self._ledger.sync()
        try:
            yield from self._drain_all([job for job in jobs if not job.finished])
        finally:
            self._writers.close()
            self.connection.close()

    def _written(self, job: Job) -> Iterator[Segment]:
        """The rows that the ledger has by now, from where we are."""
        place, own_only = self._ledger.place, self._own_only
        ours = partial(require_ours, run=self._run, place=place, own_only=own_only)
        for segment in self._ledger.chain(job.queue, job.at, job.range.end, require=ours):
            job.at, job.held = segment.end, []
            job.part = self._parts.after(segment)
            yield segment

    def _require_remembered(self, job: Job, shelf: Shelf) -> None:
        """Raises LedgerGap if what was just handed out stands where all is forgotten."""
        for start in shelf.overtaken:
            if job.range.start <= start < job.at:
                raise LedgerGap(self._ledger.place, job.queue, start, shelf.starts[0])

    def _require_kept(self, jobs: list[Job], shelves: Shelves, begun: Moment) -> Iterator[Segment]:
        """Raises LedgerGap where the ledger has later rows of a queue, and not those that are next.

        We are an attempt that slept, or the checkpoint is an old one: what is in the queue now
        must not fill a range that Spark is through with.
        """
        self._looks.looked([*jobs, *self._group], shelves, begun)
        for job in jobs:
            shelf = shelves.of(job.queue)
            if not lacks(job, shelf):
                continue
            at = job.at
            yield from self._written(job)  # perhaps another attempt was writing them
            if job.at > at:
                self._doubt(job, self._ledger.shelves().of(job.queue))
                self._ledger.sync()
            later = shelf.after(job.at)
            if job.at < job.range.end and later is not None:
                raise LedgerGap(self._ledger.place, job.queue, job.at, later)
            job.looked_at = begun

    def _look(self, jobs: list[Job]) -> Iterator[Segment]:
        """Require the same of these once more, if the last look is too old to count."""
        if not self._looks.are_due(jobs):
            return
        begun = moment()
        yield from self._require_kept(jobs, self._ledger.shelves(), begun)

    def _doubt(self, job: Job, shelf: Shelf) -> None:
        """Segments whose acknowledgement the broker may not have read are cleared up first."""
        held = (self._ledger.read(job.queue, start) for start in shelf.in_doubt)
        job.resolving = [segment for segment in held if segment is not None]
        job.unsure = job.unsure or shelf.unordered or bool(job.resolving)
        job.blind = job.blind or job.unsure

    def _drain_all(self, jobs: list[Job]) -> Iterator[Segment]:
        for first in range(0, len(jobs), _AT_ONCE):
            group = self._group = jobs[first : first + _AT_ONCE]
            while not all(job.finished for job in group):
                try:
                    link = self._connected(jobs[first:])
                    # Once we are connected: who sleeps behind this finds the connection gone.
                    yield from self._look(group)
                    for segment in self._drain(link, group):
                        self.connection.works()
                        handed_out_at = time.monotonic()
                        yield segment
                        for job in group:
                            job.paused(time.monotonic() - handed_out_at)
                except BROKEN as error:
                    self._try_again(error, group)

    def _try_again(self, error: Exception, jobs: list[Job]) -> None:
        """After a lost connection: everything is as the ledger says. Raises when it is too long."""
        self._looks.forget(jobs)
        if not self.connection.lost(error):
            if not all(job.is_safe or job.finished for job in jobs):
                raise error
            for job in jobs:
                job.give_up_clearing()
        for job in jobs:
            job.lose()

    def _connected(self, jobs: list[Job]) -> BlockingConnection:
        """The connection; what a new one may mean concerns those whose turn is yet to come, too."""
        self._probe("before connecting", jobs[0].queue)
        link = self.connection.link
        if self.connection.made_again:
            self.connection.made_again = False
            for job in jobs:
                job.connected_again(restarted=self.connection.restarted)
        return link

    # -- one connection --------------------------------------------------------------------------
    def _drain(self, link: BlockingConnection, jobs: list[Job]) -> Iterator[Segment]:
        while True:
            left = [job for job in jobs if not job.finished]
            if not left:
                return
            now = time.monotonic()
            self._patience.with_nodes(left, now)
            due = [job for job in left if job.tap is None and now >= job.retry_at]
            if due:  # nobody kept these for us
                yield from self._look(due)
            for job in due:
                if not job.finished:
                    self._start(link, job, now)
            came = link.pump(_QUIET_S, gather=True)
            yield from self._go_on(link, [job for job in left if job.is_settled])
            full: list[tuple[Job, Tap]] = []
            overflow(left, _MOST_BYTES)
            for job in left:
                yield from self._advance(job, came, full)
            # While rows were handed out, the connection was read: all may be different by now.
            full = [(job, tap) for job, tap in full if tap.is_open and self._is_full(job, tap)]
            if full and is_time_to_write(full, left, time.monotonic()):
                yield from self._write(link, full)

    def _start(self, link: BlockingConnection, job: Job, now: float) -> None:
        tap = link.begin_channel(Tap)
        tap.start(job.queue, job.mode, job.wanted, job.reach)
        job.tap, job.heard_at, job.heard, job.overflows = tap, now, -1, False

    def _advance(self, job: Job, came: bool, full: list[tuple[Job, Tap]]) -> Iterator[Segment]:
        """Do what is next for a queue; a window that can be written goes to ``full``."""
        tap = job.tap
        if tap is None:
            return
        if tap.consuming:
            job.away = job.busy_since = None
        if job.leaving:
            if not tap.is_open:
                job.tap, job.leaving = None, False
        elif not tap.is_open:
            yield from self._refused(job, tap)
        elif tap.settling:
            if not tap.synced:
                if not came:  # else the answer may be among what is yet to be read
                    self._patience.with_answer(job, time.monotonic())
                    tap.ask_whether_settled()
            elif not job.is_settled:  # else it was answered since, and ``_go_on`` is next
                yield from self._cleared_or_void(job, tap)
        elif tap.exhausted and self._expects_more(job, tap):
            tap.look_again()
        elif self._is_full(job, tap):
            if not job.clearing:
                full.append((job, tap))
            elif not self._again.has_to_wait(job, tap, self._group):
                self._clear(job, tap)
        elif not came:
            tap.ask()

    def _expects_more(self, job: Job, tap: Tap) -> bool:
        """Nothing came: is it worth waiting for the queue to hear that somebody is gone?"""
        if not job.sees_nothing(tap) or job.is_safe:
            return False
        return time.monotonic() - job.heard_at < self._options.drain_timeout_s

    def _is_full(self, job: Job, tap: Tap) -> bool:
        """Is what came to be written down, or compared?"""
        if (tap.done and tap.consuming) or self._too_late(job, tap):
            return True
        return job.overflows and len(tap.took) > 0

    def _too_late(self, job: Job, tap: Tap) -> bool:
        now = time.monotonic()
        if len(tap.took) != job.heard:
            job.heard, job.heard_at = len(tap.took), now
        if now - job.heard_at < self._options.drain_timeout_s or not tap.consuming:
            return False
        if job.mode == SINGLE_ACTIVE and not len(tap.took):
            self._patience.with_others(job, now - job.heard_at)
            return False
        return True

    # -- a queue that is not ours ----------------------------------------------------------------
    def _refused(self, job: Job, tap: Tap) -> Iterator[Segment]:
        if self._patience.is_missing(job, tap):
            yield from self._missing(job)

    def _missing(self, job: Job) -> Iterator[Segment]:
        self._options.require_there(job.queue)
        # What is in doubt, or being acknowledged, went with the queue.
        for segment in [*job.resolving, *([job.settling] if job.settling else [])]:
            self._ledger.settle(job.queue, segment.start)
        job.give_up_clearing()
        job.settling = None
        yield from self._take_nothing(job)

    def _take_nothing(self, job: Job, *, unordered: bool = False) -> Iterator[Segment]:
        """The rest of the range stays empty."""
        if job.at >= job.range.end:
            return
        empty = to_batch(Deliveries(), job.queue, job.at, 0)
        segment = Segment(job.queue, job.at, job.range.end, empty, time.time(), self._run)
        if self._ledger.write(segment):
            self._ledger.settle(job.queue, job.at, unordered=unordered)
            job.at = job.range.end
            yield segment
        else:
            yield from self._beaten(job)

    # -- what the broker gives out again ---------------------------------------------------------
    def _clear(self, job: Job, tap: Tap) -> None:
        """Acknowledge what the ledger holds already: take nothing that it doesn't."""
        took = tap.took
        job.blind = job.sees_nothing(tap)
        if took.redelivered and self._again.is_not_all(job, tap, to_batch(took, job.queue, 0, 0)):
            job.leave(tap)
            return
        # Now, while the queue is ours: another attempt may have cleared up since we read the
        # ledger, and what looks like its rows may be messages that were published since.
        job.resolving = [
            each for each in job.resolving if self._ledger.is_in_doubt(job.queue, each.start)
        ]
        if not job.clearing:
            job.leave(tap)  # what came is to be taken, not compared
            return
        dropped, whole, passed = held_already(job, took)
        job.dropped = len(dropped)
        if dropped:
            job.retaken = 0
            log.info("queue %s: %d messages are in the ledger already", job.queue, len(dropped))
        tap.filled = len(dropped) == len(took) >= tap.window
        tap.settle(dropped)
        job.asked_at = time.monotonic()
        gone = bool(job.resolving) and (passed or none_left(job, tap))
        job.resolved = [
            segment.start
            for segment, came_back in zip(job.resolving, whole, strict=True)
            if came_back or gone
        ]

    def _cleared(self, job: Job, tap: Tap) -> Iterator[Segment]:
        """The broker has read what ``_clear`` acknowledged."""
        for start in job.resolved:
            self._ledger.settle(job.queue, start, unordered=job.leaves_unordered(tap))
        # What is in doubt may come yet, and must not be taken for new: another time.
        postponed = job.blind and len(job.resolved) < len(job.resolving)
        if job.looking:
            job.trust()
        job.doubted = [each for each in job.resolving if each.start not in job.resolved]
        job.resolving, job.resolved, job.looking, job.recent = [], [], False, []
        job.look_at = 0
        job.leave(tap)
        # A connection that was lost while we settled: these rows were not handed out yet.
        yield from self._written(job)
        if postponed:
            yield from self._take_nothing(job, unordered=True)

    # -- taking ----------------------------------------------------------------------------------
    def _write(self, link: BlockingConnection, full: list[tuple[Job, Tap]]) -> Iterator[Segment]:
        """Write windows down, together: a disk syncs many as fast as one, and an object store has
        many answers under way; then acknowledge them."""
        group: list[tuple[Job, Tap, Segment]] = []
        for job, tap in full:
            if self._again.has_to_wait(job, tap, self._group):
                continue
            job.full_at = 0.0
            segment = self._segment(job, tap)
            if segment is not None:
                self._probe("before segment", job.queue)
                group.append((job, tap, segment))
        written = self._writers.write([segment for _, _, segment in group])
        taken = list(zip(group, written, strict=True))
        ours = [each for each, is_new in taken if is_new]
        for job, _, _ in ours:
            self._probe("after segment", job.queue)
        made = [(job, segment) for job, _, segment in ours]
        self._looks.require_not_overtaken(made, self._group)
        for job, tap, segment in ours:  # all of them, before anything else can go wrong
            job.settling, job.retaken = segment, 0
            job.had_fresh = len(tap.took.redelivered) < len(tap.took)
        self._acknowledge(link, ours)
        for (job, tap, _), is_new in taken:
            if not is_new:
                job.leave(tap)  # our messages go back
                yield from self._beaten(job)

    def _segment(self, job: Job, tap: Tap) -> Segment | None:
        """What was taken; None if it must be taken once more."""
        took = tap.took
        job.blind = job.sees_nothing(tap)
        received = time.time()
        batch = to_batch(took, job.queue, job.at, int(received * 1e6))
        if took.redelivered and (is_doubted(job, took) or self._again.comes_again(job, tap, batch)):
            job.leave(tap)
            return None
        # Only now that what is first stands first.
        cut = tap.keep_octets(_MOST_BYTES) or (job.overflows and not tap.done)
        job.overflows = False
        if tap.rearranged:
            batch = to_batch(took, job.queue, job.at, int(received * 1e6))
        # What came beyond the part we wanted is here anyway; what goes back is counted once more.
        there = min(len(took), job.range.end - job.at)
        wanted = there if cut else max(tap.wanted, there)
        batch = batch.slice(0, wanted)
        beyond = len(took) - batch.num_rows
        all_came = (tap.exhausted or not tap.done) and not beyond and not cut
        last = all_came or job.at + wanted >= job.range.end
        end = job.range.end if last else job.at + wanted
        return Segment(job.queue, job.at, end, batch, received, self._run)

    def _acknowledge(self, link: BlockingConnection, ours: list[tuple[Job, Tap, Segment]]) -> None:
        for job, tap, segment in ours:
            self._probe("before ack", job.queue)
            tap.filled = segment.rows == len(tap.took) >= tap.window
            tap.settle(range(segment.rows))
            job.asked_at = time.monotonic()
        link.flush()
        for job, _, _ in ours:
            self._probe("after ack", job.queue)

    def _go_on(self, link: BlockingConnection, jobs: list[Job]) -> Iterator[Segment]:
        """The broker has read these acknowledgements: mark them, ask for more, hand out the rows.

        In this order, of all of them: what comes next must not meet a segment in doubt, and Spark
        may take as long as it likes over the rows. They are handed out whatever breaks.
        """
        segments: list[Segment] = []
        marks: list[Settled] = []
        for job in jobs:
            assert job.tap is not None
            assert job.settling is not None
            self._probe("before settled", job.queue)
            segments.append(job.settling)
            marks.append((job.queue, job.settling.start, job.leaves_unordered(job.tap)))
        if not marks:
            return
        self._writers.mark(marks)
        for job, segment in zip(jobs, segments, strict=True):
            self._take_more(job, segment)
        broken: Exception | None = None
        try:
            link.flush()  # the broker works while Spark does
        except BROKEN as error:
            broken = error
        yield from segments
        if broken is not None:
            raise broken

    def _take_more(self, job: Job, settled: Segment) -> None:
        tap = job.tap
        assert tap is not None
        job.settling, job.held = None, []
        job.trust()
        job.at = settled.end
        job.part = self._parts.after(settled)
        if job.at < job.range.end and not tap.held:
            job.reach = 0
            tap.go_on(job.mode, job.wanted)
        else:
            job.leave(tap)

    def _cleared_or_void(self, job: Job, tap: Tap) -> Iterator[Segment]:
        """The broker has answered, and it is not as simple as in ``_go_on``."""
        if job.took_back(tap):
            job.resolved = []
        if job.clearing and not (job.took_back(tap) and job.dropped):
            yield from self._cleared(job, tap)
            return
        # The broker took them back before it read the acknowledgement, which then is void.
        if not job.clearing:
            assert job.settling is not None
            job.resolving, job.settling = [job.settling], None
        job.leave(tap)

    def _beaten(self, job: Job) -> Iterator[Segment]:
        """Another attempt has written this offset: its segment counts, and may be in doubt."""
        yield from self._written(job)
        self._doubt(job, self._ledger.shelves().of(job.queue))
        self._ledger.sync()
