"""What an app sends: letters for messages that failed, replies, and what people publish.

A delay is a queue whose messages expire into the queue they came from: a fanout exchange
``warren.retry.<group>.<ms>`` keeps the routing key free for the name of that queue, which is where
the default exchange takes an expired message. Both go by themselves when they are not used.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from warren.errors import Nacked, NotFound
from warren.handlers import letters, tracing

if TYPE_CHECKING:
    from warren.client import Channel, Connection, Properties
    from warren.handlers.message import Message

log = logging.getLogger(__name__)

#: How long an unused delay queue stays, beyond its delay.
KEEP_MS = 60_000
#: What a broker may add to the headers of a message that expired, in octets: x-death, with names.
DEATH_OCTETS = 2048
#: Delays are rounded up to these steps, so that jitter does not make a queue a message.
STEPS_MS = (100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)


class Outbox:
    """Publishes with confirms on a channel of its own."""

    def __init__(self, connection: Connection, group: str) -> None:
        self._connection = connection
        self._group = group
        self._maybe_channel: Channel | None = None
        #: Channels that are not used any more, and may have answers to wait for.
        self._left: list[Channel] = []
        self._opening = asyncio.Lock()
        self._dead_declared: set[str] = set()

    async def _channel(self) -> Channel:
        """The channel there is, or another one: a refused declaration has cost the last."""
        async with self._opening:
            if self._maybe_channel is None or self._maybe_channel.closed is not None:
                self._maybe_channel = await self._connection.channel()
                self._dead_declared.clear()
                await self._close_left()
            return self._maybe_channel

    async def _close_left(self) -> None:
        done = [channel for channel in self._left if not channel.unconfirmed]
        self._left = [channel for channel in self._left if channel.unconfirmed]
        for channel in done:
            await channel.close()

    async def _publish(self, body: bytes, **how: Any) -> None:
        """Publish and wait for the confirm; the next one goes over another channel if it is a no.

        A channel on which RabbitMQ 3.10 publishes to a quorum queue for the first time, while its
        leader is gone and no other elected, refuses all that it publishes there, for ever.
        """
        channel = await self._channel()
        try:
            await channel.publish(body, **how)
        except Nacked:
            if self._maybe_channel is channel:
                self._maybe_channel = None
                self._left.append(channel)
            raise

    @property
    def dead_queue(self) -> str:
        return f"warren.dead.{self._group}"

    async def publish(
        self,
        data: Any,
        *,
        exchange: str = "",
        routing_key: str = "",
        properties: Properties | None = None,
        mandatory: bool = False,
    ) -> None:
        """Publish and wait for the confirm. bytes go as they are, str as text, others as JSON."""
        body, filled = encoded(data, properties)
        filled = replace(filled, headers=tracing.outgoing(filled.headers))
        await self._publish(
            body,
            exchange=exchange,
            routing_key=routing_key,
            properties=filled,
            mandatory=mandatory,
        )

    async def reply(self, message: Message, body: bytes, properties: Properties) -> None:
        """Answer a request where its reply-to says. Nobody waiting any more is no error."""
        asked = message.properties
        filled = replace(
            properties,
            correlation_id=asked.correlation_id or asked.message_id,
            headers=tracing.outgoing(None),
            delivery_mode=None,
        )
        await self._publish(body, routing_key=asked.reply_to or "", properties=filled)

    def for_later(self, message: Message, attempts: int) -> Properties | None:
        """What to send a message to a delay queue with; None: it has too many headers for that."""
        return self._fitting(message, self._failed_headers(message, attempts), DEATH_OCTETS)

    async def later(self, message: Message, properties: Properties, after_s: float) -> None:
        """Have the message come back to its queue after a time."""
        delay_ms = rounded_ms(after_s)
        name = f"warren.retry.{self._group}.{delay_ms}"
        channel = await self._channel()
        # Declared each time: that is what keeps an unused queue from expiring under a message.
        await channel.declare_exchange(name, "fanout", durable=True, auto_delete=True)
        await channel.declare_queue(
            name,
            durable=True,
            arguments={
                "x-message-ttl": delay_ms,
                "x-dead-letter-exchange": "",
                "x-expires": delay_ms + KEEP_MS,
            },
        )
        await channel.bind_queue(name, name)
        await self._publish(
            message.body,
            exchange=name,
            routing_key=message.queue,
            properties=properties,
            mandatory=True,
        )

    async def dead(
        self, message: Message, attempts: int, reason: str, error: Exception, *, to: str | None
    ) -> None:
        """Put the message into the dead-letter queue, with its history."""
        queue = to or self.dead_queue
        if queue not in self._dead_declared:
            await self._ensure(queue)
            self._dead_declared.add(queue)
        headers = self._failed_headers(message, attempts)
        headers = letters.dead_headers(headers, reason, letters.describe(error))
        properties = self._fitting(message, headers)
        if properties is None:
            log.warning("%r goes to %s without a word: its headers fill a frame", message, queue)
            properties = _bare(message)
        try:
            await self._publish(
                message.body,
                routing_key=queue,
                properties=properties,
                mandatory=True,
            )
        except Exception:
            self._dead_declared.discard(queue)
            raise

    async def _ensure(self, queue: str) -> None:
        """Have a queue, of whatever kind its owner made it; durable if there is none."""
        # On channels of their own: a refusal costs the channel, and what others publish on it.
        try:
            async with await self._connection.channel() as channel:
                await channel.declare_queue(queue, passive=True)
        except NotFound:
            async with await self._connection.channel() as channel:
                await channel.declare_queue(queue, durable=True)
            log.info("declared the queue %s for dead letters", queue)

    def _fitting(
        self, message: Message, headers: Mapping[str, Any], spare: int = 0
    ) -> Properties | None:
        """With as much of ours in the headers as a frame has room for."""
        tried = (_kept(message, each) for each in letters.shortened(headers))
        return next((each for each in tried if self._connection.fits(each, spare)), None)

    def _failed_headers(self, message: Message, attempts: int) -> dict[str, Any]:
        return letters.failed_headers(
            message.headers,
            queue=message.queue,
            exchange=message.exchange,
            routing_key=message.routing_key,
            history=message.history,
            attempts=attempts,
        )


def rounded_ms(after_s: float) -> int:
    """The delay as one of a few: the next step up, whole minutes beyond the last."""
    wanted = after_s * 1000
    for step in STEPS_MS:
        if wanted <= step:
            return step
    minutes = -int(-wanted // 60_000)
    return min(minutes * 60_000, (1 << 32) - 1 - KEEP_MS)


def encoded(data: Any, properties: Properties | None) -> tuple[bytes, Properties]:
    """A body and properties for a value; what the caller set is left alone."""
    from warren.client import Properties as Made

    found = properties or Made()
    if found.delivery_mode is None:
        found = replace(found, delivery_mode=2)
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data), found
    if isinstance(data, str):
        body, kind = data.encode(), "text/plain; charset=utf-8"
    else:
        body, kind = json.dumps(data, separators=(",", ":")).encode(), "application/json"
    return body, found if found.content_type else replace(found, content_type=kind)


def _kept(message: Message, headers: Mapping[str, Any]) -> Properties:
    """The message's own properties with other headers.

    Its expiration is left out: it has lived its time, and would die again in the next queue. Its
    user-id too: it is another connection that publishes now.
    """
    return replace(
        message.properties, headers=headers, expiration=None, user_id=None, delivery_mode=2
    )


def _bare(message: Message) -> Properties:
    """As it came, but for what must not be sent again: no larger than it was."""
    headers = letters.clean_headers(letters.without_copies(message.headers))
    return replace(message.properties, headers=headers, expiration=None, user_id=None)
