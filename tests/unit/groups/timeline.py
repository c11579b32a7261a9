"""The clock of a made-up world: what happens when, and the story of what happened."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any


class Timeline:
    """Actions in the order of their time; of two at one time, the one that was planned first."""

    def __init__(self) -> None:
        self.now = 0.0
        self._count = 0
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._notes: list[tuple[float, str]] = []

    def after(self, delay: float, action: Callable[..., None], *args: Any) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + delay, self._count, action, args))

    def at(self, time: float, action: Callable[..., None], *args: Any) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, action, args))

    def run_until(self, end: float) -> None:
        events, pop = self._events, heapq.heappop
        while events and events[0][0] <= end:
            self.now, _, action, args = pop(events)
            action(*args)
        self.now = end

    def end(self) -> None:
        """Nothing more happens."""
        self._events.clear()  # and with them go their ways back to this world

    @property
    def events(self) -> int:
        """How many there were, those to come included."""
        return self._count

    def note(self, text: str) -> None:
        self._notes.append((self.now, text))

    @property
    def trace(self) -> list[str]:
        """The story so far."""
        return [f"{at:8.3f} {text}" for at, text in self._notes]
