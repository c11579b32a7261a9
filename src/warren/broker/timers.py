"""Everything that must happen later, in one heap; the shell keeps one real timer for all of it."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from warren.clock import Clock


class Timer:
    """One call that is due at a time; ``cancel`` makes it never happen."""

    __slots__ = ("callback", "deadline_ms", "number")

    def __init__(self, deadline_ms: int, number: int, callback: Callable[[], None]) -> None:
        self.deadline_ms = deadline_ms
        self.number = number
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None

    def __lt__(self, other: Timer) -> bool:
        return (self.deadline_ms, self.number) < (other.deadline_ms, other.number)


class Timers:
    """Calls in the order they are due."""

    #: Cancelled timers stay in the heap until it is mostly made of them.
    _SWEEP_AT = 1024

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._heap: list[Timer] = []
        self._sweep_at = self._SWEEP_AT
        self._made = 0

    def after(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        self._made += 1
        timer = Timer(self.clock.monotonic_ms() + delay_ms, self._made, callback)
        heappush(self._heap, timer)
        if len(self._heap) > self._sweep_at:
            self._heap = [timer for timer in self._heap if timer.callback is not None]
            heapify(self._heap)
            self._sweep_at = max(self._SWEEP_AT, 2 * len(self._heap))
        return timer

    def next_deadline_ms(self) -> int | None:
        """When ``run_due`` is to be called next, on the clock's monotonic time."""
        while self._heap and self._heap[0].callback is None:
            heappop(self._heap)
        return self._heap[0].deadline_ms if self._heap else None

    def run_due(self) -> None:
        now = self.clock.monotonic_ms()
        while self._heap and self._heap[0].deadline_ms <= now:
            callback = heappop(self._heap).callback
            if callback is not None:
                callback()
