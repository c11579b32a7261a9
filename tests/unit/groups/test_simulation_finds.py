"""What the simulation is worth: rules of a group are broken, one at a time, and it must notice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.unit.groups.cast import Process
from tests.unit.groups.schedules import run_schedule
from tests.unit.groups.simulation import World
from warren.groups import dispatcher
from warren.groups.coordination.base import Assignment
from warren.groups.dispatcher import Dispatcher
from warren.groups.member import TABLE, Claim, Do, Event, Member
from warren.groups.seat import Seat

#: Each is found long before.
SCHEDULES = 1_000
TABLES = {
    "claims again what it has not yet given back": (
        (Claim.RELEASING, Event.WANT),
        (Claim.CLAIMING, Do.CLAIM),
    ),
    "releases under its handlers": ((Claim.HELD, Event.UNWANT), (Claim.RELEASING, Do.RELEASE)),
    "drains for ever": ((Claim.DRAINING, Event.DUE), (Claim.DRAINING, None)),
    "keeps what it no longer wants": ((Claim.CANCELLING, Event.CLAIMED), (Claim.FREE, None)),
    "does not notice that a queue was taken": ((Claim.HELD, Event.LOST), (Claim.HELD, None)),
    "claims once and never again": ((Claim.WAITING, Event.DUE), (Claim.WAITING, None)),
}


def _first_failure() -> str:
    for seed in range(SCHEDULES):
        try:
            run_schedule(seed)
        except AssertionError as failure:
            return str(failure)
    return "nothing was found"


@pytest.mark.parametrize("broken", TABLES)
def test_a_wrong_step_of_a_member_is_found(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, *TABLES[broken])
    assert _first_failure().startswith("seed ")


def _take_up_any(self: Member, assignment: Assignment, now: float) -> bool:
    self._stamp = min(self._stamp, assignment.stamp)
    return ASSIGNED(self, assignment, now)


def _give_before_it_is_free(self: Dispatcher) -> dict[str, set[str]]:
    should: dict[str, set[str]] = {name: set() for name in self._members}
    for queue, member in self._target.items():
        should[member].add(queue)
    return should


def _give_to_all(self: Dispatcher) -> dict[str, set[str]]:
    return {name: set(self._target) for name in self._members}


def _lose_what_is_worked_on(self: World, name: str, process: Process) -> None:
    self.queues[name].holder = None
    process.working.pop(name, None)


def _share_with_all(self: Dispatcher, keep: Sequence[str] = ()) -> dict[str, str]:
    weights = {name: seen.report.weight for name, seen in self._members.items()}
    return self._shared_out(list(self._queues), weights, keep)


def _do_nothing(*_: object, **__: object) -> None:
    pass


ASSIGNED = Member.assigned
METHODS: dict[str, tuple[type, str, Callable[..., object]]] = {
    "takes up an older assignment": (Member, "assigned", _take_up_any),
    "gives a queue before its holder let go": (Dispatcher, "_should_hold", _give_before_it_is_free),
    "gives a queue to two": (Dispatcher, "_should_hold", _give_to_all),
    "gives a queue to one that is away": (Dispatcher, "_wanted_target", _share_with_all),
    "does not care who has gone": (Dispatcher, "left", _do_nothing),
    "shows no state": (Seat, "_state_to_show", _do_nothing),
    "loses what a dead member worked on": (World, "_give_back", _lose_what_is_worked_on),
}


@pytest.mark.parametrize("broken", METHODS)
def test_a_broken_rule_is_found(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*METHODS[broken])
    assert _first_failure().startswith("seed ")


def test_a_lost_assignment_that_is_not_sent_again_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatcher, "RESEND_S", float("inf"))
    assert _first_failure().startswith("seed ")


def test_a_failing_seed_fails_again_with_the_same_story(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dispatcher, "left", _do_nothing)
    first = _first_failure()
    seed = int(first.removeprefix("seed ").partition(":")[0])
    with pytest.raises(AssertionError) as again:
        run_schedule(seed)
    assert str(again.value) == first
    assert " joins\n" in first
