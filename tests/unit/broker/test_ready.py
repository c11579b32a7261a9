"""The order in which a queue gives its messages out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.unit.broker.messages import message
from warren.broker.queues.ready import Entry, PagedReady, PlainReady, PriorityReady, Ready

MESSAGES = [message(priority=priority) for priority in range(11)]
HIGHEST = 4
Any = Ready | PlainReady | PriorityReady


def entry(position: int, priority: int = 0, expires_at: int = 0, returns: int = 0) -> Entry:
    return position, MESSAGES[priority], expires_at, returns


def positions(ready: Any) -> list[int]:
    """Take everything out."""
    return [ready.pop()[0] for _ in range(len(ready))]


@pytest.mark.parametrize(
    "make",
    [Ready, PlainReady, lambda: PriorityReady(HIGHEST)],
    ids=["any-positions", "plain", "priority"],
)
class TestEach:
    """What holds of each kind."""

    def test_first_in_first_out(self, make: Callable[[], Any]) -> None:
        ready = make()
        for position in (1, 2, 3):
            ready.push(entry(position))

        assert ready.peek() == entry(1)
        assert positions(ready) == [1, 2, 3]
        assert not ready.fill()

    def test_what_is_given_back_returns_to_its_place(self, make: Callable[[], Any]) -> None:
        ready = make()
        for position in range(1, 6):
            ready.push(entry(position))
        taken = [ready.pop() for _ in range(4)]
        for which in (2, 0, 3):
            ready.give_back(taken[which], taken[which][0])

        assert [found[0] for found in ready] == [1, 3, 4, 5]
        assert positions(ready) == [1, 3, 4, 5]

    def test_nothing_can_be_taken_from_nothing(self, make: Callable[[], Any]) -> None:
        ready = make()
        with pytest.raises(IndexError):
            ready.pop()
        with pytest.raises(IndexError):
            ready.peek()

    def test_clear_leaves_nothing(self, make: Callable[[], Any]) -> None:
        ready = make()
        for position in (1, 2):
            ready.push(entry(position))
        ready.give_back(ready.pop(), 1)
        ready.clear()

        assert len(ready) == 0
        assert list(ready) == []
        ready.push(entry(3))
        assert positions(ready) == [3]


def test_the_highest_priority_first() -> None:
    ready = PriorityReady(HIGHEST)
    for position, priority in enumerate([0, 3, 1, 3, 0]):
        ready.push(entry(position, priority))

    assert positions(ready) == [1, 3, 2, 0, 4]


def test_a_priority_above_the_highest_counts_as_the_highest() -> None:
    ready = PriorityReady(HIGHEST)
    for position, priority in enumerate([HIGHEST, 10, HIGHEST]):
        ready.push(entry(position, priority))

    assert positions(ready) == [0, 1, 2]


class Model(RuleBasedStateMachine):
    """A queue beside a sorted list: (minus priority, position)."""

    def __init__(self) -> None:
        super().__init__()
        self.ready: Any = self.make()
        self.waiting: list[tuple[int, int]] = []
        self.pushed: dict[int, Entry] = {}
        self.taken: list[Entry] = []
        self.position = 0

    def make(self) -> Any:
        return Ready()

    def key(self, taken: Entry) -> tuple[int, int]:
        return 0, taken[0]

    @rule(
        priority=st.integers(0, 10),
        expires_at=st.sampled_from([0, 0, 1, 2]),
        returns=st.sampled_from([0, 0, 1]),
    )
    def push(self, priority: int, expires_at: int, returns: int) -> None:
        self.position += 1
        fresh = entry(self.position, priority, expires_at, returns)
        self.pushed[self.position] = fresh
        self.ready.push(fresh)
        self.waiting.append(self.key(fresh))
        self.waiting.sort()

    @precondition(lambda self: self.waiting)
    @rule()
    def pop(self) -> None:
        seen = self.ready.peek()
        taken = self.ready.pop()
        assert taken == seen == self.pushed[taken[0]]
        assert self.key(taken) == self.waiting.pop(0)
        self.taken.append(taken)

    @precondition(lambda self: self.waiting)
    @rule(limit=st.integers(1, 5))
    def pop_a_run(self, limit: int) -> None:
        run = list(self.ready.run(limit))
        assert 1 <= len(run) <= min(limit, len(self.waiting))
        for taken in run:
            assert taken == self.pushed[taken[0]]
            assert self.key(taken) == self.waiting.pop(0)
        self.taken += run

    @precondition(lambda self: self.waiting)
    @rule(limit=st.integers(1, 5))
    def break_a_run_off(self, limit: int) -> None:
        """What was not asked for is not taken."""
        taken = next(self.ready.run(limit))
        assert self.key(taken) == self.waiting.pop(0)
        self.taken.append(taken)

    @rule()
    def clear(self) -> None:
        self.ready.clear()
        self.waiting.clear()

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        taken = self.taken.pop(data.draw(st.integers(0, len(self.taken) - 1)))
        returned = (taken[0], taken[1], taken[2], taken[3] + 1)
        self.pushed[returned[0]] = returned
        self.ready.give_back(returned, returned[0])
        self.waiting.append(self.key(returned))
        self.waiting.sort()

    @precondition(lambda self: self.taken)
    @rule()
    def settle(self) -> None:
        self.taken.pop()

    @invariant()
    def same(self) -> None:
        assert len(self.ready) == len(self.waiting)
        assert self.ready.fill() == bool(self.waiting)
        found = list(self.ready)
        assert [self.key(one) for one in found] == self.waiting
        assert all(one == self.pushed[one[0]] for one in found)


class PlainModel(Model):
    def make(self) -> PlainReady:
        return PlainReady()


class PriorityModel(Model):
    def make(self) -> PriorityReady:
        return PriorityReady(HIGHEST)

    def key(self, taken: Entry) -> tuple[int, int]:
        return -min(taken[1].traits.priority, HIGHEST), taken[0]


TestOrder = Model.TestCase
TestPlainOrder = PlainModel.TestCase
TestPriorityOrder = PriorityModel.TestCase


# -- a part on disk ------------------------------------------------------------------------------
@given(st.lists(st.booleans(), max_size=40), st.integers(1, 5))
def test_what_lies_on_disk_comes_behind_what_is_in_memory(in_memory: list[bool], page: int) -> None:
    """Once something lies on disk only, everything behind it does until it was read."""
    disk: list[Entry] = []

    def load(after: int) -> list[Entry]:
        return [found for found in disk if found[0] > after][:page]

    ready = PagedReady(load)
    for position, keep in enumerate(in_memory, 1):
        if keep and not ready.paged:
            ready.push(entry(position))
        else:
            disk.append(entry(position))
            ready.page(1, entry(position))
    assert not ready.written(1)

    assert len(ready) == len(in_memory)
    found = []
    while ready.fill():
        found.append(ready.pop()[0])
    assert found == list(range(1, len(in_memory) + 1))
    assert len(ready) == 0


def test_what_is_on_its_way_to_the_disk_can_be_taken_before_it_is_there() -> None:
    def load(after: int) -> list[Entry]:
        return [found for _, found in ready.on_their_way]

    ready = PagedReady(load)
    ready.page(1, entry(1))
    ready.page(2, entry(2))
    assert ready.fill()

    assert positions(ready) == [1, 2]
    assert not ready.written(0)


def test_what_is_on_disk_is_in_memory_no_longer() -> None:
    ready = PagedReady(lambda after: [])
    ready.page(1, entry(1))
    ready.page(2, entry(2))

    assert ready.written(1)
    assert [batch for batch, _ in ready.on_their_way] == [2]
    assert len(ready) == 2


def test_nothing_that_was_dropped_is_read_again() -> None:
    disk = [entry(1), entry(2), entry(3)]
    ready = PagedReady(lambda after: [found for found in disk if found[0] > after])
    ready.paged = 2
    ready.clear(upto=2)
    assert not ready.fill()

    ready.page(1, entry(3))
    assert ready.fill()
    assert positions(ready) == [3]
