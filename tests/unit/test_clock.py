from __future__ import annotations

import time

import pytest

from warren.clock import Clock, SystemClock, moment, seconds_since


def test_the_system_clock_tells_the_time_in_milliseconds() -> None:
    clock: Clock = SystemClock()

    assert abs(clock.wall_ms() - time.time() * 1000) < 1000
    assert abs(clock.monotonic_ms() - time.monotonic() * 1000) < 1000
    assert isinstance(clock.wall_ms(), int)


def test_the_system_clock_runs_by_itself() -> None:
    assert SystemClock().runs


def test_nobody_is_asked_by_the_system_clock() -> None:
    asked: list[str] = []
    stop = SystemClock().watch(lambda: asked.append("deadline"), lambda: asked.append("due"))  # type: ignore[func-returns-value,arg-type,return-value]
    stop()

    assert asked == []


@pytest.mark.parametrize(("awake_s", "wall_s"), [(5.0, 5.0), (5.0, 2.0), (0.0, 5.0), (5.0, -60.0)])
def test_how_long_ago_something_was_is_said_by_the_clock_that_went_on(
    awake_s: float, wall_s: float
) -> None:
    awake, wall = moment()

    assert seconds_since((awake - awake_s, wall - wall_s)) == pytest.approx(5.0, abs=1.0)
