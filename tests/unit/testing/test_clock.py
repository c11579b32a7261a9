from __future__ import annotations

from typing import Any

import pytest

from warren.broker.timers import Timers
from warren.errors import ConfigError
from warren.testing import FakeClock


class Watched:
    """Timers that a clock knows of."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.timers = Timers(clock)
        self.calls: list[tuple[str, int]] = []
        self.stop = clock.watch(self.timers.next_deadline_ms, self.timers.run_due)

    def after(self, delay_ms: int, name: str) -> None:
        self.timers.after(delay_ms, lambda: self.calls.append((name, self.clock.monotonic_ms())))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_time_stands_still_until_it_is_moved(clock: FakeClock) -> None:
    assert not clock.runs
    before = clock.monotonic_ms(), clock.wall_ms()
    assert (clock.monotonic_ms(), clock.wall_ms()) == before

    clock.advance(1.5)
    assert (clock.monotonic_ms(), clock.wall_ms()) == (before[0] + 1500, before[1] + 1500)


def test_the_day_it_begins_with_may_be_chosen() -> None:
    assert FakeClock(wall_s=86_400).wall_ms() == 86_400_000


def test_time_does_not_go_back(clock: FakeClock) -> None:
    with pytest.raises(ConfigError, match="can't go back"):
        clock.advance(-1)
    assert clock.monotonic_ms() == 0


@pytest.mark.parametrize("seconds", ["1", None, float("nan"), float("inf")])
def test_what_is_no_time_is_told(clock: FakeClock, seconds: Any) -> None:
    with pytest.raises(ConfigError, match=r"seconds \(advance\): .* is not a number of seconds"):
        clock.advance(seconds)
    assert clock.monotonic_ms() == 0


def test_what_is_due_has_happened_when_advance_returns(clock: FakeClock) -> None:
    watched = Watched(clock)
    watched.after(1000, "due")
    watched.after(1001, "not yet")
    clock.advance(1)

    assert watched.calls == [("due", 1000)]


def test_everything_happens_at_its_own_time(clock: FakeClock) -> None:
    watched = Watched(clock)
    for delay in (30, 10, 20):
        watched.after(delay, f"after {delay}")
    clock.advance(1)

    assert watched.calls == [("after 10", 10), ("after 20", 20), ("after 30", 30)]
    assert clock.monotonic_ms() == 1000


def test_what_a_call_sets_off_happens_in_the_same_advance(clock: FakeClock) -> None:
    watched = Watched(clock)
    watched.timers.after(100, lambda: watched.after(100, "second"))
    clock.advance(0.25)

    assert watched.calls == [("second", 200)]


def test_one_long_way_is_the_same_as_many_short_ones() -> None:
    def calls(*steps: float) -> list[tuple[str, int]]:
        clock = FakeClock()
        watched = Watched(clock)

        def beat() -> None:
            watched.calls.append(("beat", clock.monotonic_ms()))
            watched.timers.after(70, beat)

        watched.timers.after(70, beat)
        for step in steps:
            clock.advance(step)
        return watched.calls

    assert calls(1) == calls(*[0.1] * 10) == calls(*[0.001] * 1000)


def test_several_brokers_may_share_a_clock(clock: FakeClock) -> None:
    first, second = Watched(clock), Watched(clock)
    first.after(10, "first")
    second.after(20, "second")
    clock.advance(1)

    assert (first.calls, second.calls) == ([("first", 10)], [("second", 20)])


def test_who_has_stopped_watching_is_not_asked_any_more(clock: FakeClock) -> None:
    gone, stays = Watched(clock), Watched(clock)
    gone.after(10, "gone")
    stays.after(10, "stays")
    gone.stop()
    clock.advance(1)

    assert gone.calls == []
    assert stays.calls == [("stays", 10)]
