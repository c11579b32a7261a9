"""Time as an argument: what is built on a Clock can be frozen and moved in a test."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

#: By two clocks: one that goes on while the machine is suspended, where there is one, and the one
#: on the wall, which is put right when the machine itself was frozen.
Moment = tuple[float, float]
_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def moment() -> Moment:
    """Now, for who wants to know later how long ago that was, even if everything stood still."""
    awake = time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)
    return awake, time.time()


def seconds_since(then: Moment) -> float:
    """By the clock that says more."""
    return max(later - before for later, before in zip(moment(), then, strict=True))


class Clock(Protocol):
    """Where a broker gets its time from."""

    #: False if time stands still until somebody moves it.
    runs: bool

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back; only differences mean something."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since 1970, as shown to people and written into headers."""
        ...

    def watch(
        self, next_deadline_ms: Callable[[], int | None], run_due: Callable[[], None]
    ) -> Callable[[], None]:
        """Tell a clock that is moved by hand what waits for it; returns how to stop that."""
        ...


class SystemClock:
    """The machine's own clock."""

    runs = True

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def watch(
        self, next_deadline_ms: Callable[[], int | None], run_due: Callable[[], None]
    ) -> Callable[[], None]:
        """Nobody moves the system clock by hand."""
        return lambda: None
