"""What the elected member decides: who shall hold what, and when to move it. No clock, no sockets.

The dispatcher keeps a *target* (queue → member). A queue reaches a member's assignment only when
no other member that is there may still work on it: its former holder has to report first that it
let go. So a handover touches two members and the others never hear of it. Reports and assignments
may be late or lost; both are whole lists, stamped, and sent again until they are seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from warren.groups import assign
from warren.groups.causes import Cause, Reasons
from warren.groups.coordination.base import (
    NEVER,
    Assignment,
    Command,
    GroupState,
    Rebalance,
    Report,
    Stamp,
)
from warren.groups.portrait import portray_members, portray_queues
from warren.groups.roster import UNKNOWN, QueueFacts, Seen

#: An assignment that was not taken up by then is sent again.
RESEND_S = 1.0
#: How many rebalances of the past are remembered.
HISTORY = 20


@dataclass(frozen=True)
class Policy:
    """How a group is balanced."""

    balance: Literal["count", "load"] = "count"
    #: At most one rebalance in so many seconds; the first comes at once, deaths don't wait.
    min_interval_s: float = 3.0
    #: By load: how often to look, and how much of a member's mean load a move must gain.
    load_interval_s: float = 10.0
    worth: float = 0.1


class Dispatcher:
    """Decides; told of everything that happens, asked what to send."""

    def __init__(
        self,
        group: str,
        me: str,
        policy: Policy | None = None,
        *,
        wall_offset_s: float = 0.0,
        counted: Counter[Cause] | None = None,
    ) -> None:
        self.group, self.me = group, me
        #: Rebalances by cause; whoever gave it goes on counting with the next dispatcher.
        self._counted = Counter() if counted is None else counted
        self._wall_offset_s = wall_offset_s
        self.policy = policy or Policy()
        self.rebalances: list[Rebalance] = []
        self._generation, self._step = 0, 0
        self._members: dict[str, Seen] = {}
        self._target: dict[str, str] = {}
        self._queues: dict[str, QueueFacts] = {}
        self._paused: set[str] = set()
        self._drained: set[str] = set()
        self._reasons = Reasons()
        self._due: float | None = None
        self._last: float | None = None
        #: Whether a look at the broker has found queues to share out.
        self._found = False
        self._look_at_load: float | None = None
        self._changed, self._dirty = True, True
        #: The next deadline, and what ``state`` would show, as long as nothing happens.
        self._deadline: float | None = None
        self._deadline_known = False
        self._state: GroupState | None = None

    def start(
        self,
        generation: int,
        reports: Sequence[Report],
        state: GroupState | None,
        *,
        queues: Iterable[str],
        now: float,
    ) -> None:
        """Take over: from what the members report, and from what the one before left."""
        stamps = [report.stamp.generation for report in reports]
        self._generation = max([generation, *stamps, state.generation if state else 0])
        self._queues = dict.fromkeys(queues, UNKNOWN)
        for report in sorted(reports, key=lambda each: each.member):
            self._members[report.member] = Seen(report, busy=set(report.held))
        if state is not None:
            self._inherit(state, now)
        held = {q: report.member for report in reports for q in report.held}
        shown = {q.queue: q.member for q in state.queues if q.member} if state else {}
        # Who should hold a queue is newer than who does, unless nobody saw the last rebalance.
        newer = state is not None and state.generation >= max(stamps, default=0)
        wanted = {**held, **shown} if newer else {**shown, **held}
        self._target = {q: m for q, m in wanted.items() if m in self._members}
        self._look_at_load = now + self.policy.load_interval_s
        self._deadline_known = False
        self._reasons.add(Cause.ELECTION, f"{self.me} became dispatcher")
        self._rebalance(now)

    def _inherit(self, state: GroupState, now: float) -> None:
        self.rebalances = list(state.rebalances)
        self._paused = {each.queue for each in state.queues if each.paused}
        for queue in state.queues:
            problem = queue.problem if queue.barred else None
            self._queues[queue.queue] = QueueFacts(queue.messages, queue.consumers, problem)
        for member in state.members:
            name = member.member
            if member.static and name not in self._members:
                report = Report(name, member.weight, static=True, session_s=member.session_s)
                self._members[name] = Seen(report, gone_until=now + member.session_s)
            if member.drained and name in self._members:
                self._drained.add(name)

    # -- what happens ----------------------------------------------------------------------------
    def reported(self, report: Report, now: float) -> None:
        """A member joined, came back, or says how it is doing."""
        seen = self._members.get(report.member)
        if seen is not None and seen.present:
            if seen.report == report:
                return
            if _only_rates_differ(seen.report, report):
                seen.report, self._state = report, None
                return
        self._deadline_known, self._changed = False, True
        if seen is None:
            self._members[report.member] = Seen(report, busy=set(report.held))
            self._adopt(report)
            self._dirty = True
            self._trigger(Cause.JOINED, f"{report.member} joined", now)
        elif not seen.present:
            self._returned(seen, report, now)
        else:
            self._updated(seen, report, now)

    def left(self, member: str, now: float, *, died: bool) -> None:
        """A member has gone: its queues are free, unless it may come back for them."""
        seen = self._members.get(member)
        if seen is None or not seen.present:
            return
        self._deadline_known, self._changed = False, True
        seen.busy, seen.granted, seen.sent, seen.resend_at = set(), frozenset(), NEVER, None
        if seen.report.static and seen.report.session_s > 0:
            seen.gone_until = now + seen.report.session_s
            self._dirty = True
            return
        if died:
            self._remove(member, Cause.DIED, f"{member} died", now)
        else:
            self._remove(member, Cause.LEFT, f"{member} left", now)

    def queues_are(self, facts: Mapping[str, QueueFacts], now: float) -> None:
        """The broker was asked: these are the group's queues now."""
        self._deadline_known = False
        before, self._queues, self._state = self._queues, dict(facts), None
        self._changed = self._changed or before.keys() != facts.keys()
        for queue in before.keys() - facts.keys():
            self._target.pop(queue, None)
            self._paused.discard(queue)
        known = {queue for queue in before if before[queue].problem is None}
        able = {queue for queue in facts if facts[queue].problem is None}
        if came := sorted(able - known):
            # Those that were there before us: nobody works on them, so they don't wait.
            self._trigger(Cause.QUEUES, _plural(came, "appeared"), now, urgent=not self._found)
        self._found = self._found or bool(able)
        if went := sorted(known - able):
            self._trigger(Cause.QUEUES, _what_went(went, facts), now)
        self._dirty = True

    def commanded(self, command: Command, now: float) -> None:
        """A person asks for something; what names nobody and nothing we know changes nothing."""
        member, queue = command.member, command.queue
        self._deadline_known, self._changed = False, True
        if command.kind == "drain" and member in self._members and member not in self._drained:
            self._drained.add(member)
            self._trigger(Cause.DRAIN, f"{member} is drained", now, urgent=True)
        elif command.kind == "undrain" and member in self._drained:
            self._drained.discard(member)
            self._trigger(Cause.DRAIN, f"{member} is no longer drained", now, urgent=True)
        elif command.kind == "pause" and queue in self._queues:
            self._paused.add(queue)
        elif command.kind == "resume":
            self._paused.discard(queue)
        elif command.kind == "move" and queue in self._queues and self._is_here(member):
            self._move(queue, member, now)
        self._dirty = True

    def next_deadline(self) -> float | None:
        if not self._deadline_known:
            first = self._due
            for seen in self._members.values():
                at = seen.resend_at if seen.gone_until is None else seen.gone_until
                if at is not None and (first is None or at < first):
                    first = at
            if self.policy.balance == "load" and (look := self._look_at_load) is not None:
                first = look if first is None else min(first, look)
            self._deadline, self._deadline_known = first, True
        return self._deadline

    def run_due(self, now: float) -> None:
        first = self._deadline if self._deadline_known else self.next_deadline()
        if first is None or first > now:
            return
        self._deadline_known = False
        for member, seen in list(self._members.items()):
            if seen.gone_until is not None and seen.gone_until <= now:
                self._remove(member, Cause.EXPIRED, f"the session of {member} ran out", now)
        if self.policy.balance == "load" and _is_due(self._look_at_load, now):
            self._look_at_load = now + self.policy.load_interval_s
            if self._wanted_target() != self._target:
                self._trigger(Cause.LOAD, "loads differ", now)
        if _is_due(self._due, now):
            self._rebalance(now)
        if any(_is_due(seen.resend_at, now) for seen in self._members.values()):
            self._dirty = True

    # -- what to send ----------------------------------------------------------------------------
    def take_assignments(self, now: float) -> list[Assignment]:
        """What members must be sent: what differs from before, and what was not taken up."""
        if not self._dirty:
            return []
        self._dirty = False
        stamp, due = Stamp(self._generation, self._step + 1), []
        for name, should in self._should_hold().items():
            seen = self._members[name]
            if seen.must_send(should, now):
                seen.granted, seen.sent, seen.resend_at = frozenset(should), stamp, now + RESEND_S
                seen.busy |= should
                due.append(Assignment(name, stamp, tuple(sorted(should))))
        if due:
            self._step, self._deadline_known = stamp.step, False
        return due

    def take_changed(self) -> bool:
        """Whether ``state`` would show something new, figures aside."""
        changed, self._changed = self._changed, False
        if changed:
            self._state = None
        return changed

    @property
    def settled(self) -> bool:
        """Every queue that can be worked on is held by the member that should hold it."""
        if self._due is not None:
            return False
        for queue, member in self._target.items():
            seen = self._members[member]
            if queue in self._paused:
                continue
            if not seen.present or queue not in seen.report.held or queue in seen.report.refused:
                return False
        return True

    @property
    def size(self) -> int:
        """How many queues there are."""
        return len(self._queues)

    def state(self) -> GroupState:
        """All of it, for people and for the next dispatcher."""
        if self._state is None or self._changed:
            self._state = GroupState(
                self.group,
                self.me,
                self._generation,
                portray_members(self._members, self._target, self._drained),
                portray_queues(self._queues, self._members, self._target, self._paused),
                tuple(self.rebalances[-HISTORY:]),
            )
        return self._state

    # -- deciding --------------------------------------------------------------------------------
    def _adopt(self, report: Report) -> None:
        """A newcomer that already holds queues keeps those that nobody else got hold of."""
        for queue in report.held:
            owner = self._target.get(queue)
            if owner is None or queue not in self._members[owner].report.held:
                self._target[queue] = report.member

    def _returned(self, seen: Seen, report: Report, now: float) -> None:
        """A static member is back within its session: the same queues, and no other moves,
        unless something else has happened meanwhile."""
        heavier = seen.report.weight != report.weight
        seen.report, seen.gone_until, seen.busy = report, None, set(report.held)
        self._dirty = True
        if heavier:
            self._trigger(Cause.WEIGHT, f"the weight of {report.member} changed", now)
        elif self.policy.balance == "count" and self._wanted_target() != self._target:
            # What came while it was away went to the others. By load, the next look sees to it.
            self._trigger(Cause.JOINED, f"{report.member} is back", now)

    def _updated(self, seen: Seen, report: Report, now: float) -> None:
        anew = report.stamp < seen.report.stamp
        before, busy = seen.report.weight, seen.busy
        seen.report = report
        if anew:  # it began a new life before we heard that the old one ended
            seen.busy, seen.granted, seen.sent = set(report.held), frozenset(), NEVER
        elif report.stamp >= seen.sent:
            seen.busy = set(report.held) | seen.granted
            seen.resend_at = None
        else:
            seen.busy = seen.busy.union(report.held)
        self._dirty = self._dirty or anew or seen.busy != busy
        if report.weight <= 0 < before:
            self._trigger(Cause.LEFT, f"{report.member} gives its queues away", now, urgent=True)
        elif report.weight != before:
            self._trigger(Cause.WEIGHT, f"the weight of {report.member} changed", now)

    def _remove(self, member: str, cause: Cause, reason: str, now: float) -> None:
        del self._members[member]
        self._drained.discard(member)
        self._target = {q: owner for q, owner in self._target.items() if owner != member}
        self._trigger(cause, reason, now, urgent=True)
        self._dirty = True

    def _move(self, queue: str, member: str, now: float) -> None:
        if self._target.get(queue) == member:
            return
        before = dict(self._target)
        self._target[queue] = member
        self._reasons.add(Cause.MOVE, f"{queue} is moved to {member}")
        self._rebalance(now, before=before, keep=(queue,))

    def _is_here(self, member: str) -> bool:
        return member in self._members and self._members[member].present

    def _trigger(self, cause: Cause, reason: str, now: float, *, urgent: bool = False) -> None:
        self._reasons.add(cause, reason)
        next_at = now if urgent or self._last is None else self._last + self.policy.min_interval_s
        self._due = next_at if self._due is None else min(self._due, next_at)
        if self._due <= now:
            self._rebalance(now)

    def _rebalance(
        self, now: float, *, before: Mapping[str, str] | None = None, keep: Sequence[str] = ()
    ) -> None:
        before = self._target if before is None else before
        self._target = self._wanted_target(keep)
        self._generation, self._step = self._generation + 1, 0
        self._due, self._last = None, now
        cause, reason = self._reasons.take()
        self._counted[cause] += 1
        moved = len(assign.moves(before, self._target))
        self.rebalances = [
            *self.rebalances[1 - HISTORY :],
            Rebalance(self._generation, now + self._wall_offset_s, reason, moved),
        ]
        self._changed = True
        self._dirty = True

    def _wanted_target(self, keep: Sequence[str] = ()) -> dict[str, str]:
        weights = {
            name: 0.0 if name in self._drained else max(seen.report.weight, 0.0)
            for name, seen in self._members.items()
        }
        able = [queue for queue, facts in self._queues.items() if facts.problem is None]
        here = {name: weights[name] for name, seen in self._members.items() if seen.present}
        # Who is away keeps what it has and is given nothing: nobody would work on it.
        away = {name for name in weights if name not in here and weights[name] > 0}
        kept = {q: self._target[q] for q in able if self._target.get(q) in away} if away else {}
        free = [queue for queue in able if queue not in kept]
        return kept | self._shared_out(free, here, keep)

    def _shared_out(
        self, queues: Sequence[str], weights: Mapping[str, float], keep: Sequence[str]
    ) -> dict[str, str]:
        if self.policy.balance == "count":
            return assign.assign(queues, weights, self._target, keep=keep)
        rates = {q: r for seen in self._members.values() for q, r in seen.report.rates.items()}
        loads = {queue: rates.get(queue, 0.0) for queue in queues}
        worth = self.policy.worth
        return assign.assign_by_load(loads, weights, self._target, worth=worth, keep=keep)

    def _should_hold(self) -> dict[str, set[str]]:
        """What each member may be given now: its target, less what others still work on."""
        busy: dict[str, str | None] = {}  # None: several may work on it
        for name, seen in self._members.items():
            for queue in seen.busy:
                busy[queue] = None if queue in busy else name
        should: dict[str, set[str]] = {name: set() for name in self._members}
        for queue, member in self._target.items():
            free = busy.get(queue, member) == member
            # What it may be working on already it keeps, should another turn up that has it,
            # too: the broker lets only one of them work, and the other is told to let go.
            if queue not in self._paused and (free or queue in self._members[member].busy):
                should[member].add(queue)
        return should


def _only_rates_differ(one: Report, other: Report) -> bool:
    return one.rates != other.rates and one._replace(rates=other.rates) == other


def _is_due(deadline: float | None, now: float) -> bool:
    return deadline is not None and deadline <= now


def _what_went(went: list[str], facts: Mapping[str, QueueFacts]) -> str:
    gone = [queue for queue in went if queue not in facts]
    odd = [queue for queue in went if queue in facts]  # such as a name that was never there
    told = [(gone, "vanished"), (odd, "can't be worked on")]
    return "; ".join(_plural(queues, verb) for queues, verb in told if queues)


def _plural(queues: list[str], verb: str) -> str:
    return f"{queues[0]} {verb}" if len(queues) == 1 else f"{len(queues)} queues {verb}"
