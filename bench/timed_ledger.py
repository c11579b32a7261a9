"""A ledger that knows how long it was at work: what exactly-once costs a drain."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from warren.spark.ledger.files import Files
from warren.spark.ledger.ledger import Ledger, Settled, Shelves
from warren.spark.ledger.segment import Segment


class TimedLedger(Ledger):
    """Counts the time in which something is encoded, written, marked, listed, read or synced, by
    one thread or by several at once."""

    def __init__(self, files: Files) -> None:
        super().__init__(files)
        self.took_s = 0.0
        self._lock = threading.Lock()
        self._working = 0
        self._since = 0.0

    def write(self, segment: Segment) -> bool:
        with self._timed():
            return super().write(segment)

    def write_together(self, segments: Sequence[Segment]) -> list[bool]:
        with self._timed():
            return super().write_together(segments)

    def settle_all(self, settled: Sequence[Settled]) -> None:
        with self._timed():
            super().settle_all(settled)

    def shelves(self) -> Shelves:
        with self._timed():
            return super().shelves()

    def read_stem(self, stem: str, start: int) -> Segment | None:
        with self._timed():
            return super().read_stem(stem, start)

    def require_there(self) -> None:
        with self._timed():
            super().require_there()

    def sync(self) -> None:
        with self._timed():
            super().sync()

    @contextmanager
    def _timed(self) -> Iterator[None]:
        with self._lock:
            if not self._working:
                self._since = time.perf_counter()
            self._working += 1
        try:
            yield
        finally:
            with self._lock:
                self._working -= 1
                if not self._working:
                    self.took_s += time.perf_counter() - self._since
