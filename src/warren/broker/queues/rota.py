"""Whose turn it is: the consumers of one queue.

Higher priorities first, in turn within a priority. A consumer that can't take a message now
(prefetch window full, connection slow) leaves the rota and comes back by ``wake``, so that a
thousand busy consumers cost nothing. With a single active consumer only that one is ever asked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warren.broker.consumer import Consumer


class Rota:
    """The consumers of a queue and whose turn it is."""

    __slots__ = ("_all", "_by_priority", "_turns", "active", "single")

    def __init__(self, single: bool, *, by_priority: bool = True) -> None:
        self.single = single
        self._by_priority = by_priority
        #: The single active consumer, where the queue has that mode.
        self.active: Consumer | None = None
        self._all: dict[Consumer, None] = {}
        self._turns: dict[int, deque[Consumer]] = {}  # by priority, highest first

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
        if self.single:
            if self.active is None:
                self.active = consumer
            return
        self._queue_up(consumer)

    def _queue_up(self, consumer: Consumer) -> None:
        turns = self._turns.get(consumer.priority)
        if turns is None:
            self._turns[consumer.priority] = deque((consumer,))
            self._turns = dict(sorted(self._turns.items(), reverse=True))
        else:
            turns.append(consumer)

    def remove(self, consumer: Consumer) -> None:
        self._all.pop(consumer, None)
        if self.single:
            if self.active is consumer:
                self.active = self._successor()
            return
        if not consumer.parked:
            turns = self._turns.get(consumer.priority)
            if turns is not None and consumer in turns:
                turns.remove(consumer)
                if not turns:
                    del self._turns[consumer.priority]

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
        for priority, turns in list(self._turns.items()):
            while turns:
                consumer = turns.popleft()
                if consumer.can_take():
                    turns.append(consumer)
                    return consumer
                consumer.parked = True
            del self._turns[priority]
        return None

    def wake(self, consumer: Consumer) -> None:
        """A consumer can take messages again."""
        if consumer.parked:
            consumer.parked = False
            if not self.single and consumer in self._all:
                self._queue_up(consumer)
