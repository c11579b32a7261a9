"""Heartbeats that go on whatever the program does.

One thread for all connections of the process. It sends nothing but heartbeats, and only when a
connection has been silent for half its interval: an event loop that a handler blocks for an hour
loses no connection. (Code that keeps Python's interpreter lock for an hour does.)
"""

from __future__ import annotations

import os
import threading
import time
from typing import Protocol


class Beating(Protocol):
    """A connection as the heart sees it."""

    def next_beat(self) -> float:
        """When it will have been silent for too long; infinity if never."""
        ...

    def beat(self, now: float) -> None:
        """Send a heartbeat."""
        ...


class Heart:
    """Beats for everybody in it; its thread lives as long as there is somebody."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._members: set[Beating] = set()
        self._thread: threading.Thread | None = None

    def add(self, member: Beating) -> None:
        with self._changed:
            self._members.add(member)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._beat_loop, name="warren-heartbeats", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def discard(self, member: Beating) -> None:
        with self._changed:
            self._members.discard(member)
            self._changed.notify()

    def _beat_loop(self) -> None:
        while True:
            with self._changed:
                if not self._members:
                    self._thread = None
                    return
                now = time.monotonic()
                due = [member for member in self._members if member.next_beat() <= now]
                if not due:
                    first = min(member.next_beat() for member in self._members)
                    self._changed.wait(min(max(0.01, first - now), 3600.0))
                    continue
            for member in due:
                member.beat(now)

    def forget_all(self) -> None:
        """In a forked child: the connections, and the thread, are the parent's."""
        self.__init__()  # type: ignore[misc]


HEART = Heart()
os.register_at_fork(after_in_child=HEART.forget_all)
