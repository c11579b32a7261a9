"""What members and their dispatcher have promised: broken, it shows as it happens."""

from __future__ import annotations

from warren.groups.coordination.base import NEVER, Assignment
from warren.groups.dispatcher import Dispatcher

#: How long a handler may go on when its queue is to be given away.
DRAIN_S = 0.7


class Promises:
    """Of one member. Told what it hears and does, not what it thinks."""

    __slots__ = ("_awake_since", "_draining", "_left", "_releasing", "_stamp", "_wanted")

    def __init__(self) -> None:
        self._stamp = NEVER
        self._wanted: frozenset[str] = frozenset()
        self._draining: dict[str, float] = {}
        self._releasing: set[str] = set()
        self._awake_since = 0.0
        self._left = False

    def assigned(self, assignment: Assignment) -> None:
        if assignment.stamp >= self._stamp and not self._left:
            self._stamp, self._wanted = assignment.stamp, frozenset(assignment.queues)

    def leaves(self) -> None:
        self._left, self._wanted = True, frozenset()

    def disconnected(self) -> None:
        """Another life: what it was told in the former one is void."""
        self._stamp, self._wanted = NEVER, frozenset()
        self._draining.clear()
        self._releasing.clear()

    def wakes(self, now: float) -> None:
        self._awake_since = now

    def claims(self, queue: str) -> None:
        """Only what the newest assignment says, and not what it is about to give back."""
        assert queue in self._wanted, f"claims {queue}, which it was not given"
        assert queue not in self._releasing, f"claims {queue}, which it has not yet given back"

    def drains(self, queue: str, now: float) -> None:
        self._draining[queue] = now

    def releases(self, queue: str, now: float, *, working: bool) -> None:
        """Not under a handler's hands, unless that had its time."""
        since = self._draining.pop(queue, now)
        self._releasing.add(queue)
        assert not working or now - since >= DRAIN_S - 1e-9, f"{queue} released under a handler"

    def hears(self, queue: str) -> None:
        """The broker's word on a queue: given back, or taken away."""
        self._releasing.discard(queue)

    def finishes(self, queue: str, now: float) -> None:
        """A handler that outlasts the drain time is not waited for."""
        since = max(self._draining.get(queue, now), self._awake_since)
        assert now - since <= DRAIN_S + 1e-9, f"{queue} drained for {now - since:.1f} s"


class Absent:
    """Members that are away: their queues wait for them, and they are given no others."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        #: Who is away, and until when → the queues that wait for it.
        self._waiting: dict[tuple[str, float], set[str]] = {}

    def look(self, dispatcher: Dispatcher) -> None:
        waiting = {}
        for name, seen in dispatcher._members.items():
            if seen.gone_until is not None:
                queues = {q for q, member in dispatcher._target.items() if member == name}
                before = self._waiting.get((name, seen.gone_until), queues)
                assert queues <= before, f"{name} is away and is given {sorted(queues - before)}"
                waiting[name, seen.gone_until] = queues
        self._waiting = waiting
