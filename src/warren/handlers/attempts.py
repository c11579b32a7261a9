"""Works on one delivery until it is settled: attempts, waits, reply, dead letter, acknowledgement.

The order matters. A reply or a letter is confirmed by the broker before the message it stands for
is acknowledged: a crash in between gives a second letter, never none. In an ordered queue nothing
of this is given up because the broker is slow or gone: the message stays unacknowledged and the
lane waits, so that the next message can't overtake it.

A delivery that went stale is left alone: the broker has given it to somebody else, or will. So it
is asked before every attempt, however long a wait came before, and before every letter.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from warren.client.backoff import Backoff
from warren.clock import Clock
from warren.errors import WarrenError
from warren.groups.options import is_async
from warren.handlers import letters, tracing
from warren.handlers.decoding import Decoders
from warren.handlers.failures import as_failure
from warren.handlers.message import Message
from warren.handlers.metrics import QueueCounters
from warren.handlers.middleware import Stack
from warren.handlers.outbox import encoded
from warren.handlers.outcome import DeadLetter, TryAgain, after_failure
from warren.handlers.policy import Handling
from warren.handlers.threads import NotBegun

if TYPE_CHECKING:
    from warren.client import Delivery, Properties
    from warren.handlers.outbox import Outbox
    from warren.handlers.pace import Pace
    from warren.handlers.threads import Threads

log = logging.getLogger(__name__)

#: Between two tries to hand a letter to the broker.
LETTER_PAUSE = Backoff(first_s=0.5, most_s=30.0)


@dataclass(frozen=True)
class Shop:
    """What all handlers of an app share."""

    group: str
    member: Callable[[], str]
    outbox: Outbox
    clock: Clock
    threads: Threads
    decoders: Decoders = field(default_factory=Decoders)
    middleware: Stack = field(default_factory=Stack)
    pace: Pace | None = None
    """Waits until the group's rate limit allows one more."""


class Attempts:
    """One handler function on one queue. Calling it with a delivery settles that delivery."""

    def __init__(
        self,
        queue: str,
        handling: Handling,
        function: Callable[[Message], Any],
        shop: Shop,
        counters: QueueCounters,
        stopping: asyncio.Event,
    ) -> None:
        self._queue = queue
        self._handling = handling
        self._function = function
        self._is_async = is_async(function)
        self._shop = shop
        self._counters = counters
        self._stopping = stopping
        # Nothing to do round the call: the way that a million messages take.
        self._plain = (
            self._is_async
            and handling.timeout_s is None
            and shop.middleware.empty
            and not tracing.is_on()
        )

    async def __call__(self, delivery: Delivery) -> None:
        message = Message(delivery, self._queue, self._shop.decoders)
        pace = self._shop.pace
        while True:
            if pace is not None and not await pace(self._stopping):
                return
            if delivery.stale:  # somebody else may work on it already
                return
            began = perf_counter()
            try:
                if self._plain:
                    tracing.current.set(message)
                    result = await self._function(message)
                else:
                    result = await self._attempt(message)
                reply = None
                if result is not None and message.properties.reply_to:
                    reply = encoded(result, None)
            except NotBegun:
                return
            except BaseException as error:
                failure = as_failure(error)
                if failure is None:
                    raise
                self._counters.took(perf_counter() - began)
                if await self._again_here(message, failure):
                    continue
                return
            self._counters.took(perf_counter() - began)
            if reply is not None and not await self._reply(message, *reply):
                return
            delivery.ack()
            self._counters.handled += 1
            return

    async def _attempt(self, message: Message) -> Any:
        shop = self._shop
        with tracing.handling(message, shop.group):
            await shop.middleware.before(message)
            if self._is_async:
                async with asyncio.timeout(self._handling.timeout_s):
                    result = await self._function(message)
            else:
                result = await self._in_thread(message)
            await shop.middleware.after(message, result)
        return result

    async def _in_thread(self, message: Message) -> Any:
        result = await self._shop.threads.run(self._function, message)
        return await result if inspect.isawaitable(result) else result

    async def _again_here(self, message: Message, error: Exception) -> bool:
        """Do what the policy says of a failure. True: another attempt, now."""
        attempt, this = message.attempt, repr(message)
        said = letters.described_with_place(error, self._function)
        self._counters.failed += 1
        await self._tell_middleware(message, error)
        at_ms = self._shop.clock.wall_ms()
        message.failed(letters.failure(attempt, error, self._shop.member(), at_ms))
        match after_failure(self._handling, attempt, error):
            case TryAgain(after_s, here):
                properties = None if here else self._shop.outbox.for_later(message, attempt)
                if properties is None:
                    log.info("%s failed, again in %.2g s: %s", this, after_s, said)
                    self._counters.retried += 1
                    return not await self._stops_within(after_s)
                log.info("%s failed, again after %.2g s: %s", this, after_s, said)
                self._counters.retried += await self._later(message, properties, after_s)
            case DeadLetter(reason):
                log.warning("%s is given up (%s): %s", this, reason, said, exc_info=error)
                sent = await self._give_up(message, attempt, reason, error)
                self._counters.dead_lettered += sent
        return False

    async def _later(self, message: Message, properties: Properties, after_s: float) -> bool:
        return await self._surely(
            lambda: self._shop.outbox.later(message, properties, after_s), message
        )

    async def _give_up(
        self, message: Message, attempts: int, reason: str, error: Exception
    ) -> bool:
        if self._handling.dead_letter == "broker":
            message.delivery.reject(requeue=False)
            return True
        to = self._handling.dead_letter
        return await self._surely(
            lambda: self._shop.outbox.dead(message, attempts, reason, error, to=to), message
        )

    async def _reply(self, message: Message, body: bytes, properties: Properties) -> bool:
        sent = await self._surely(lambda: self._shop.outbox.reply(message, body, properties))
        self._counters.replied += sent
        return sent

    async def _surely(
        self, send: Callable[[], Awaitable[None]], message: Message | None = None
    ) -> bool:
        """Send until the broker has confirmed, then acknowledge ``message``.

        False: stopped, or the message is somebody else's by now.
        """
        tries = 0
        while message is None or not message.delivery.stale:
            try:
                await send()
            except WarrenError as error:
                tries += 1
                pause_s = LETTER_PAUSE.delay_s(tries)
                log.warning(
                    "queue %s waits: a letter or reply of it could not be sent, again in %.2g s: "
                    "%s",
                    self._queue,
                    pause_s,
                    error,
                )
                if await self._stops_within(pause_s):
                    return False
            else:
                if message is not None:
                    message.delivery.ack()
                return True
        return False

    async def _stops_within(self, wait_s: float) -> bool:
        if self._stopping.is_set():
            return True
        try:
            async with asyncio.timeout(wait_s):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True

    async def _tell_middleware(self, message: Message, error: Exception) -> None:
        try:
            await self._shop.middleware.error(message, error)
        except Exception:
            log.exception("error() of a middleware failed on %r", message)
