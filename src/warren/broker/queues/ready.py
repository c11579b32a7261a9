"""Messages of one queue that wait for a consumer, in the order they are to be given out.

An entry is a plain tuple, because there may be millions: (position, message, expires_at_ms or 0,
how often it was given back). Positions only grow, and what is given back was taken from the
front, so every entry in ``returned`` is older than every entry in ``fresh``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from warren.broker.message import Message

Entry = tuple[int, Message, int, int]


class Ready:
    """First in, first out; what is given back returns to its place."""

    __slots__ = ("fresh", "returned")

    def __init__(self) -> None:
        self.fresh: deque[Entry] = deque()
        self.returned: list[Entry] = []

    def __len__(self) -> int:
        return len(self.fresh) + len(self.returned)

    def push(self, entry: Entry) -> None:
        self.fresh.append(entry)

    def give_back(self, entry: Entry) -> None:
        heappush(self.returned, entry)

    def peek(self) -> Entry:
        return self.returned[0] if self.returned else self.fresh[0]

    def pop(self) -> Entry:
        return heappop(self.returned) if self.returned else self.fresh.popleft()

    def run(self) -> tuple[Callable[[], Entry], int]:
        """How to take the next entries, and how many can be taken this way."""
        if self.returned:
            return self._pop_returned, len(self.returned)
        return self.fresh.popleft, len(self.fresh)

    def _pop_returned(self) -> Entry:
        return heappop(self.returned)

    def clear(self) -> None:
        self.fresh.clear()
        self.returned.clear()

    def __iter__(self) -> Iterator[Entry]:
        yield from sorted(self.returned)
        yield from self.fresh


class PriorityReady:
    """Highest priority first; within one priority as ``Ready``."""

    __slots__ = ("_count", "_levels", "highest")

    def __init__(self, highest: int) -> None:
        self.highest = highest
        self._levels: list[Ready | None] = [None] * (highest + 1)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def _level(self, entry: Entry) -> Ready:
        priority = min(entry[1].traits.priority, self.highest)
        level = self._levels[priority]
        if level is None:
            level = self._levels[priority] = Ready()
        return level

    def push(self, entry: Entry) -> None:
        self._level(entry).push(entry)
        self._count += 1

    def give_back(self, entry: Entry) -> None:
        self._level(entry).give_back(entry)
        self._count += 1

    def _front(self) -> Ready:
        for level in reversed(self._levels):
            if level:
                return level
        raise IndexError("nothing is ready")

    def peek(self) -> Entry:
        return self._front().peek()

    def pop(self) -> Entry:
        entry = self._front().pop()
        self._count -= 1
        return entry

    def run(self) -> tuple[Callable[[], Entry], int]:
        return self.pop, 1

    def clear(self) -> None:
        self._levels = [None] * (self.highest + 1)
        self._count = 0

    def __iter__(self) -> Iterator[Entry]:
        for level in reversed(self._levels):
            if level is not None:
                yield from level
