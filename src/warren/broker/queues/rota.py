"""Whose turn it is: the consumers of one queue.

Higher priorities first, in turn within a priority. A consumer that can't take a message now
(prefetch window full, connection slow) leaves the rota and comes back by ``wake``, so that a
thousand busy consumers cost nothing. With a single active consumer only that one is ever asked.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warren.broker.consumer import Consumer


class Rota:
    """The consumers of a queue and whose turn it is."""

    __slots__ = ("_all", "_by_priority", "_order", "_turns", "_without_turns", "active", "single")

    def __init__(self, single: bool, *, by_priority: bool = True, turns: bool = True) -> None:
        self.single = single
        self._by_priority = by_priority
        #: Only one is ever asked, or (a stream) everybody is.
        self._without_turns = single or not turns
        #: The single active consumer, where the queue has that mode.
        self.active: Consumer | None = None
        self._all: dict[Consumer, None] = {}
        self._turns: dict[int, OrderedDict[Consumer, None]] = {}  # by priority
        self._order: list[int] = []  # priorities with somebody in line, negated: highest first

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Consumer]:
        return iter(list(self._all))

    @property
    def alone(self) -> bool:
        """True if one consumer gets everything: it can be fed in one go."""
        return self.single or len(self._all) == 1

    def add(self, consumer: Consumer) -> None:
        self._all[consumer] = None
        if self.single and self.active is None:
            self.active = consumer
        if not self._without_turns:
            self._queue_up(consumer)

    def _queue_up(self, consumer: Consumer) -> None:
        turns = self._turns.get(consumer.priority)
        if turns is None:
            turns = self._turns[consumer.priority] = OrderedDict()
            insort(self._order, -consumer.priority)
        turns[consumer] = None

    def _close_line(self, priority: int) -> None:
        del self._turns[priority]
        del self._order[bisect_left(self._order, -priority)]

    def remove(self, consumer: Consumer) -> None:
        self._all.pop(consumer, None)
        if self.single and self.active is consumer:
            self.active = self._successor()
        turns = self._turns.get(consumer.priority)
        if turns is not None and consumer in turns:
            del turns[consumer]
            if not turns:
                self._close_line(consumer.priority)

    def _successor(self) -> Consumer | None:
        # The longest waiting; on classic queues that of the highest priority.
        if not self._by_priority:
            return next(iter(self._all), None)
        return max(self._all, key=lambda consumer: consumer.priority, default=None)

    def next(self) -> Consumer | None:
        """The consumer to feed now; it goes to the end of its line."""
        if self.single:
            active = self.active
            if active is None or active.parked:
                return None
            if active.can_take():
                return active
            active.parked = True
            return None
        while self._order:
            priority = -self._order[0]
            turns = self._turns[priority]
            while turns:
                consumer, _ = turns.popitem(last=False)
                if consumer.can_take():
                    turns[consumer] = None
                    return consumer
                consumer.parked = True
            self._close_line(priority)
        return None

    def wake(self, consumer: Consumer) -> None:
        """A consumer can take messages again."""
        if consumer.parked:
            consumer.parked = False
            if not self._without_turns and consumer in self._all:
                self._queue_up(consumer)
