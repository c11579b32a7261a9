from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.broker.timers import Timers
from warren.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def timers(clock: FakeClock) -> Timers:
    return Timers(clock)


def test_nothing_waits_at_first(timers: Timers) -> None:
    assert timers.next_deadline_ms() is None
    timers.run_due()


def test_a_call_happens_when_it_is_due_and_once(clock: FakeClock, timers: Timers) -> None:
    calls: list[int] = []
    timers.after(100, lambda: calls.append(clock.monotonic_ms()))
    assert timers.next_deadline_ms() == 100

    clock.advance(0.099)
    timers.run_due()
    assert calls == []
    clock.advance(0.001)
    timers.run_due()
    timers.run_due()
    assert calls == [100]
    assert timers.next_deadline_ms() is None


def test_a_cancelled_call_never_happens(clock: FakeClock, timers: Timers) -> None:
    calls: list[str] = []
    timers.after(10, lambda: calls.append("cancelled")).cancel()
    timers.after(20, lambda: calls.append("kept"))

    assert timers.next_deadline_ms() == 20
    clock.advance(1)
    timers.run_due()
    assert calls == ["kept"]


def test_a_call_may_cancel_another_that_is_due_at_the_same_time(
    clock: FakeClock, timers: Timers
) -> None:
    calls: list[str] = []
    later = timers.after(20, lambda: calls.append("later"))
    timers.after(10, later.cancel)
    clock.advance(1)
    timers.run_due()

    assert calls == []


def test_a_call_that_asks_to_be_called_at_once_is_called_in_the_same_run(
    clock: FakeClock, timers: Timers
) -> None:
    calls: list[str] = []
    timers.after(10, lambda: timers.after(0, lambda: calls.append("again")))
    clock.advance(1)
    timers.run_due()

    assert calls == ["again"]


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=60))
def test_calls_happen_in_the_order_they_are_due_and_equals_as_they_came(
    delays: list[tuple[int, bool]],
) -> None:
    clock = FakeClock()
    timers = Timers(clock)
    calls: list[tuple[int, int]] = []
    for number, (delay, cancelled) in enumerate(delays):
        timer = timers.after(delay, lambda entry=(delay, number): calls.append(entry))
        if cancelled:
            timer.cancel()
    clock.advance(1)
    timers.run_due()

    kept = [(delay, number) for number, (delay, gone) in enumerate(delays) if not gone]
    assert calls == sorted(kept)


def test_cancelled_calls_take_no_room_for_long(timers: Timers) -> None:
    timers.after(10, lambda: None)
    for _ in range(100_000):
        timers.after(10_000, lambda: None).cancel()

    assert len(timers._heap) < 5000
