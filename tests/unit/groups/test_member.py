"""One member's queues: what the table says, and what it never lets happen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.groups.coordination.base import Assignment, Report, Stamp
from warren.groups.member import HOLDING, TABLE, Claim, Do, Event, Member, Step


def member(drain_s: float = 30.0) -> Member:
    return Member(Report("m"), drain_s=drain_s)


def give(who: Member, *queues: str, at: int = 1, step: int = 0, now: float = 0.0) -> bool:
    return who.assigned(Assignment("m", Stamp(at, step), queues), now)


def holding(who: Member, *queues: str) -> Member:
    give(who, *queues)
    for queue in queues:
        who.claimed(queue, 0.0)
    who.take_steps()
    return who


def test_an_assigned_queue_is_claimed_and_worked_on_after_the_brokers_yes() -> None:
    who = member()
    give(who, "q")
    assert who.take_steps() == [Step(Do.CLAIM, "q")]
    assert who.report().held == ()
    who.claimed("q", 0.0)
    assert who.take_steps() == [Step(Do.WORK, "q")]
    assert who.report().held == ("q",)


def test_rule_4_a_queue_is_drained_before_it_is_released_and_held_until_the_broker_has_it() -> None:
    who = holding(member(), "q")
    give(who, at=2)
    assert who.take_steps() == [Step(Do.DRAIN, "q")]
    assert who.report().held == ("q",)
    who.drained("q", 1.0)
    assert who.take_steps() == [Step(Do.RELEASE, "q")]
    assert who.report().held == ("q",)
    who.released("q", 1.0)
    assert who.report().held == ()
    assert who.idle


def test_rule_4_the_drain_time_bounds_a_handover() -> None:
    who = holding(member(drain_s=5.0), "q")
    give(who, at=2, now=10.0)
    assert who.next_deadline() == 15.0
    who.run_due(14.9)
    assert who.take_steps() == [Step(Do.DRAIN, "q")]
    who.run_due(15.0)
    assert who.take_steps() == [Step(Do.RELEASE, "q")]


def test_rule_4_queues_that_stay_are_not_touched_by_a_handover() -> None:
    who = holding(member(), "stays", "goes")
    give(who, "stays", at=2)
    assert who.take_steps() == [Step(Do.DRAIN, "goes")]


def test_a_queue_that_comes_back_while_it_drains_is_released_and_claimed_anew() -> None:
    who = holding(member(), "q")
    give(who, at=2)
    give(who, "q", at=3)
    who.drained("q", 0.0)
    who.released("q", 0.0)
    assert [step.do for step in who.take_steps()] == [Do.DRAIN, Do.RELEASE, Do.CLAIM]


def test_a_queue_called_off_while_it_is_claimed_is_released_when_the_claim_succeeds() -> None:
    who = member()
    give(who, "q")
    give(who, at=2)
    assert who.report().held == ("q",)  # it may be ours any moment
    who.claimed("q", 0.0)
    assert [step.do for step in who.take_steps()] == [Do.CLAIM, Do.RELEASE]
    who.released("q", 0.0)
    assert who.idle


def test_a_refused_claim_is_tried_again_sooner_at_first_than_later() -> None:
    who, now, waits = member(), 0.0, []
    give(who, "q")
    for _ in range(12):
        assert who.take_steps() == [Step(Do.CLAIM, "q")]
        who.refused("q", "in exclusive use", now)
        due = who.next_deadline()
        assert due is not None
        waits.append(round(due - now, 6))
        now = due
        who.run_due(now)
    assert waits[0] == pytest.approx(0.01)
    assert waits == sorted(waits)
    assert waits[-1] == pytest.approx(2.0)


def test_rule_8_a_refusal_that_lasts_is_reported_with_the_reason() -> None:
    who, now = member(), 0.0
    give(who, "q")
    for _ in range(5):
        who.refused("q", "queue 'q' in exclusive use", now)
        now += 10
        who.run_due(now)
    assert who.report().refused == {"q": "queue 'q' in exclusive use"}
    who.claimed("q", now)
    assert who.report().refused == {}


def test_seed_bug_protection_is_lifted_when_a_claim_fails() -> None:
    """The seed kept a queue marked as its own after a failed subscribe, and nobody got it."""
    who = member()
    give(who, "q")
    who.refused("q", "no", 0.0)
    assert who.report().held == ()
    give(who, at=2)
    assert who.idle


def test_what_the_broker_takes_away_is_forgotten_and_claimed_again() -> None:
    who = holding(member(), "q")
    who.lost("q", "consumer cancelled", 0.0)
    assert who.take_steps() == [Step(Do.FORGET, "q")]
    assert who.report().held == ()
    who.run_due(1.0)
    assert who.take_steps() == [Step(Do.CLAIM, "q")]


def test_an_older_assignment_is_ignored() -> None:
    who = member()
    assert give(who, "new", at=5, step=2)
    assert not give(who, "old", at=5, step=1)
    assert not give(who, "old", at=4, step=9)
    assert who.state_of("old") is Claim.FREE
    assert who.report().stamp == Stamp(5, 2)


def test_the_same_assignment_again_changes_nothing() -> None:
    who = holding(member(), "q")
    who.take_news()
    assert give(who, "q")
    assert who.take_steps() == []
    assert not who.take_news()


def test_a_member_that_leaves_gives_all_away_and_takes_up_nothing() -> None:
    who = holding(member(), "a", "b")
    who.leave(0.0)
    give(who, "a", "b", "c", at=9)
    assert who.take_steps() == [Step(Do.DRAIN, "a"), Step(Do.DRAIN, "b")]
    assert who.report().weight == 0.0
    assert who.report().stamp == Stamp(9, 0)


def test_rule_10_a_static_member_that_leaves_keeps_its_weight_and_its_queues_wait() -> None:
    who = Member(Report("m", weight=2.0, static=True, session_s=5.0))
    who.leave(0.0)
    assert who.report().weight == 2.0


def test_with_the_connection_all_is_gone_and_generations_begin_anew() -> None:
    who = holding(member(), "a")
    give(who, "a", "b", at=7)
    who.take_steps()
    who.disconnected("cut", 0.0)
    assert who.take_steps() == [Step(Do.FORGET, "a")]
    assert who.idle
    assert give(who, "a", at=1)


def test_every_state_can_be_left_by_every_way_a_queue_can_end() -> None:
    """No state swallows an UNWANT or a LOST that matters: a queue never hangs."""
    for state in Claim:
        wanted = {Claim.CLAIMING, Claim.HELD, Claim.DRAINING_BACK, Claim.RELEASING_BACK}
        if state in wanted | {Claim.WAITING}:
            assert (state, Event.UNWANT) in TABLE
        if state in HOLDING | {Claim.CLAIMING}:
            assert (state, Event.LOST) in TABLE


HAPPENINGS = st.lists(
    st.tuples(st.sampled_from([*Event, "assign", "call off"]), st.floats(0, 3)), max_size=40
)


@given(HAPPENINGS)
def test_a_claim_is_never_asked_for_twice_and_work_follows_a_claim(happenings: list) -> None:
    """Whatever happens in whatever order, the shell is never asked for nonsense."""
    who, now, generation, at_broker = member(drain_s=2.0), 0.0, 0, "free"
    for event, passed in happenings:
        now += passed
        if event in ("assign", "call off"):
            generation += 1
            give(who, *(["q"] if event == "assign" else []), at=generation, now=now)
        elif event is Event.CLAIMED and at_broker == "asked":
            at_broker = "ours"
            who.claimed("q", now)
        elif event is Event.REFUSED and at_broker == "asked":
            at_broker = "free"
            who.refused("q", "no", now)
        elif event is Event.DRAINED and at_broker == "draining":
            who.drained("q", now)
        elif event is Event.RELEASED and at_broker == "closing":
            at_broker = "free"
            who.released("q", now)
        elif event is Event.LOST and at_broker in ("ours", "draining"):
            at_broker = "free"
            who.lost("q", "cut", now)
        elif event is Event.DUE:
            who.run_due(now)
        for step in who.take_steps():
            at_broker = _carried_out(step.do, at_broker)


def _carried_out(do: Do, at_broker: str) -> str:
    allowed, after = {
        Do.CLAIM: (("free",), "asked"),
        Do.WORK: (("ours",), "ours"),
        Do.DRAIN: (("ours",), "draining"),
        Do.RELEASE: (("ours", "draining"), "closing"),
        Do.FORGET: (("free",), "free"),
    }[do]
    assert at_broker in allowed, f"{do} while {at_broker}"
    return after
