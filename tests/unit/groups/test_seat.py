"""One process in a group: what outlives its terms as the dispatcher."""

from __future__ import annotations

from warren.groups.causes import Cause
from warren.groups.coordination.base import (
    Command,
    Commanded,
    Deposed,
    Elected,
    Left,
    Report,
    Reported,
)
from warren.groups.dispatcher import Policy
from warren.groups.member import Member
from warren.groups.roster import QueueFacts
from warren.groups.seat import Seat

ME, OTHER, STATIC = Report("m1"), Report("m2"), Report("m3", static=True, session_s=5.0)


def elected(*members: Report) -> Seat:
    seat = Seat("g", Member(ME), queues=["a", "b"], policy=Policy(min_interval_s=3.0))
    seat.hear(Elected(0, (ME, *members)), 0.0)
    return seat


def test_a_rebalance_is_counted_once_under_the_gravest_of_its_reasons() -> None:
    seat = elected(OTHER)
    seat.hear(Reported(STATIC), 1.0)  # waits for min_interval_s
    seat.hear(Left("m2", died=True), 2.0)
    assert seat.rebalances == {Cause.ELECTION: 1, Cause.DIED: 1}


def test_rebalances_are_counted_over_all_terms_as_the_dispatcher() -> None:
    seat = elected()
    seat.hear(Deposed("cut off"), 1.0)
    seat.hear(Elected(7, (ME, OTHER)), 2.0)
    seat.hear(Left("m2", died=False), 3.0)
    assert seat.rebalances == {Cause.ELECTION: 2, Cause.LEFT: 1}


def test_each_kind_of_reason_has_its_count() -> None:
    seat = elected(OTHER, STATIC)
    now = 0.0
    for event in (
        Reported(Report("m4")),
        Reported(OTHER._replace(weight=2.0)),
        Commanded(Command("drain", member="m2")),
        Commanded(Command("move", queue="a", member="m4")),
        Commanded(Command("move", queue="a", member="m3")),
        Left("m3", died=True),
    ):
        now += 10.0
        seat.hear(event, now)
        seat.take_output(now)
    seat.queues_are({"a": QueueFacts(), "b": QueueFacts(), "c": QueueFacts()}, now + 1.0)
    seat.take_output(now + 1.0)
    seat.take_output(now + 6.0)  # the session of m3 has run out
    assert {cause.value: count for cause, count in seat.rebalances.items()} == {
        "election": 1,
        "joined": 1,
        "weight": 1,
        "drain": 1,
        "move": 2,
        "queues": 1,
        "expired": 1,
    }
