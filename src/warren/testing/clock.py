"""A clock that stands still until it is told to move."""

from __future__ import annotations

from collections.abc import Callable


class FakeClock:
    """Virtual time for a broker: ``Broker(clock=FakeClock())``.

    ``advance`` returns when everything that became due (expiry, heartbeats, delayed confirms) has
    happened in the broker.
    """

    runs = False

    def __init__(self, wall_s: float = 1_700_000_000) -> None:
        self._now_ms = 0
        self._wall_ms = round(wall_s * 1000)
        self._jumps: list[Callable[[], None]] = []

    def monotonic_ms(self) -> int:
        return self._now_ms

    def wall_ms(self) -> int:
        return self._wall_ms + self._now_ms

    def on_jump(self, callback: Callable[[], None]) -> None:
        self._jumps.append(callback)

    def advance(self, seconds: float) -> None:
        """Move time forward."""
        if seconds < 0:
            raise ValueError(f"time can't go back ({seconds} s)")
        self._now_ms += round(seconds * 1000)
        for callback in self._jumps:
            callback()
