"""Whose turn it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.broker.queues.rota import Rota


class FakeConsumer:
    """Takes messages while it has room."""

    def __init__(self, name: str, priority: int = 0, room: int = 1000) -> None:
        self.name, self.priority, self.room, self.parked = name, priority, room, False

    def can_take(self) -> bool:
        return self.room > 0

    def __repr__(self) -> str:
        return self.name


def rota(*consumers: FakeConsumer, single: bool = False, by_priority: bool = True) -> Any:
    made: Any = Rota(single, by_priority=by_priority)
    for consumer in consumers:
        made.add(consumer)
    return made


def turns(rota: Any, count: int) -> str:
    """Who is asked, in order; each takes one message."""
    names = ""
    for _ in range(count):
        consumer = rota.next()
        if consumer is None:
            break
        consumer.room -= 1
        names += consumer.name
    return names


def test_nobody_is_asked_when_there_is_nobody() -> None:
    assert rota().next() is None


def test_equals_take_turns() -> None:
    assert turns(rota(*map(FakeConsumer, "abc")), 7) == "abcabca"


def test_a_newcomer_comes_last() -> None:
    made = rota(*map(FakeConsumer, "ab"))
    assert turns(made, 1) == "a"
    made.add(FakeConsumer("c"))

    assert turns(made, 4) == "bacb"


def test_a_higher_priority_gets_everything_it_can_take() -> None:
    low, high = FakeConsumer("l"), FakeConsumer("h", priority=5, room=3)

    assert turns(rota(low, high), 6) == "hhhlll"


def test_who_can_take_again_is_asked_again() -> None:
    low, high = FakeConsumer("l"), FakeConsumer("h", priority=5, room=1)
    made = rota(low, high)
    assert turns(made, 2) == "hl"

    high.room = 1
    made.wake(high)
    assert turns(made, 2) == "hl"


def test_who_is_busy_is_not_asked_again_until_it_wakes() -> None:
    busy, free = FakeConsumer("b", room=0), FakeConsumer("f")
    made = rota(busy, free)

    assert turns(made, 3) == "fff"
    busy.room = 9  # it says nothing
    assert turns(made, 2) == "ff"
    made.wake(busy)
    assert turns(made, 3) == "fbf"


def test_who_has_left_is_never_asked() -> None:
    a, b, c = map(FakeConsumer, "abc")
    made = rota(a, b, c)
    made.remove(b)

    assert turns(made, 4) == "acac"
    assert list(made) == [a, c]
    assert len(made) == 2


def test_who_left_while_busy_does_not_come_back_by_waking() -> None:
    a, b = FakeConsumer("a", room=0), FakeConsumer("b")
    made = rota(a, b)
    assert turns(made, 1) == "b"
    made.remove(a)
    a.room = 5
    made.wake(a)

    assert turns(made, 3) == "bbb"


@pytest.mark.parametrize(
    ("count", "single", "alone"), [(1, False, True), (2, False, False), (2, True, True)]
)
def test_one_that_gets_everything_is_alone(count: int, single: bool, alone: bool) -> None:
    assert rota(*map(FakeConsumer, "ab"[:count]), single=single).alone is alone


# -- a single active consumer --------------------------------------------------------------------
def test_only_the_first_is_active() -> None:
    made = rota(FakeConsumer("a", room=2), FakeConsumer("b"), single=True)

    assert turns(made, 5) == "aa"
    assert made.active.name == "a"


def test_a_higher_priority_does_not_take_over() -> None:
    assert turns(rota(FakeConsumer("a"), FakeConsumer("b", 9), single=True), 2) == "aa"


@pytest.mark.parametrize(("by_priority", "successor"), [(True, "c"), (False, "b")])
def test_the_next_active_is_the_longest_waiting_of_the_highest_priority_if_that_counts(
    by_priority: bool, successor: str
) -> None:
    a, b, c, d = FakeConsumer("a"), FakeConsumer("b"), FakeConsumer("c", 9), FakeConsumer("d", 9)
    made = rota(a, b, c, d, single=True, by_priority=by_priority)
    made.remove(a)

    assert made.active.name == successor
    assert turns(made, 2) == successor * 2


def test_when_all_have_left_nobody_is_active() -> None:
    a = FakeConsumer("a")
    made = rota(a, single=True)
    made.remove(a)

    assert made.active is None
    assert made.next() is None


# -- any order of events -------------------------------------------------------------------------
EVENTS = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "next", "free"]), st.integers(0, 5)), max_size=60
)


@given(EVENTS)
def test_the_one_asked_is_there_has_room_and_the_highest_priority(
    events: list[tuple[str, int]],
) -> None:
    made = rota()
    there: list[FakeConsumer] = []
    for event, number in events:
        if event == "add":
            there.append(FakeConsumer(f"c{len(there)}", priority=number % 3, room=number))
            made.add(there[-1])
        elif event == "remove" and there:
            made.remove(there.pop(number % len(there)))
        elif event == "free" and there:
            consumer = there[number % len(there)]
            consumer.room += 1
            if consumer.parked:
                made.wake(consumer)
        elif event == "next":
            able = [consumer for consumer in there if consumer.room]
            asked = made.next()
            if not able:
                assert asked is None
            else:
                assert asked in able
                assert asked.priority == max(consumer.priority for consumer in able)
                asked.room -= 1
        assert list(made) == there


def test_where_nobody_takes_turns_waking_adds_nobody() -> None:
    rota = Rota(single=False, turns=False)
    consumer = FakeConsumer("a")
    rota.add(consumer)
    for _ in range(3):
        consumer.parked = True
        rota.wake(consumer)
    rota.remove(consumer)
    assert len(rota) == 0
    assert rota.next() is None
