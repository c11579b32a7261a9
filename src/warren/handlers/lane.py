"""One queue's way through its handler: in order, several at once, or in order a key.

A lane takes deliveries as they come (``feed``) and works on them in up to ``concurrency``
coroutines that live as long as the lane: no task a message. Order is kept because

- with one worker, the next message is taken when the one before is done with, retries included;
- with a key, a message waits behind the running one of its key, and the worker that ends that one
  goes on with it.

A lane that is stopped finishes what is running (``stop`` bounds the time) and forgets the rest:
it was never acknowledged, so the broker gives it to the next owner, in order.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Any

from warren.handlers.failures import as_failure

if TYPE_CHECKING:
    from warren.client import Delivery
    from warren.handlers.policy import Handling

log = logging.getLogger(__name__)

#: Messages that one worker handles before others get a turn: a handler that never waits must not
#: keep the connection from being read.
TURNS = 16

#: The key of messages whose own can't be had.
_NO_KEY = object()

Work = Callable[["Delivery"], Awaitable[None]]


class Lane:
    """The deliveries of one queue, on their way through the work that ``start`` is given."""

    def __init__(
        self,
        queue: str,
        handling: Handling,
        key: Callable[[Delivery], Hashable] | None = None,
        broken: Callable[[str, Exception], None] = lambda queue, error: None,
    ) -> None:
        self.queue = queue
        self._broken = broken
        self._told_of_key = False
        self.handling = handling
        self._work: Work
        self._key = key
        self._waiting: deque[Delivery] = deque()
        # Key -> what waits behind the running message of that key.
        self._behind: dict[Hashable, deque[Delivery]] = {}
        self._idle: deque[asyncio.Future[None]] = deque()
        self._running = 0
        self._stopping = asyncio.Event()
        self._workers: list[asyncio.Task[None]] = []

    @property
    def in_flight(self) -> int:
        """Messages whose handler runs now."""
        return self._running

    @property
    def stopping(self) -> asyncio.Event:
        """Set when no further attempt may begin."""
        return self._stopping

    def start(self, work: Work) -> None:
        self._work = work
        run = self._by_arrival if self._key is None else self._by_key
        self._workers = [
            asyncio.create_task(self._guarded(run), name=f"lane {self.queue} {n}")
            for n in range(self.handling.concurrency)
        ]

    def feed(self, delivery: Delivery) -> None:
        """One more, called in the order they arrive."""
        self._waiting.append(delivery)
        while self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def stop(self, within_s: float) -> bool:
        """Begin nothing new, wait for what runs. False: it took too long and was cancelled."""
        self._begin_nothing()
        if not self._workers:
            return True
        _, late = await asyncio.wait(self._workers, timeout=within_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)
        return not late

    def _begin_nothing(self) -> None:
        self._stopping.set()
        self._waiting.clear()
        self._behind.clear()
        while self._idle:
            waiter = self._idle.popleft()
            if not waiter.done():
                waiter.set_result(None)

    async def _guarded(self, run: Callable[[], Awaitable[None]]) -> None:
        """The last guard: an error that no rule is for must not leave the queue held and idle."""
        try:
            await run()
        except BaseException as error:
            failure = as_failure(error)
            if failure is None:
                raise
            log.exception("the work on queue %s has failed; it is given back", self.queue)
            self._begin_nothing()
            self._broken(self.queue, failure)

    async def _by_arrival(self) -> None:
        waiting, work, stopping = self._waiting, self._work, self._stopping
        turns = 0
        while not stopping.is_set():
            if not waiting:
                await self._wake()
                continue
            self._running += 1
            try:
                await work(waiting.popleft())
            finally:
                self._running -= 1
            turns += 1
            if turns % TURNS == 0:
                await asyncio.sleep(0)

    async def _by_key(self) -> None:
        waiting, stopping = self._waiting, self._stopping
        while not stopping.is_set():
            if not waiting:
                await self._wake()
                continue
            delivery = waiting.popleft()
            key = self._key_of(delivery)
            behind = self._behind.get(key)
            if behind is not None:
                behind.append(delivery)
                continue
            await self._run_key(key, delivery)

    async def _run_key(self, key: Hashable, delivery: Delivery) -> None:
        mine: deque[Delivery] = deque([delivery])
        self._behind[key] = mine
        self._running += 1
        try:
            turns = 0
            while mine and not self._stopping.is_set():
                await self._work(mine.popleft())
                turns += 1
                if turns % TURNS == 0:
                    await asyncio.sleep(0)
        finally:
            self._running -= 1
            if self._behind.get(key) is mine:
                del self._behind[key]

    def _key_of(self, delivery: Delivery) -> Any:
        assert self._key is not None
        try:
            key = self._key(delivery)
            hash(key)
        except Exception as error:  # noqa: BLE001 - people's own function
            # The handler will meet the same message, and fail on it by the rules if it has to.
            if not self._told_of_key:
                self._told_of_key = True
                log.warning(
                    "key= of the handler of %s fails (%s: %s); such messages are handled one at a "
                    "time, in the order they came",
                    self.queue,
                    type(error).__name__,
                    error,
                )
            return _NO_KEY
        return key

    async def _wake(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(waiter)
        await waiter
