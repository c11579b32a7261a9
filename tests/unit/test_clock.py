from __future__ import annotations

import time

from warren.clock import Clock, SystemClock


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
