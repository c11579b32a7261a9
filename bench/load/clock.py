"""Time taken by a piece of load, and how much of it the load itself was busy."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Took:
    seconds: float
    busy: float  # share of that time the load's own process computed; near 1: it is the limit


class Stopwatch:
    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def stop(self) -> Took:
        seconds = time.perf_counter() - self._wall
        return Took(seconds, (time.process_time() - self._cpu) / seconds)
