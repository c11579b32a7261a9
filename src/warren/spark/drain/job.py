"""A range of offsets on its way from a queue to Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from warren.client.blocking_reader import EXCLUSIVE, SINGLE_ACTIVE, Deliveries, Tap
from warren.clock import Moment
from warren.errors import Unavailable
from warren.spark.deliveries import to_batch
from warren.spark.ledger.match import Key, keys_of
from warren.spark.ledger.segment import Segment

#: AMQP's prefetch has 16 bits.
MOST_UNACKED = 65_535
#: Messages of a queue's first part, when nothing is known about their size.
FIRST_PART = 1_000
#: The same of a queue that gives out what came back behind what came back before.
FIRST_IN_TURNS = 100
#: How often a window is taken once more because messages in it seem to have come again.
MOST_RETAKES = 3
#: So many messages are remembered of those that we held when a connection broke.
_MOST_HELD = 100
#: A queue whose node is down is asked for again after so long, and then less and less often.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 2.0


@dataclass(frozen=True, slots=True)
class Range:
    """What Spark asks for: a queue from one offset to another."""

    queue: str
    start: int
    end: int
    #: How the queue is held alone.
    mode: str = EXCLUSIVE
    #: The broker may have been restarted, and have forgotten acknowledgements.
    suspicious: bool = False
    #: It may count deliveries, as quorum queues do; else such counts are a publisher's.
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered of a segment in the ledger."""

    rows: int
    octets: int
    written_at: float
    ids: pa.Array


@dataclass(slots=True)
class Away:
    """The node of a queue is down."""

    since: float
    reason: str
    pause_s: float


@dataclass(slots=True)
class Job:
    """A range on its way."""

    range: Range
    at: int
    mode: str
    part: int = FIRST_PART
    tap: Tap | None = None
    #: Waits for the broker to have read an acknowledgement of this segment.
    settling: Segment | None = None
    #: Segments in doubt, and of them those that are cleared up once the broker has answered.
    resolving: list[Segment] = field(default_factory=list)
    resolved: list[int] = field(default_factory=list)
    #: How many messages were acknowledged for that.
    dropped: int = 0
    #: Those that could not be cleared up: their messages may come yet, among others.
    doubted: list[Segment] = field(default_factory=list)
    busy_since: float | None = None
    retry_at: float = 0.0
    refused_alone: int = 0
    #: None while its node is there.
    away: Away | None = None
    #: The broker may have been restarted since the last drain; and it looks like it.
    suspicious: bool = False
    looking: bool = False
    #: What the youngest settled segments hold, while looking.
    recent: list[Key] = field(default_factory=list)
    #: The first messages that we held, and nobody before us, when the connection broke.
    held: list[Key] = field(default_factory=list)
    #: Segments of the ledger that were read, by start.
    known: dict[int, Known] = field(default_factory=dict)
    #: Messages to take at least while looking.
    look_at: int = 0
    #: The last window that was written held messages that nobody had had before.
    had_fresh: bool = False
    #: An attempt before this one may have given back a part of what had been given back before.
    unsure: bool = False
    #: It counts deliveries: a quorum queue.
    quorum: bool = False
    #: The window must hold so many, to have all that was given back and one more.
    reach: int = 0
    #: What to reach for when the channel is left, if more than it held.
    more: int = 0
    #: Messages went back, by us or by who is gone, and none of them has come again yet.
    blind: bool = False
    #: How often this window was thrown away, or looked at, because messages came again.
    retaken: int = 0
    heard_at: float = 0.0
    heard: int = -1
    #: When something was acknowledged, and the broker was asked whether it had read that.
    asked_at: float = 0.0
    #: When the ledger was last looked at for what the range begins with; None: it must be.
    looked_at: Moment | None = None
    #: All windows of the task hold too much, and this one most: it is written as it is.
    overflows: bool = False
    #: Since when the window waits for others to be written with; 0.0: it does not.
    full_at: float = 0.0
    #: The channel is being closed: only then has the broker put back what was not acknowledged.
    leaving: bool = False

    @property
    def queue(self) -> str:
        return self.range.queue

    @property
    def taking(self) -> bool:
        """Messages come, or have come and are not written down.

        Not where we may be waiting for our turn: others need not wait for that.
        """
        tap = self.tap
        if tap is None or not tap.is_open or self.leaving or tap.settling or self.clearing:
            return False
        return self.mode != SINGLE_ACTIVE or len(tap.took) > 0

    @property
    def counts(self) -> bool:
        """Are counts of deliveries the queue's own word? One that is held in another way than
        planned was declared anew, and may be of another kind."""
        return self.mode == SINGLE_ACTIVE and (self.range.counts or self.mode != self.range.mode)

    @property
    def waits_for_first(self) -> bool:
        """Messages came back, to a queue that may have put them out of their order, and nothing
        came that stands behind them all: the first may be yet to come."""
        if self.tap is None or not self.unsure or self.mode != SINGLE_ACTIVE:
            return False
        return bool(self.tap.took.redelivered) and not self._has_new

    @property
    def comparing(self) -> bool:
        """Messages come that are to be compared with the ledger."""
        tap = self.tap
        if tap is None or not tap.is_open or self.leaving or tap.settling:
            return False
        return self.clearing

    @property
    def has_seen_all(self) -> bool:
        """What is compared with the ledger is here: messages came that stand behind it."""
        return self.comparing and self._has_new

    @property
    def _has_new(self) -> bool:
        """A message came that nobody was given before."""
        return self.tap is not None and len(self.tap.took.redelivered) < len(self.tap.took)

    @property
    def is_settled(self) -> bool:
        """The broker has read the acknowledgement of the segment that was written last."""
        tap = self.tap
        if tap is None or self.settling is None or self.clearing or self.leaving:
            return False
        return tap.is_open and tap.settling and tap.synced and not self.took_back(tap)

    def took_back(self, tap: Tap) -> bool:
        """The queue gave out again what was being acknowledged; a classic one never does: what is
        flagged there is what comes next."""
        return tap.again and self.counts

    @property
    def is_safe(self) -> bool:
        """All rows are in the ledger: what is left to do may as well be done another time."""
        return self.at >= self.range.end and self.settling is None

    @property
    def wanted(self) -> int:
        """How many messages to take, to clear up or to read."""
        left = self.range.end - self.at
        parts = -(-left // self.part)
        part = -(-left // parts) if parts else 0  # of one size, not some and a small rest
        if not self.clearing:
            return part
        if self.quorum:
            return max(1, part, self.reach)
        rows = sum(segment.rows for segment in self.resolving) + len(self.recent)
        return min(MOST_UNACKED, max(rows, self.look_at) + 1)  # one more, to see the end

    def may_retake(self) -> bool:
        """Messages seem to come again; not for ever, for equal ones may be what was sent."""
        self.retaken += 1
        return self.retaken <= MOST_RETAKES

    def clear_again(self) -> None:
        """Messages came of segments that could not be cleared up: these first, and all of them."""
        assert self.tap is not None
        self.resolving, self.doubted, self.look_at = self.doubted, [], len(self.tap.took)

    def look(self, recent: list[Key], *, at_least: int = 0) -> None:
        """Compare, next, what comes with these."""
        self.recent, self.look_at = recent, at_least
        self.looking, self.had_fresh = True, False

    def lose(self) -> None:
        """The connection is gone, and with it what we held."""
        if self.tap is not None:
            self.reach_for(self.tap.window)
            self._remember(self.tap)
        self.tap, self.leaving, self.overflows = None, False, False
        self.unsure, self.blind, self.had_fresh = True, True, False
        if self.settling is not None and not self.clearing:
            self.resolving.append(self.settling)
        self.settling = None

    def wait_for_node(self, refusal: Unavailable, now: float) -> None:
        """The queue's node is down: try again later, and expect it to have been restarted."""
        self.lose()
        self.connected_again(restarted=True)
        if self.away is None:
            self.away = Away(now, refusal.text, _FIRST_PAUSE_S)
        else:
            self.away.pause_s = min(2 * self.away.pause_s, _LONGEST_PAUSE_S)
        self.retry_at = now + self.away.pause_s

    def _remember(self, tap: Tap) -> None:
        took = tap.took
        fresh = min(took.redelivered, default=len(took))
        if fresh and not tap.settling:
            took.keep(min(fresh, _MOST_HELD))
            self.held = keys_of(to_batch(took, self.queue, 0, 0))

    def connected_again(self, *, restarted: bool) -> None:
        """After a broken connection: may the broker have forgotten what it had read?

        One that was not away forgets nothing. A queue that lives elsewhere in a cluster might, just
        then: what it gives out again is rather doubled than an equal message lost.
        """
        if restarted:
            self.suspicious = self.unsure = True

    def trust(self) -> None:
        """What came was compared with what was taken before it."""
        self.suspicious = False

    def least_run(self, returned: Sequence[Key]) -> int:
        """How many that look like the last taken must come back, in order, to be those.

        What begins with the messages that we held when the connection broke is no such run: they
        were not acknowledged, and come back as they must.
        """
        held = self.held[: len(returned)]
        if held and list(returned[: len(held)]) == held:
            return len(self.recent) + 1
        return 1

    def sees_nothing(self, tap: Tap) -> bool:
        """Nothing came, which may mean that we wait behind one who is gone.

        A quorum queue that has not heard of it yet neither counts what that one holds as ready nor
        us as a consumer.
        """
        return self.blind and self.mode == SINGLE_ACTIVE and not len(tap.took)

    def leaves_unordered(self, tap: Tap) -> bool:
        """May what is in the queue, when ``tap`` is closed, be out of its order?

        Where nothing came, a part of what others gave back may come while we close.
        """
        return tap.unordered or (self.mode == SINGLE_ACTIVE and not len(tap.took))

    def leave(self, tap: Tap) -> None:
        self.reach_for(max(tap.held, self.more))
        self.more = 0
        self.blind = self.blind or tap.held > 0
        self.unsure = self.unsure or tap.unordered
        tap.stop()
        self.leaving = True

    def paused(self, seconds: float) -> None:
        """Spark was busy with rows for so long: nobody listened to the broker."""
        self.heard_at += seconds
        self.asked_at += seconds
        if self.busy_since is not None:
            self.busy_since += seconds
        if self.away is not None:
            self.away.since += seconds

    def reach_for(self, given_back: int) -> None:
        alone = self.mode == SINGLE_ACTIVE and given_back
        self.reach = min(MOST_UNACKED, given_back + 1) if alone else 0

    def give_up_clearing(self) -> None:
        self.resolving, self.looking, self.tap, self.leaving = [], False, None, False

    @property
    def finished(self) -> bool:
        working = self.settling is not None or self.clearing or self.leaving
        return self.at >= self.range.end and not working

    @property
    def clearing(self) -> bool:
        """First the broker's and our idea of what was taken must become one."""
        return self.looking or bool(self.resolving)


def keys_of_redelivered(queue: str, took: Deliveries) -> list[Key]:
    """Of those that were handed out before."""
    rows = to_batch(took, queue, 0, 0).take(pa.array(took.redelivered, pa.int64()))
    return keys_of(rows)
