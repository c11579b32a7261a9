"""Messages of one queue that wait for a consumer, in the order they are to be given out.

An entry is a plain tuple, because there may be millions: (position, message, expires_at_ms or 0,
how often it was given back). Positions only grow, and what is given back was taken from the
front, so every entry in ``returned`` is older than every entry in ``fresh``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import repeat
from operator import call, itemgetter

from warren.broker.message import Message

Entry = tuple[int, Message, int, int]


class Ready:
    """First in, first out; what is given back returns to its place."""

    __slots__ = ("fresh", "last", "returned")

    def __init__(self) -> None:
        #: The newest position that was given.
        self.last = 0
        self.fresh: deque[Entry] = deque()
        self.returned: list[tuple[int, Entry]] = []  # a heap, by place

    def __len__(self) -> int:
        return len(self.fresh) + len(self.returned)

    def fill(self) -> bool:
        """True if there is something to take now."""
        return bool(self.fresh or self.returned)

    def push(self, entry: Entry) -> None:
        self.fresh.append(entry)

    def give_back(self, entry: Entry, place: int) -> None:
        """The entry comes before all fresh ones; among those that came back, by its place."""
        heappush(self.returned, (place, entry))

    def peek(self) -> Entry:
        return self.returned[0][1] if self.returned else self.fresh[0]

    def pop(self) -> Entry:
        return heappop(self.returned)[1] if self.returned else self.fresh.popleft()

    def run(self, limit: int) -> Iterator[Entry]:
        """The next entries, at most ``limit``: each is taken when it is asked for."""
        if self.returned:
            return map(call, repeat(self.pop, min(limit, len(self.returned))))
        return map(call, repeat(self.fresh.popleft, min(limit, len(self.fresh))))

    def clear(self) -> None:
        self.fresh.clear()
        self.returned.clear()

    def __iter__(self) -> Iterator[Entry]:
        yield from (entry for _, entry in sorted(self.returned, key=itemgetter(0)))
        yield from self.fresh


class PlainReady:
    """As ``Ready``, for a queue that is in memory alone, where no position is left out.

    It holds bare messages, a third less to keep and to fetch from memory again: what else is in
    an entry follows from the place in the line. The few that expire or came back are noted aside.
    """

    __slots__ = ("_ends", "_returns", "fresh", "last", "returned")

    def __init__(self) -> None:
        #: The newest position that was given: that of the last message in ``fresh``.
        self.last = 0
        self.fresh: deque[Message] = deque()
        self.returned: list[tuple[int, Entry]] = []  # a heap, by place
        self._ends: dict[int, int] = {}
        self._returns: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.fresh) + len(self.returned)

    def fill(self) -> bool:
        return bool(self.fresh or self.returned)

    def push(self, entry: Entry) -> None:
        """The entry's position follows the last one."""
        position, message, expires_at, returns = entry
        self.last = position
        self.fresh.append(message)
        if expires_at:
            self._ends[position] = expires_at
        if returns:
            self._returns[position] = returns

    def give_back(self, entry: Entry, place: int) -> None:
        heappush(self.returned, (place, entry))

    def peek(self) -> Entry:
        if self.returned:
            return self.returned[0][1]
        first, message = self._first, self.fresh[0]
        return first, message, self._ends.get(first, 0), self._returns.get(first, 0)

    def pop(self) -> Entry:
        if self.returned:
            return heappop(self.returned)[1]
        first, message = self._first, self.fresh.popleft()
        return first, message, self._ends.pop(first, 0), self._returns.pop(first, 0)

    def run(self, limit: int) -> Iterator[Entry]:
        count = min(limit, len(self.returned or self.fresh))
        if self.returned or self._ends or self._returns:
            return map(call, repeat(self.pop, count))
        first, taken = self._first, map(call, repeat(self.fresh.popleft))
        return zip(range(first, first + count), taken, repeat(0), repeat(0))

    def clear(self) -> None:
        self.fresh.clear()
        self.returned.clear()
        self._ends.clear()
        self._returns.clear()

    @property
    def _first(self) -> int:
        """The position of the first message in ``fresh``."""
        return self.last - len(self.fresh) + 1

    def __iter__(self) -> Iterator[Entry]:
        yield from (entry for _, entry in sorted(self.returned, key=itemgetter(0)))
        ends, returns = self._ends, self._returns
        for position, message in enumerate(self.fresh, self._first):
            yield position, message, ends.get(position, 0), returns.get(position, 0)


class PagedReady(Ready):
    """As ``Ready``, with a part that lies on disk only: behind all that is in memory.

    ``load`` gives the next entries behind a position: from the disk, or from ``on_their_way``,
    where entries wait for the batch that brings them to the disk.
    """

    __slots__ = ("_load", "after", "on_their_way", "paged")

    def __init__(self, load: Callable[[int], list[Entry]]) -> None:
        super().__init__()
        self._load = load
        #: How many entries are on disk only, or on their way to it.
        self.paged = 0
        #: Batch and entry.
        self.on_their_way: deque[tuple[int, Entry]] = deque()
        #: Everything up to this position is, or was, in memory; true while something is paged.
        self.after = 0

    def __len__(self) -> int:
        return len(self.fresh) + len(self.returned) + self.paged

    def page(self, batch: int, entry: Entry) -> None:
        """One more entry that is to lie on disk only, once its batch is safe."""
        if not self.paged:
            self.after = entry[0] - 1
        self.paged += 1
        self.on_their_way.append((batch, entry))

    def written(self, batch: int) -> bool:
        """Batches up to this one are safe; True if there is more on its way."""
        waiting = self.on_their_way
        while waiting and waiting[0][0] <= batch:
            waiting.popleft()
        return bool(waiting)

    def fill(self) -> bool:
        if self.paged and not self.fresh and not self.returned:
            entries = self._load(self.after)
            if entries:
                self.fresh.extend(entries)
                self.after = last = entries[-1][0]
                self.paged -= len(entries)
                waiting = self.on_their_way
                while waiting and waiting[0][1][0] <= last:
                    waiting.popleft()
        return bool(self.fresh or self.returned)

    def clear(self, upto: int = 0) -> None:
        """Drop everything; on disk nothing is left up to a position."""
        super().clear()
        self.paged = 0
        self.on_their_way.clear()
        self.after = max(self.after, upto)


class PriorityReady:
    """Highest priority first; within one priority as ``Ready``."""

    __slots__ = ("_count", "_levels", "highest", "last")

    def __init__(self, highest: int) -> None:
        self.highest = highest
        self.last = 0
        self._levels: list[Ready | None] = [None] * (highest + 1)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def fill(self) -> bool:
        return self._count > 0

    def _level(self, entry: Entry) -> Ready:
        priority = min(entry[1].traits.priority, self.highest)
        level = self._levels[priority]
        if level is None:
            level = self._levels[priority] = Ready()
        return level

    def push(self, entry: Entry) -> None:
        self._level(entry).push(entry)
        self._count += 1

    def give_back(self, entry: Entry, place: int) -> None:
        self._level(entry).give_back(entry, place)
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

    def run(self, limit: int) -> Iterator[Entry]:
        return map(call, repeat(self.pop, min(limit, 1)))

    def clear(self) -> None:
        self._levels = [None] * (self.highest + 1)
        self._count = 0

    def __iter__(self) -> Iterator[Entry]:
        for level in reversed(self._levels):
            if level is not None:
                yield from level
