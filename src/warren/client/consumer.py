"""Consumers: who gets the messages of a queue."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from warren.amqp.tables import raw
from warren.client.callbacks import call_each
from warren.client.delivery import Delivery
from warren.errors import WarrenError

if TYPE_CHECKING:
    import asyncio

    from warren.client.channel import Channel

log = logging.getLogger(__name__)

OnMessage = Callable[[Delivery], None]
OnCancel = Callable[[WarrenError], None]


class Consumer:
    """One consumer; it stays the same when the connection is made anew."""

    def __init__(
        self,
        channel: Channel,
        queue: str,
        tag: str,
        callback: OnMessage,
        *,
        no_ack: bool,
        exclusive: bool,
        arguments: Mapping[str, Any] | None,
        on_cancel: OnCancel | None,
    ) -> None:
        self.channel = channel
        self.queue = queue
        self.tag = tag
        self.key = raw(tag)
        self.callback = callback
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.arguments = arguments
        self.on_cancel = on_cancel
        #: False once it was cancelled, by whomever.
        self.active = True

    async def cancel(self) -> None:
        """Stop getting messages. What was delivered before can still be acknowledged.

        Messages that came and were not settled stay with the channel until they are, or until it
        is closed. To hand a queue over in order, close the channel instead.
        """
        await self.channel.cancel(self)

    def ended(self, error: WarrenError) -> None:
        """The broker has cancelled it, or its channel is closed."""
        if self.active:
            self.active = False
            if self.on_cancel is None:
                log.warning("%r gets no more messages: %s", self, error)
            else:
                call_each([self.on_cancel], error)

    def __repr__(self) -> str:
        return f"<consumer {self.tag} of {self.queue}>"


class Deliveries:
    """Messages of a queue, one by one: ``async for delivery in channel.deliveries("orders")``.

    Messages that came on a connection that is lost since, and were not handed out, are left out:
    the broker sends them again. Leaving the loop does not end the consumer: use ``async with``,
    or ``close``.
    """

    def __init__(self, channel: Channel, queue: str, options: Mapping[str, Any]) -> None:
        self._channel = channel
        self._queue = queue
        self._options = options
        self._waiting: deque[Delivery] = deque()
        self._arrival: asyncio.Future[None] | None = None
        self._error: WarrenError | None = None
        self._closed = False
        self.consumer: Consumer | None = None

    async def start(self) -> None:
        """Begin to consume; the first message asked for does it as well."""
        if self.consumer is None:
            self.consumer = await self._channel.consume(
                self._queue, self._arrived, on_cancel=self._cancelled, **self._options
            )

    def _arrived(self, delivery: Delivery) -> None:
        self._waiting.append(delivery)
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _cancelled(self, error: WarrenError) -> None:
        self._error = error
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self

    async def __anext__(self) -> Delivery:
        if self.consumer is None and not self._closed:
            await self.start()
        while True:
            while self._waiting:
                delivery = self._waiting.popleft()
                if not delivery.stale or self._options.get("no_ack"):
                    return delivery
            if self._closed:
                raise StopAsyncIteration
            if self._error is not None:
                raise self._error
            self._arrival = self._channel.loop.create_future()
            await self._arrival

    async def close(self) -> None:
        """End the consumer, and give back what nobody has taken out."""
        if self._closed:
            return
        self._closed = True
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
        if self.consumer is not None and self.consumer.active:
            await self.consumer.cancel()
        while self._waiting:
            self._waiting.pop().nack(requeue=True)

    async def __aenter__(self) -> Deliveries:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
