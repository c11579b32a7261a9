"""How often a query that finds nothing looks again."""

from __future__ import annotations

import time
from collections.abc import Callable

#: An idle query may take a tenth of the time for its looks, and sees what comes this late.
_TIMES, _AT_MOST_S = 10.0, 0.25


class Pace:
    """Spark asks an idle query a hundred times a second, each time for all of its queues.

    A look that found something is followed by the next at once; and what is asked seldom, by a
    trigger of its own, never waits.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._began = self._not_before = clock()

    def begin(self) -> None:
        """A look begins: when it is time for it."""
        early_s = self._not_before - self._clock()
        if early_s > 0:
            self._sleep(early_s)
        self._began = self._clock()

    def end(self, *, found: bool) -> None:
        now = self._clock()
        pause_s = 0.0 if found else min(_AT_MOST_S, _TIMES * (now - self._began))
        self._not_before = now + pause_s
