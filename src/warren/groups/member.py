"""What one member does about its queues: a table of states and events, no clock, no sockets.

Each queue is in one ``Claim`` state. What happens to it (an assignment, the broker's answer, a
handler that finished, time that ran out) is an ``Event``; ``TABLE`` says what follows. The shell
carries out the ``Step``s that ``take_steps`` returns and tells what came of them.

The law that the table keeps:

* A claim is asked of the broker, and only the broker's yes starts the work (``WORK``).
* A queue is given away in order: no new message to a handler (``DRAIN``), running handlers finish
  and acknowledge, at most for the drain time, then the channel is closed (``RELEASE``), and only
  after the broker has confirmed that does a report say that the queue is free.
* A queue that comes back while it is being given away is released all the same and claimed anew:
  messages that were already prefetched have to go back to the queue first, or order is lost.
* ``FORGET`` means that the broker has taken the queue away: another may work on it already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from warren.groups.coordination.base import NEVER, Assignment, Report, Stamp

#: The first tries after a refused claim come quickly: most of the time the broker is just about
#: to notice that the holder before has gone.
RETRY_FIRST_S, RETRY_MOST_S = 0.01, 2.0
#: A refusal is worth telling when so many tries in a row have failed.
TELL_AFTER = 5


class Claim(Enum):
    """Where a queue stands with this member."""

    __hash__ = object.__hash__  # each is there once; Enum's own hash is slow

    FREE = "not ours"
    CLAIMING = "asked the broker for it"
    CANCELLING = "asked the broker for it, and no longer wanted"
    WAITING = "refused, to be tried again"
    HELD = "working on it"
    DRAINING = "running handlers finish"
    RELEASING = "the broker was asked to take it back"
    DRAINING_BACK = "running handlers finish, and wanted again"
    RELEASING_BACK = "the broker was asked to take it back, and wanted again"


class Event(Enum):
    """What can happen to a queue of this member."""

    __hash__ = object.__hash__

    WANT = "it is in the assignment"
    UNWANT = "it is no longer in the assignment"
    CLAIMED = "the broker said yes"
    REFUSED = "the broker said no"
    DUE = "time to try again, or the drain time is over"
    DRAINED = "no handler runs any more"
    RELEASED = "the broker has it back"
    LOST = "the broker took it away: channel closed, consumer cancelled, connection gone"


class Do(Enum):
    """What the shell has to do."""

    CLAIM = "open a channel and consume"
    WORK = "hand messages to handlers"
    DRAIN = "hand out no more, tell when none runs"
    RELEASE = "close the channel"
    FORGET = "drop what is running; nothing can be acknowledged any more"


_C, _E, _D = Claim, Event, Do

#: State and event → the next state, and what to do. A pair that is not here changes nothing.
TABLE: dict[tuple[Claim, Event], tuple[Claim, Do | None]] = {
    (_C.FREE, _E.WANT): (_C.CLAIMING, _D.CLAIM),
    (_C.CLAIMING, _E.CLAIMED): (_C.HELD, _D.WORK),
    (_C.CLAIMING, _E.REFUSED): (_C.WAITING, None),
    (_C.CLAIMING, _E.LOST): (_C.WAITING, None),
    (_C.CLAIMING, _E.UNWANT): (_C.CANCELLING, None),
    (_C.CANCELLING, _E.WANT): (_C.CLAIMING, None),
    (_C.CANCELLING, _E.CLAIMED): (_C.RELEASING, _D.RELEASE),
    (_C.CANCELLING, _E.REFUSED): (_C.FREE, None),
    (_C.CANCELLING, _E.LOST): (_C.FREE, None),
    (_C.WAITING, _E.DUE): (_C.CLAIMING, _D.CLAIM),
    (_C.WAITING, _E.UNWANT): (_C.FREE, None),
    (_C.HELD, _E.UNWANT): (_C.DRAINING, _D.DRAIN),
    (_C.HELD, _E.LOST): (_C.WAITING, _D.FORGET),
    (_C.DRAINING, _E.WANT): (_C.DRAINING_BACK, None),
    (_C.DRAINING, _E.DRAINED): (_C.RELEASING, _D.RELEASE),
    (_C.DRAINING, _E.DUE): (_C.RELEASING, _D.RELEASE),
    (_C.DRAINING, _E.LOST): (_C.FREE, _D.FORGET),
    (_C.DRAINING_BACK, _E.UNWANT): (_C.DRAINING, None),
    (_C.DRAINING_BACK, _E.DRAINED): (_C.RELEASING_BACK, _D.RELEASE),
    (_C.DRAINING_BACK, _E.DUE): (_C.RELEASING_BACK, _D.RELEASE),
    (_C.DRAINING_BACK, _E.LOST): (_C.WAITING, _D.FORGET),
    (_C.RELEASING, _E.WANT): (_C.RELEASING_BACK, None),
    (_C.RELEASING, _E.RELEASED): (_C.FREE, None),
    (_C.RELEASING, _E.LOST): (_C.FREE, None),
    (_C.RELEASING_BACK, _E.UNWANT): (_C.RELEASING, None),
    (_C.RELEASING_BACK, _E.RELEASED): (_C.CLAIMING, _D.CLAIM),
    (_C.RELEASING_BACK, _E.LOST): (_C.CLAIMING, _D.CLAIM),
}

#: In these a report says that we have the queue. A claim under way that was not called off is
#: the dispatcher's own doing: it knows.
HOLDING = frozenset(
    {
        _C.CANCELLING,
        _C.HELD,
        _C.DRAINING,
        _C.RELEASING,
        _C.DRAINING_BACK,
        _C.RELEASING_BACK,
    }
)


class Step(NamedTuple):
    """One thing for the shell to do."""

    do: Do
    queue: str


@dataclass(slots=True)
class _Queue:
    state: Claim = Claim.FREE
    due: float | None = None
    tries: int = 0
    reason: str = ""


@dataclass
class Member:
    """One member's queues. Times are seconds of any clock that never goes back."""

    #: Name, weight and the like; what changes is filled in by ``report``.
    identity: Report
    drain_s: float = 30.0
    _stamp: Stamp = NEVER
    _queues: dict[str, _Queue] = field(default_factory=dict)
    _steps: list[Step] = field(default_factory=list)
    _news: bool = True
    _leaving: bool = False
    #: The last report and the next deadline, until something happens.
    _told: Report | None = None
    _deadline: float | None = None
    _deadline_known: bool = False

    def assigned(self, assignment: Assignment, now: float) -> bool:
        """Take up an assignment; False if it is older than one that was taken up before."""
        if assignment.stamp < self._stamp:
            return False
        if assignment.stamp > self._stamp:
            self._stamp, self._news, self._told = assignment.stamp, True, None
        self._want(set() if self._leaving else set(assignment.queues), now)
        return True

    def leave(self, now: float) -> None:
        """Give everything away, in order, and take up nothing any more.

        The dispatcher hears of it at once, by a weight of nought, and can give out what is free
        while a slow handler still runs. The queues of a static member wait for its return.
        """
        self._leaving, self._news, self._told = True, True, None
        if not self.identity.static:
            self.identity = self.identity._replace(weight=0.0)
        self._want(set(), now)

    def claimed(self, queue: str, now: float) -> None:
        self._happened(queue, Event.CLAIMED, now)

    def refused(self, queue: str, reason: str, now: float) -> None:
        self._queues.setdefault(queue, _Queue()).reason = reason
        self._told = None
        self._happened(queue, Event.REFUSED, now)

    def drained(self, queue: str, now: float) -> None:
        self._happened(queue, Event.DRAINED, now)

    def released(self, queue: str, now: float) -> None:
        self._happened(queue, Event.RELEASED, now)

    def lost(self, queue: str, reason: str, now: float) -> None:
        self._queues.setdefault(queue, _Queue()).reason = reason
        self._told = None
        self._happened(queue, Event.LOST, now)

    def disconnected(self, reason: str, now: float) -> None:
        """The connection has gone and all claims with it: wait for an assignment to a new life."""
        for queue in list(self._queues):
            self.lost(queue, reason, now)
        self._steps = [step for step in self._steps if step.do is Do.FORGET]
        self._queues.clear()
        self._stamp, self._news, self._told = NEVER, True, None
        self._deadline_known = False

    def run_due(self, now: float) -> None:
        first = self._deadline if self._deadline_known else self.next_deadline()
        if first is None or first > now:
            return
        self._deadline_known = False
        due = [n for n, q in self._queues.items() if q.due is not None and q.due <= now]
        for name in due:
            self._queues[name].due = None
            self._happened(name, Event.DUE, now)

    def next_deadline(self) -> float | None:
        if not self._deadline_known:
            first = None
            for queue in self._queues.values():
                if queue.due is not None and (first is None or queue.due < first):
                    first = queue.due
            self._deadline, self._deadline_known = first, True
        return self._deadline

    def take_steps(self) -> list[Step]:
        """What is to be done, in this order; each is returned once."""
        steps, self._steps = self._steps, []
        return steps

    def take_news(self) -> bool:
        """Whether the dispatcher should get a new report."""
        news, self._news = self._news, False
        return news

    def state_of(self, queue: str) -> Claim:
        return self._queues[queue].state if queue in self._queues else Claim.FREE

    def reason_of(self, queue: str) -> str:
        """Why the broker refused it or took it away last; empty if it did not."""
        return self._queues[queue].reason if queue in self._queues else ""

    def queues_in(self, *states: Claim) -> list[str]:
        return sorted([name for name, queue in self._queues.items() if queue.state in states])

    @property
    def idle(self) -> bool:
        """Nothing is held and nothing is under way."""
        return not self._queues

    def report(self, rates: Mapping[str, float] | None = None) -> Report:
        rates = rates or {}
        if self._told is None or self._told.rates != rates:
            self._told = self._report(dict(rates))
        return self._told

    def _report(self, rates: Mapping[str, float]) -> Report:
        held, refused = [], {}
        for name, queue in self._queues.items():
            if queue.state in HOLDING:
                held.append(name)
            elif queue.tries >= TELL_AFTER:  # waiting to claim it, or claiming
                refused[name] = queue.reason
        who = self.identity
        return Report(
            who.member,
            who.weight,
            who.static,
            who.session_s,
            self._stamp,
            tuple(sorted(held)),
            refused,
            rates,
            who.where,
        )

    def _want(self, wanted: set[str], now: float) -> None:
        for name in [name for name in self._queues if name not in wanted]:
            self._happened(name, Event.UNWANT, now)
        for name in sorted(wanted):
            self._happened(name, Event.WANT, now)

    def _happened(self, name: str, event: Event, now: float) -> None:
        queue = self._queues.get(name)
        if queue is None:
            queue = self._queues[name] = _Queue()
        before = queue.state
        found = TABLE.get((before, event))
        if found is not None:
            queue.state, do = found
            self._told, self._deadline_known = None, False
            self._entered(queue, before, now)
            if do is not None:
                self._steps.append(Step(do, name))
        if queue.state is Claim.FREE:
            del self._queues[name]

    def _entered(self, queue: _Queue, before: Claim, now: float) -> None:
        """A queue is in another state: set its timer, and see whether that is news."""
        state = queue.state
        if state is Claim.WAITING:
            queue.due = now + min(RETRY_FIRST_S * 2**queue.tries, RETRY_MOST_S)
            queue.tries = min(queue.tries + 1, 30)
            if queue.tries == TELL_AFTER or before in HOLDING:
                self._news = True
        elif state is Claim.DRAINING or state is Claim.DRAINING_BACK:
            if before is Claim.HELD:
                queue.due = now + self.drain_s
        else:
            queue.due = None
            if state is Claim.HELD:
                queue.tries, self._news = 0, True
            elif state is Claim.FREE:
                self._news = True
