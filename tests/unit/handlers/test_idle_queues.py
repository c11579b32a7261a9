from __future__ import annotations

import pytest

from warren.groups.coordination.base import GroupState, MemberState, QueueState
from warren.handlers.idle_queues import MOST, tell


def group(*queues: QueueState) -> GroupState:
    members = (MemberState("ann", 1), MemberState("bob", 1, present=False))
    return GroupState("billing", members=members, queues=queues)


def test_a_queue_is_told_once_and_again_when_it_was_well_meanwhile(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad, well = group(QueueState("q", problem="there is no queue 'q'")), group(QueueState("q"))
    told = tell(bad, set())
    assert tell(bad, told) == told == {"q"}
    assert caplog.messages == ["nobody works on queue q: there is no queue 'q'"]
    tell(bad, tell(well, told))
    assert len(caplog.messages) == 2


def test_what_waits_for_its_member_to_come_back_is_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert tell(group(QueueState("q", "bob", problem="waits for bob")), set()) == set()
    assert not caplog.messages


def test_of_very_many_only_a_few_are_named(caplog: pytest.LogCaptureFixture) -> None:
    queues = [QueueState(f"q{number}", problem="taken") for number in range(MOST + 7)]
    told = tell(group(*queues), set())
    assert len(told) == MOST + 7
    assert len(caplog.messages) == MOST + 1
    assert caplog.messages[-1] == "nor on 7 more: warren group describe billing has them"
