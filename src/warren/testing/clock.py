"""A clock that stands still until it is told to move."""

from __future__ import annotations

import math
from collections.abc import Callable

from warren.errors import ConfigError


class FakeClock:
    """Virtual time for a broker: ``Broker(clock=FakeClock())``.

    ``advance`` returns when everything that became due (expiry, heartbeats, delayed confirms) has
    happened in the broker.
    """

    runs = False

    def __init__(self, wall_s: float = 1_700_000_000) -> None:
        self._now_ms = 0
        self._wall_ms = round(wall_s * 1000)
        self._watchers: list[tuple[Callable[[], int | None], Callable[[], None]]] = []

    def monotonic_ms(self) -> int:
        return self._now_ms

    def wall_ms(self) -> int:
        return self._wall_ms + self._now_ms

    def watch(
        self, next_deadline_ms: Callable[[], int | None], run_due: Callable[[], None]
    ) -> Callable[[], None]:
        watcher = (next_deadline_ms, run_due)
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def advance(self, seconds: float) -> None:
        """Move time forward."""
        _check(seconds)
        target = self._now_ms + round(seconds * 1000)
        while True:
            # Deadline by deadline: what one of them sets off may set the next.
            waiting = [next_deadline_ms() for next_deadline_ms, _ in self._watchers]
            due = min((at for at in waiting if at is not None and at <= target), default=target)
            self._now_ms = max(self._now_ms, due)
            for _, run_due in list(self._watchers):
                run_due()
            if due >= target:
                return


def _check(seconds: object) -> None:
    if not isinstance(seconds, int | float) or not math.isfinite(seconds):
        raise ConfigError("seconds", f"{seconds!r} is not a number of seconds", "advance")
    if seconds < 0:
        raise ConfigError("seconds", f"time can't go back ({seconds} s)", "advance")
