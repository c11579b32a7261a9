"""``Channel``: declare, publish, consume."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from warren.amqp import methods as m
from warren.amqp.properties import Properties, encode_properties
from warren.amqp.tables import Table
from warren.client.callbacks import call_each
from warren.client.confirm import Confirm
from warren.client.consumer import Consumer, Deliveries, OnCancel, OnMessage
from warren.client.declaring import Declaring
from warren.client.delivery import Delivery, Returned
from warren.client.lane import Answer, Lane
from warren.errors import (
    ChannelClosed,
    ConfigError,
    ConnectionClosed,
    ConsumerCancelled,
    NotFound,
    Refusal,
    Unavailable,
    Unconfirmed,
    WarrenError,
)

if TYPE_CHECKING:
    from warren.client.connection import Connection

log = logging.getLogger(__name__)

A = TypeVar("A", bound=Answer)
NO_PROPERTIES = b"\x00\x00"
#: Failed publishes that nobody has asked for, kept for ``confirmed``.
_FAILURES = 100


class Channel(Declaring):
    """A channel that outlives its connection: made again, with its consumers, after a loss.

    Made by ``Connection.channel``. An operation that the broker refuses raises the refusal and
    costs this channel, as AMQP has it: every later use raises ``ChannelClosed``.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        prefetch: int,
        confirms: bool,
        republish: bool,
    ) -> None:
        super().__init__(connection.topology)
        self.connection = connection
        self.loop = connection.loop
        self.prefetch = prefetch
        self.confirms = confirms
        self.republish = republish
        self.consumers: dict[str, Consumer] = {}
        #: Why it is closed; None while it is not.
        self.closed: WarrenError | None = None
        self._lane: Lane | None = None
        self._ready: asyncio.Future[None] | None = None
        self._thread = threading.get_ident()
        #: Publishes that wait for the connection, or for the broker to take publishes again.
        self._backlog: list[Confirm] = []
        self._failed: list[Confirm] = []
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._on_closed: list[Callable[[WarrenError], None]] = []
        self._on_return: list[Callable[[Returned], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._encoded: tuple[Properties | None, bytes] = (None, NO_PROPERTIES)

    # -- opening ---------------------------------------------------------------------------------
    async def open(self) -> None:
        """Open it on the connection there is, with its consumers; for ``Connection``."""
        lane = Lane(self.connection.link, self, self.connection.generation)
        calls = [lane.opening()]
        if self.prefetch:
            calls.append(lane.call(m.BasicQos(prefetch_count=self.prefetch), m.BasicQosOk))
        if self.confirms:
            lane.confirming = True
            calls.append(lane.call(m.ConfirmSelect(), m.ConfirmSelectOk))
        consumers = list(self.consumers.values())
        for consumer in consumers:
            lane.consumers[consumer.key] = consumer
        consuming = [lane.call(_consume(each), m.BasicConsumeOk) for each in consumers]
        for call in calls:
            await call
        for consumer, call in zip(consumers, consuming, strict=True):
            try:
                await call
            except NotFound as refusal:
                self._queue_gone(consumer, refusal)
                raise
        if self.closed is not None:
            lane.close()
            return
        self._lane = lane
        for consumer in consumers:
            if not consumer.active:  # cancelled meanwhile
                lane.call(m.BasicCancel(consumer.tag), m.BasicCancelOk)
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)
        self.resume()

    def _queue_gone(self, consumer: Consumer, refusal: NotFound) -> None:
        """A queue that was deleted meanwhile: as if the broker had cancelled its consumer."""
        if not isinstance(refusal, Unavailable):
            self.cancelled(consumer, ConsumerCancelled(consumer.queue, consumer.tag))

    def resume(self) -> None:
        """Publish what had to wait."""
        if self._lane is None or self.connection.blocked is not None:
            return
        backlog, self._backlog = self._backlog, []
        for confirm in backlog:
            self._lane.publish(confirm)
        self.progress()

    async def lane(self) -> Lane:
        """The lane there is, or the next one."""
        while True:
            if self.closed is not None:
                raise ChannelClosed(str(self.closed))
            if self._lane is not None and self._lane.open:
                return self._lane
            if self._ready is None or self._ready.done():
                self._ready = self.loop.create_future()
            await asyncio.shield(self._ready)

    async def call(self, method: m.Method, *answers: type[m.Method]) -> Any:
        """Send any method and wait for its answer."""
        return await (await self.lane()).call(method, *answers)

    @property
    def is_open(self) -> bool:
        """True while it can be used at once: not closed, and not waiting for a connection."""
        return self._lane is not None and self._lane.open

    # -- publishing ------------------------------------------------------------------------------
    def publish(
        self,
        body: bytes,
        *,
        exchange: str = "",
        routing_key: str = "",
        properties: Properties | None = None,
        mandatory: bool = False,
    ) -> Confirm:
        """Publish a message; may be called from any thread, and never waits.

        Await the answer, or wait for many with ``confirmed``. While there is no connection, or
        the broker takes no publishes, the message is kept and sent later; one that was sent when
        the connection was lost fails with ``Unconfirmed``, or is sent again if the channel was
        opened with ``republish=True`` (then it may be there twice).

        Raises:
            ChannelClosed: the channel can't be used any more.
        """
        if properties is None:
            encoded = NO_PROPERTIES
        elif properties is self._encoded[0]:
            encoded = self._encoded[1]
        else:
            encoded = encode_properties(properties)
            if properties.headers is None:  # headers may be changed behind our back
                self._encoded = (properties, encoded)
        confirm = Confirm(body, exchange, routing_key, encoded, mandatory)
        if threading.get_ident() != self._thread:
            try:
                self.loop.call_soon_threadsafe(self._send_late, confirm)
            except RuntimeError:
                raise ChannelClosed("its event loop is closed") from None
        else:
            self._send(confirm)
        return confirm

    def _send(self, confirm: Confirm) -> None:
        lane = self._lane
        if self.closed is not None:
            raise ChannelClosed(str(self.closed))
        if lane is None or self._backlog or self.connection.blocked is not None:
            self._backlog.append(confirm)
        else:
            lane.publish(confirm)

    def _send_late(self, confirm: Confirm) -> None:
        try:
            self._send(confirm)
        except ChannelClosed as error:
            confirm.settle(error)

    @property
    def unconfirmed(self) -> int:
        """How many publishes have no answer yet."""
        return len(self._backlog) + (len(self._lane.unconfirmed) if self._lane is not None else 0)

    async def confirmed(self, at_most: int = 0) -> None:
        """Wait until no more than ``at_most`` publishes are without an answer.

        On a channel without confirms: until the socket has taken all of them.

        Raises:
            PublishFailed: one of them failed and was not awaited by itself; the first of them.
        """
        while self.unconfirmed > at_most:
            waiter = self.loop.create_future()
            self._waiters.append((at_most, waiter))
            await waiter
        if not self.confirms and self._lane is not None:
            await self._lane.link.room()
        failed, self._failed = self._failed, []
        for confirm in failed:
            if not confirm.seen and confirm.error is not None:
                confirm.seen = True
                raise confirm.error

    def failed(self, confirm: Confirm) -> None:
        if len(self._failed) < _FAILURES:
            self._failed.append(confirm)

    def progress(self) -> None:
        if self._waiters:
            left = self.unconfirmed
            for at_most, waiter in self._waiters:
                if left <= at_most and not waiter.done():
                    waiter.set_result(None)
            self._waiters = [each for each in self._waiters if not each[1].done()]

    def on_return(self, callback: Callable[[Returned], None]) -> None:
        """Have mandatory messages that came back given to ``callback``."""
        self._on_return.append(callback)

    def returned(self, message: Returned) -> None:
        call_each(self._on_return, message)

    # -- consuming -------------------------------------------------------------------------------
    async def set_prefetch(self, prefetch: int) -> None:
        """How many unsettled messages a consumer may have; for consumers to come."""
        await self.call(m.BasicQos(prefetch_count=prefetch), m.BasicQosOk)
        self.prefetch = prefetch

    async def consume(
        self,
        queue: str,
        callback: Callable[[Delivery], Any],
        *,
        tag: str = "",
        no_ack: bool = False,
        exclusive: bool = False,
        arguments: Mapping[str, Any] | None = None,
        on_cancel: OnCancel | None = None,
    ) -> Consumer:
        """Have the messages of a queue given to ``callback``, as they are read from the socket.

        A plain function is called in the event loop and must not wait; a coroutine function is
        run as a task a message, as many at once as the prefetch allows. A callback that raises
        leaves its message unsettled, and is logged.

        ``on_cancel`` is called when the consumer ends and nobody here wanted it: the queue was
        deleted, or the channel is closed. A lost connection is no such end, unless the
        connection does not reconnect.

        Raises:
            Refusal: the broker refused; the channel is closed.
        """
        plain = self._as_tasks(callback) if inspect.iscoroutinefunction(callback) else callback
        consumer = Consumer(
            self,
            queue,
            tag or f"warren-{secrets.token_hex(8)}",
            plain,
            no_ack=no_ack,
            exclusive=exclusive,
            arguments=arguments,
            on_cancel=on_cancel,
        )
        lane = await self.lane()
        if consumer.tag in self.consumers:
            raise ConfigError("tag", f"the channel has a consumer '{consumer.tag}' already")
        self.consumers[consumer.tag] = lane.consumers[consumer.key] = consumer
        try:
            await lane.call(_consume(consumer), m.BasicConsumeOk)
        except BaseException:
            self.consumers.pop(consumer.tag, None)
            raise
        return consumer

    def deliveries(self, queue: str, **options: Any) -> Deliveries:
        """The messages of a queue, for ``async for``; options as for ``consume``."""
        return Deliveries(self, queue, options)

    async def cancel(self, consumer: Consumer) -> None:
        """As ``consumer.cancel()``."""
        if self.consumers.pop(consumer.tag, None) is None:
            return
        consumer.active = False
        lane = self._lane
        if lane is not None and lane.open:
            # An error means that the lane is gone, and the consumer with it.
            with contextlib.suppress(WarrenError):
                await lane.call(m.BasicCancel(consumer.tag), m.BasicCancelOk)
            lane.consumers.pop(consumer.key, None)
        if all(other.queue != consumer.queue for other in self.consumers.values()):
            self.topology.auto_deleted(consumer.queue)

    async def get(self, queue: str, *, no_ack: bool = False) -> Delivery | None:
        """One message, or None if the queue is empty."""
        lane = await self.lane()
        answer = await lane.call(
            m.BasicGet(queue=queue, no_ack=no_ack), m.BasicGetOk, m.BasicGetEmpty
        )
        if not isinstance(answer, Delivery):
            return None
        if no_ack:
            lane.settled(answer.delivery_tag)
        return answer

    async def recover(self) -> None:
        """Give every unsettled message of the channel back; they come again."""
        lane = await self.lane()
        lane.recovered()
        await lane.call(m.BasicRecover(requeue=True), m.BasicRecoverOk)

    def _as_tasks(self, callback: Callable[[Delivery], Any]) -> OnMessage:
        async def run(delivery: Delivery) -> None:
            try:
                await callback(delivery)
            except Exception:  # a task's top: the message stays unsettled
                log.exception("the callback failed over %r", delivery)

        def start(delivery: Delivery) -> None:
            task = self.loop.create_task(run(delivery), name=f"warren {delivery!r}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return start

    # -- the end ---------------------------------------------------------------------------------
    def on_closed(self, callback: Callable[[WarrenError], None]) -> None:
        """Have ``callback`` called when the channel is closed for good, and not by its owner."""
        self._on_closed.append(callback)

    async def close(self) -> None:
        """Close the channel. Messages that were not settled go back to their queues, in order."""
        if self.closed is not None:
            return
        lane, reason = self._lane, ChannelClosed("closed by its owner")
        self._ended(reason, told=False)
        if lane is not None and lane.open:
            lane.close()
            await lane.ended

    def leave(self) -> None:
        """The connection is about to be closed by its owner; for ``Connection``."""
        lane, reason = self._lane, ConnectionClosed(self.connection.address)
        if lane is not None:
            lane.leave()
            self._unsure(lane, str(reason))
        self._ended(reason, told=False)

    def cancelled(self, consumer: Consumer, error: ConsumerCancelled) -> None:
        self.consumers.pop(consumer.tag, None)
        consumer.ended(error)

    def lane_closed(self, lane: Lane, refusal: Refusal | None) -> None:
        self._unsure(lane, str(refusal or "the channel was closed"))
        if refusal is not None and lane is self._lane:
            self._ended(refusal)

    def lane_lost(self, lane: Lane, error: WarrenError | None) -> None:
        again = self.republish and self.closed is None and self.connection.reconnects
        self._unsure(lane, str(error or "the connection was closed"), again=again)
        if lane is self._lane:
            self._lane = None
        if not self.connection.reconnects:
            self._ended(error or ChannelClosed("the connection was closed"), told=error is not None)

    def _unsure(self, lane: Lane, reason: str, *, again: bool = False) -> None:
        """Publishes of a lane that is gone: nobody knows what became of them."""
        unconfirmed = list(lane.unconfirmed.values())
        lane.unconfirmed.clear()
        if again:
            self._backlog[:0] = unconfirmed
            return
        for confirm in unconfirmed:
            confirm.settle(Unconfirmed(confirm.exchange, confirm.routing_key, reason))
            self.failed(confirm)
        self.progress()

    def _ended(self, error: WarrenError, *, told: bool = True) -> None:
        if self.closed is not None:
            return
        self.closed = error
        self._lane = None
        self.connection.forget(self)
        backlog, self._backlog = self._backlog, []
        for confirm in backlog:
            confirm.settle(ChannelClosed(str(error)))
            self.failed(confirm)
        self.progress()
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)
        consumers, self.consumers = list(self.consumers.values()), {}
        for consumer in consumers:
            if told:
                consumer.ended(error)
            else:
                consumer.active = False
        if told:
            call_each(self._on_closed, error)

    def refused(self, refusal: WarrenError) -> None:
        """It could not be made again."""
        self._ended(refusal)

    async def __aenter__(self) -> Channel:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed is not None else "open" if self.is_open else "waiting"
        return f"<channel of {self.connection!r}, {state}>"


def _consume(consumer: Consumer) -> m.BasicConsume:
    return m.BasicConsume(
        queue=consumer.queue,
        consumer_tag=consumer.tag,
        no_ack=consumer.no_ack,
        exclusive=consumer.exclusive,
        arguments=Table(consumer.arguments),
    )
