"""One process in a group: its member, and the dispatcher while it is the elected one.

Joins the two cores to what comes from a coordinator, and says what has to go out. No clock, no
sockets: the shell in ``group.py`` and the simulation in the tests drive the same object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from warren.groups.causes import Cause
from warren.groups.coordination.base import (
    Assigned,
    Assignment,
    Commanded,
    Deposed,
    Elected,
    Event,
    GroupState,
    Left,
    Report,
    Reported,
)
from warren.groups.dispatcher import Dispatcher, Policy
from warren.groups.member import Member, Step
from warren.groups.roster import QueueFacts

#: A report goes out at least this often: it carries rates, and makes good one that was lost.
REPORT_S = 2.0
#: The state is shown at most this often while it changes, and this often for its figures.
SHOW_S, REFRESH_S = 0.25, 2.0


class Output(NamedTuple):
    """What has to go out: steps first (they keep promises), then words."""

    steps: Sequence[Step] = ()
    report: Report | None = None
    assignments: Sequence[Assignment] = ()
    state: GroupState | None = None


NOTHING = Output()


class Seat:
    """A member, and perhaps the dispatcher, of one group."""

    def __init__(
        self,
        group: str,
        member: Member,
        *,
        queues: Sequence[str] = (),
        policy: Policy | None = None,
        wall_offset_s: float = 0.0,
    ) -> None:
        self.group, self.member = group, member
        self.dispatcher: Dispatcher | None = None
        #: Messages a second of the queues held here; the shell keeps it up to date.
        self.rates: Mapping[str, float] = {}
        #: Rebalances that were decided here, over all times as the dispatcher.
        self.rebalances: Counter[Cause] = Counter()
        self._queues, self._policy, self._wall_offset_s = tuple(queues), policy, wall_offset_s
        self._report_at = float("-inf")
        #: When the state was shown last, and is to be shown next.
        self._shown_at = self._show_at = float("-inf")

    @property
    def name(self) -> str:
        return self.member.identity.member

    def hear(self, event: Event, now: float) -> None:
        """Something came from the coordinator."""
        dispatcher = self.dispatcher
        if isinstance(event, Reported):
            if dispatcher is not None:
                dispatcher.reported(event.report, now)
        elif isinstance(event, Assigned):
            self.member.assigned(event.assignment, now)
        elif isinstance(event, Elected):
            self._elected(event, now)
        elif isinstance(event, Deposed):
            self.dispatcher = None
        elif isinstance(event, Left) and dispatcher is not None:
            dispatcher.left(event.member, now, died=event.died)
        elif isinstance(event, Commanded) and dispatcher is not None:
            dispatcher.commanded(event.command, now)

    def queues_are(self, facts: Mapping[str, QueueFacts], now: float) -> None:
        """The broker was asked what queues there are."""
        if self.dispatcher is not None:
            self.dispatcher.queues_are(facts, now)

    def disconnected(self, reason: str, now: float) -> None:
        """The connection to the broker has gone: nothing is held, nothing is decided here."""
        self.dispatcher = None
        self.member.disconnected(reason, now)

    def leave(self, now: float) -> None:
        """Give everything away in order; ``member.idle`` tells when that is done."""
        self.member.leave(now)

    def next_deadline(self) -> float:
        """When to ``take_output`` again, if nothing happens before."""
        first, other = self._report_at, self.member.next_deadline()
        if other is not None and other < first:
            first = other
        if self.dispatcher is not None:
            other = self.dispatcher.next_deadline()
            if other is not None and other < first:
                first = other
            if self._show_at < first:
                first = self._show_at
        return first

    def report_is_due(self, now: float) -> bool:
        """Whether the next output has a report, whatever else happens: time to count rates."""
        return self._report_at <= now

    def take_output(self, now: float) -> Output:
        """Do what is due, and say what has to go out now; each thing is returned once."""
        member, dispatcher = self.member, self.dispatcher
        assignments: Sequence[Assignment] = ()
        report = state = None
        member.run_due(now)
        if dispatcher is not None:
            dispatcher.run_due(now)
            assignments = dispatcher.take_assignments(now)
            state = self._state_to_show(dispatcher, now)
        if member.take_news() or self._report_at <= now:
            report = member.report(self.rates)
            self._report_at = now + REPORT_S
        steps = member.take_steps()
        if steps or report or assignments or state:
            return Output(steps, report, assignments, state)
        return NOTHING

    def _elected(self, event: Elected, now: float) -> None:
        self.dispatcher = Dispatcher(
            self.group,
            self.name,
            self._policy,
            wall_offset_s=self._wall_offset_s,
            counted=self.rebalances,
        )
        self.dispatcher.start(
            event.generation, event.members, event.state, queues=self._queues, now=now
        )

    def _state_to_show(self, dispatcher: Dispatcher, now: float) -> GroupState | None:
        # A hundred thousand queues take their time: seldom, then.
        if dispatcher.take_changed():
            self._show_at = self._shown_at + SHOW_S + dispatcher.size / 20_000
        if now < self._show_at:
            return None
        self._shown_at, self._show_at = now, now + REFRESH_S + dispatcher.size / 1_000
        return dispatcher.state()
