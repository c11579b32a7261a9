"""One AMQP channel on one connection: what a ``Channel`` is until the connection is lost.

A lane is never used again: a delivery knows its lane, so an ack that comes too late finds a
closed lane, and can't reach a channel that was opened since.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Protocol

from warren.amqp import methods as m
from warren.amqp.client_hot import (
    encode_ack,
    encode_message,
    encode_nack,
    encode_reject,
    publish_frame,
)
from warren.amqp.client_runs import Run
from warren.amqp.properties import decode_properties
from warren.client.confirm import Confirm
from warren.client.consumer import Consumer
from warren.client.delivery import Delivery, Returned
from warren.client.settling import Settling
from warren.errors import (
    ChannelClosed,
    ConnectionClosed,
    ConsumerCancelled,
    Nacked,
    Refusal,
    Unroutable,
    WarrenError,
)

if TYPE_CHECKING:
    from warren.client.link import Link

log = logging.getLogger(__name__)

Answer = m.Method | Delivery
#: An ack waits for the end of the turn to be sent with others, but not longer than this.
ACKS_WAIT_S = 0.005
_ROUTES = 1000


class LaneOwner(Protocol):
    """Who is told what happens on a lane."""

    def failed(self, confirm: Confirm) -> None:
        """A publish has come to nothing."""
        ...

    def progress(self) -> None:
        """Confirms came."""
        ...

    def returned(self, message: Returned) -> None: ...

    def cancelled(self, consumer: Consumer, error: ConsumerCancelled) -> None: ...

    def lane_closed(self, lane: Lane, refusal: Refusal | None) -> None: ...

    def lane_lost(self, lane: Lane, error: WarrenError | None) -> None: ...


class Nobody:
    """For a lane whose calls say all there is to know."""

    def failed(self, confirm: Confirm) -> None: ...

    def progress(self) -> None: ...

    def returned(self, message: Returned) -> None: ...

    def cancelled(self, consumer: Consumer, error: ConsumerCancelled) -> None: ...

    def lane_closed(self, lane: Lane, refusal: Refusal | None) -> None: ...

    def lane_lost(self, lane: Lane, error: WarrenError | None) -> None: ...


class Lane:
    """Turns calls into frames, and what comes into results."""

    #: A callback may close the channel: messages come one by one.
    run: Run | None = None

    def __init__(self, link: Link, owner: LaneOwner, generation: int) -> None:
        self.link = link
        self.generation = generation
        self.open = True
        self.confirming = False
        self.consumers: dict[bytes, Consumer] = {}
        self.unconfirmed: dict[int, Confirm] = {}
        self._owner = owner
        self._calls: deque[tuple[tuple[type[m.Method], ...], asyncio.Future[Answer]]] = deque()
        self._settling = Settling()
        self._last_tag = 0
        self._published = 0
        self._oldest = 1
        self._mandatory: dict[int, Confirm] = {}
        self._routes: dict[tuple[str, str, bool], bytes] = {}
        self._thread = link.thread
        self.number = link.session.open_channel(self)
        self._opened = self._expect(m.ChannelOpenOk)
        #: Done when the broker has said that the channel is closed, or can't say anything.
        self.ended: asyncio.Future[None] = link.loop.create_future()

    # -- calls -----------------------------------------------------------------------------------
    def opening(self) -> asyncio.Future[Answer]:
        """Done when the broker has opened the channel."""
        self.link.schedule()
        return self._opened

    def call(self, method: m.Method, *answers: type[m.Method]) -> asyncio.Future[Answer]:
        """Send a method; the future gets its answer. Many may be on their way at once."""
        self.check()
        self.link.session.send(self.number, method)
        self.link.schedule()
        return self._expect(*answers)

    def check(self) -> None:
        if not self.open:
            raise ChannelClosed("it is gone")

    def _expect(self, *answers: type[m.Method]) -> asyncio.Future[Answer]:
        future: asyncio.Future[Answer] = self.link.loop.create_future()
        self._calls.append((answers, future))
        return future

    def _answer(self, method: m.Method, value: Answer) -> None:
        if not self._calls or not isinstance(method, self._calls[0][0]):
            self.link.session.fail(f"{method.name}, which answers nothing that was asked")
            return
        future = self._calls.popleft()[1]
        if not future.done():
            future.set_result(value)

    # -- publishing ------------------------------------------------------------------------------
    def publish(self, confirm: Confirm) -> None:
        route = (confirm.exchange, confirm.routing_key, confirm.mandatory)
        frame = self._routes.get(route)
        if frame is None:
            frame = self._route(route)
        link = self.link
        data = encode_message(
            frame, self.number, confirm.properties, confirm.body, link.session.frame_max
        )
        link.session.out.append(data)
        if self.confirming:
            self._published += 1
            self.unconfirmed[self._published] = confirm
            if confirm.mandatory:
                self._mandatory[self._published] = confirm
        else:
            confirm.settle()
        link.wrote(len(data))

    def _route(self, route: tuple[str, str, bool]) -> bytes:
        if len(self._routes) >= _ROUTES:
            self._routes.clear()
        exchange, routing_key, mandatory = route
        frame = publish_frame(self.number, exchange, routing_key, mandatory=mandatory)
        self._routes[route] = frame
        return frame

    def confirm(self, delivery_tag: int, multiple: bool, ack: bool) -> None:
        if multiple:
            tags = range(self._oldest, delivery_tag + 1)
            self._oldest = max(self._oldest, delivery_tag + 1)
        else:
            tags = range(delivery_tag, delivery_tag + 1)
            if delivery_tag == self._oldest:
                self._oldest += 1
        unconfirmed = self.unconfirmed
        for tag in tags:
            confirm = unconfirmed.pop(tag, None)
            if confirm is None:
                continue
            if confirm.mandatory:
                self._mandatory.pop(tag, None)
            if not ack:
                confirm.settle(Nacked(confirm.exchange, confirm.routing_key))
            else:
                confirm.settle()
            if confirm.error is not None:
                self._owner.failed(confirm)
        self._owner.progress()

    # -- settling, from any thread ---------------------------------------------------------------
    def ack(self, tag: int) -> bool:
        if threading.get_ident() != self._thread:
            return self._from_afar(self.ack, tag)
        if not self.open or not self._settling.ack(tag):
            return False
        link = self.link
        if self not in link.dirty:
            link.dirty[self] = None
            link.schedule()
        if link.reading and time.monotonic() - link.turn_began > ACKS_WAIT_S:
            # A callback that takes its time: the acks before it need not wait for it.
            link.turn_began = time.monotonic()
            link.flush()
        return True

    def nack(self, tag: int, requeue: bool) -> bool:
        if threading.get_ident() != self._thread:
            return self._from_afar(self.nack, tag, requeue)
        return self._settle(tag, encode_nack(self.number, tag, multiple=False, requeue=requeue))

    def reject(self, tag: int, requeue: bool) -> bool:
        if threading.get_ident() != self._thread:
            return self._from_afar(self.reject, tag, requeue)
        return self._settle(tag, encode_reject(self.number, tag, requeue=requeue))

    def _from_afar(self, settle: object, *arguments: object) -> bool:
        if not self.open:
            return False
        try:
            self.link.loop.call_soon_threadsafe(settle, *arguments)  # type: ignore[arg-type]
        except RuntimeError:  # the loop is closed
            return False
        return True

    def _settle(self, tag: int, frame: bytes) -> bool:
        # Acks that were noted go out later: they can't run over a tag that is settled already.
        if not self.open or not self._settling.settle(tag):
            return False
        self.link.session.out.append(frame)
        self.link.schedule()
        return True

    def flush(self) -> None:
        """Send the acks that were noted."""
        if self.open:
            out, number = self.link.session.out, self.number
            for tag, multiple in self._settling.take():
                out.append(encode_ack(number, tag, multiple=multiple))

    def recovered(self) -> None:
        """basic.recover: every delivery goes back, and comes again under another tag."""
        self.flush()
        self._settling.forget(self._last_tag)

    # -- from the session ------------------------------------------------------------------------
    def deliver(
        self,
        consumer_tag: bytes,
        delivery_tag: int,
        redelivered: bool,
        route: bytes,
        properties: bytes,
        body: bytes,
    ) -> None:
        self._last_tag = delivery_tag
        consumer = self.consumers.get(consumer_tag)
        if consumer is None:
            log.warning("a message for consumer %r, whom nobody knows", consumer_tag)
            return
        if not consumer.active and not consumer.no_ack:
            self.nack(delivery_tag, True)  # on its way when the consumer was cancelled
            return
        delivery = Delivery(self, consumer, delivery_tag, redelivered, route, properties, body)
        if consumer.no_ack:
            self._settling.settle(delivery_tag)
        try:
            consumer.callback(delivery)
        except Exception:  # the read loop must live; the message stays unsettled
            log.exception("%r: the callback failed over %r", consumer, delivery)

    def content(self, method: m.Method, properties: bytes, body: bytes) -> None:
        if isinstance(method, m.BasicGetOk):
            self._last_tag = method.delivery_tag
            route = m.shortstr(method.exchange) + m.shortstr(method.routing_key)
            delivery = Delivery(
                self, None, method.delivery_tag, method.redelivered, route, properties, body
            )
            delivery.message_count = method.message_count
            self._answer(method, delivery)
        elif isinstance(method, m.BasicReturn):
            self._returned(method, properties, body)

    def _returned(self, method: m.BasicReturn, properties: bytes, body: bytes) -> None:
        """A return comes before the confirm of its message, in the order of publishing."""
        error = Unroutable(
            method.exchange, method.routing_key, method.reply_code, method.reply_text
        )
        for tag, confirm in self._mandatory.items():
            if (confirm.exchange, confirm.routing_key, confirm.body) == (
                method.exchange,
                method.routing_key,
                body,
            ):
                confirm.error = error
                del self._mandatory[tag]
                break
        self._owner.returned(
            Returned(
                method.reply_code,
                method.reply_text,
                method.exchange,
                method.routing_key,
                decode_properties(properties),
                body,
            )
        )

    def method(self, method: m.Method) -> None:
        if isinstance(method, m.BasicCancel):
            consumer = self.consumers.pop(m.shortstr(method.consumer_tag)[1:], None)
            if consumer is not None:
                self._owner.cancelled(
                    consumer, ConsumerCancelled(consumer.queue, method.consumer_tag)
                )
            return
        self._answer(method, method)

    def settled(self, tag: int) -> None:
        """A delivery that needs no ack."""
        self._settling.settle(tag)

    def closed(self, refusal: Refusal | None) -> None:
        self._end(refusal or ChannelClosed("closed by its owner"))
        self._owner.lane_closed(self, refusal)

    def lost(self, error: WarrenError | None) -> None:
        self._end(error or ConnectionClosed(self.link.address))
        self._owner.lane_lost(self, error)

    def _end(self, error: WarrenError) -> None:
        self.open = False
        calls, self._calls = self._calls, deque()
        for _, future in calls:
            if not future.done():
                future.set_exception(error)
                future.exception()  # whoever waits gets it; who doesn't is not to be warned
        self.consumers = {}
        if not self.ended.done():
            self.ended.set_result(None)

    def leave(self) -> None:
        """Say what is left to say: from now on nothing more goes out on it."""
        self.flush()
        self.open = False

    def close(self) -> None:
        """Ask the broker to close the channel; ``closed`` follows."""
        if self.open:
            self.leave()
            self.link.session.close_channel(self.number)
            self.link.schedule()
