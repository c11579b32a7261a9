"""Joins a group's queues to an app's handlers: a lane for each queue that is held."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from warren.errors import ConfigError, GroupError
from warren.groups.discovery import matches
from warren.groups.listener import Listener
from warren.handlers import letters
from warren.handlers.attempts import Attempts, Shop
from warren.handlers.lane import Lane
from warren.handlers.message import Message
from warren.handlers.metrics import QueueCounters
from warren.handlers.policy import AT_ONCE, Handling, label

if TYPE_CHECKING:
    from warren.client import Delivery

log = logging.getLogger(__name__)

#: A group takes the queue away when its drain time is over; a lane need not know how long that is.
_UNTIL_CANCELLED_S = 1e6
#: Before a queue is claimed again whose work failed for a reason that nobody thought of.
RETRY_S = 1.0


@dataclass(frozen=True)
class Handler:
    """A function and what was asked for it."""

    function: Callable[[Message], Any]
    handling: Handling

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", None) or repr(self.function)

    def at_once(self) -> Handler:
        """The same, with retries that do not wait."""
        return replace(self, handling=replace(self.handling, backoff=AT_ONCE))

    def takes(self, queue: str) -> bool:
        return any(matches(pattern, queue) for pattern in self.handling.queues)


def check_letters(handlers: Sequence[Handler], usual: str) -> None:
    """Refuse a dead-letter queue whose letters would be handled here, given up, and so on.

    ``usual`` is the queue of those that name none.
    """
    for each in handlers:
        queue = each.handling.dead_letter or usual
        taker = next((other for other in handlers if other.takes(queue)), None)
        if queue == "broker" or taker is None:
            continue
        raise ConfigError(
            f"{label(each.handling.queues)} dead_letter",
            f"its dead letters go to '{queue}', which {taker.name} takes, "
            f"{label(taker.handling.queues)}: a letter would be handled, given up, and come "
            "there again, for ever. Give dead_letter= a queue that no handler of this app takes "
            "(no pattern takes warren.*), or handle that queue in an app with another group",
        )


class Work(Listener):
    """The listener of an app's group."""

    def __init__(
        self,
        handlers: Sequence[Handler],
        shop: Shop,
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        self._handlers = handlers
        self._shop = shop
        self._moved = moved
        self._lanes: dict[str, Lane] = {}
        #: Queues that came and are not begun yet.
        self._coming: dict[str, object] = {}
        #: Handlers that want the same queues, as far as that was told.
        self._overlaps: set[tuple[str, str]] = set()
        self._broken: dict[str, tuple[str, int]] = {}
        self.counters: dict[str, QueueCounters] = {}

    @property
    def in_flight(self) -> int:
        return sum(lane.in_flight for lane in self._lanes.values())

    @property
    def held(self) -> Collection[str]:
        """The queues that are worked on."""
        return self._lanes.keys()

    def prefetch(self, queue: str) -> int:
        return self._handler_of(queue).handling.prefetch

    async def assigned(self, queue: str) -> None:
        # A thread of before a lost connection may still be at work on a message of this queue.
        mine = self._coming[queue] = object()
        await self._shop.threads.idle(queue)
        if self._coming.get(queue) is not mine:  # taken away meanwhile, and perhaps back again
            return
        del self._coming[queue]
        handler = self._handler_of(queue)
        self._tell_of_others(queue, handler)
        counters = self.counters.setdefault(queue, QueueCounters())
        lane = Lane(queue, handler.handling, self._key_of(queue, handler), self._failed)
        lane.start(
            Attempts(queue, handler.handling, handler.function, self._shop, counters, lane.stopping)
        )
        self._lanes[queue] = lane
        self._moved()

    def message(self, delivery: Delivery) -> None:
        self._lanes[delivery.queue].feed(delivery)

    async def revoked(self, queue: str) -> None:
        await self._lanes[queue].stop(_UNTIL_CANCELLED_S)
        self._lanes.pop(queue, None)
        self._moved()

    async def lost(self, queue: str) -> None:
        self._coming.pop(queue, None)
        lane = self._lanes.pop(queue, None)
        if lane is not None:
            await lane.stop(0)
            self._moved()

    @property
    def broken(self) -> dict[str, str]:
        """Queues whose work failed in a way that no rule is for, until a message gets through."""
        return {
            queue: error
            for queue, (error, handled) in self._broken.items()
            if queue in self._lanes and self.counters[queue].handled == handled
        }

    def _failed(self, queue: str, error: Exception) -> None:
        self._broken[queue] = (letters.describe(error), self.counters[queue].handled)
        self.group.give_back(queue, f"its handler failed: {error}", retry_s=RETRY_S)

    def _tell_of_others(self, queue: str, handler: Handler) -> None:
        for other in self._handlers:
            pair = (handler.name, other.name)
            if other is not handler and other.takes(queue) and pair not in self._overlaps:
                self._overlaps.add(pair)
                log.warning(
                    "queue %s fits the handlers %s and %s: %s gets its messages, as it was added "
                    "first",
                    queue,
                    *pair,
                    handler.name,
                )

    def _handler_of(self, queue: str) -> Handler:
        for each in self._handlers:
            if each.takes(queue):
                return each
        raise GroupError(
            f"this member has no handler for queue '{queue}': it runs other code than the member "
            "that named the queue"
        )

    def _key_of(self, queue: str, handler: Handler) -> Callable[[Delivery], Hashable] | None:
        key = handler.handling.key
        if key is None:
            return None
        decoders = self._shop.decoders
        return lambda delivery: key(Message(delivery, queue, decoders))
