"""Joins a group's queues to an app's handlers: a lane for each queue that is held."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from warren.client.backoff import Backoff
from warren.groups.listener import Listener
from warren.handlers.attempts import Attempts, Shop
from warren.handlers.lane import Lane
from warren.handlers.message import Message
from warren.handlers.metrics import QueueCounters
from warren.handlers.policy import Handling, matches
from warren.handlers.rate import TokenBucket

if TYPE_CHECKING:
    from warren.client import Delivery

#: A group takes the queue away when its drain time is over; a lane need not know how long that is.
_UNTIL_CANCELLED_S = 1e6


@dataclass(frozen=True)
class Handler:
    """A function and what was asked for it."""

    function: Callable[[Message], Any]
    handling: Handling

    def at_once(self) -> Handler:
        """The same, with retries that do not wait."""
        return replace(self, handling=replace(self.handling, backoff=Backoff(first_s=0)))

    def takes(self, queue: str) -> bool:
        return any(matches(pattern, queue) for pattern in self.handling.queues)


class Work(Listener):
    """The listener of an app's group."""

    def __init__(self, handlers: Sequence[Handler], shop: Shop) -> None:
        self._handlers = handlers
        self._shop = shop
        self._lanes: dict[str, Lane] = {}
        self.counters: dict[str, QueueCounters] = {}

    @property
    def in_flight(self) -> int:
        return sum(lane.in_flight for lane in self._lanes.values())

    def prefetch(self, queue: str) -> int:
        return self._handler_of(queue).handling.prefetch

    async def assigned(self, queue: str) -> None:
        handler = self._handler_of(queue)
        counters = self.counters.setdefault(queue, QueueCounters())
        lane = Lane(queue, handler.handling, self._key_of(queue, handler))
        lane.start(
            Attempts(queue, handler.handling, handler.function, self._shop, counters, lane.stopping)
        )
        self._lanes[queue] = lane

    def message(self, delivery: Delivery) -> None:
        self._lanes[delivery.queue].feed(delivery)

    async def revoked(self, queue: str) -> None:
        await self._lanes[queue].stop(_UNTIL_CANCELLED_S)
        self._lanes.pop(queue, None)

    async def lost(self, queue: str) -> None:
        lane = self._lanes.pop(queue, None)
        if lane is not None:
            await lane.stop(0)

    def _handler_of(self, queue: str) -> Handler:
        return next(each for each in self._handlers if each.takes(queue))

    def _key_of(self, queue: str, handler: Handler) -> Callable[[Delivery], Hashable] | None:
        key = handler.handling.key
        if key is None:
            return None
        decoders = self._shop.decoders
        return lambda delivery: key(Message(delivery, queue, decoders))


class Pace:
    """A group's rate limit, as far as this member has to keep it: its share of the queues."""

    def __init__(self, rate_per_s: float, share: Callable[[], float]) -> None:
        self._rate = rate_per_s
        self._share = share
        self._bucket: TokenBucket | None = None

    async def __call__(self) -> None:
        """Wait until one more may be handled."""
        now = asyncio.get_running_loop().time()
        rate = self._rate * self._share()
        if self._bucket is None:
            self._bucket = TokenBucket(rate, now)
        else:
            self._bucket.set_rate(rate, now)
        wait_s = self._bucket.take(now)
        if wait_s:
            await asyncio.sleep(min(wait_s, 3600.0))
