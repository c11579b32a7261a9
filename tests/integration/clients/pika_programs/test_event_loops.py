"""Programs with pika and an event loop, without threads."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pika
from pika.adapters.asyncio_connection import AsyncioConnection

from tests.integration.clients.pika_programs.steps import Name
from tests.integration.clients.programs import DEADLINE_S
from tests.support.brokers import TestBroker


class EventProgram:
    """pika's asynchronous example: confirmed publishes, then what it published comes back."""

    MESSAGES = 5

    def __init__(self, exchange: str) -> None:
        self.exchange = exchange
        self.confirmed: list[int] = []
        self.got: list[bytes] = []
        self.closed: BaseException | None = None
        self.connection: Any = None
        self.channel: Any = None

    def opened(self, connection: Any) -> None:
        self.connection = connection
        connection.channel(on_open_callback=self.channel_opened)

    def channel_opened(self, channel: Any) -> None:
        self.channel = channel
        channel.exchange_declare(self.exchange, "topic", callback=self.exchange_declared)

    def exchange_declared(self, frame: Any) -> None:
        self.channel.queue_declare("", exclusive=True, callback=self.queue_declared)

    def queue_declared(self, frame: Any) -> None:
        bound = functools.partial(self.bound, frame.method.queue)
        self.channel.queue_bind(frame.method.queue, self.exchange, "example.#", callback=bound)

    def bound(self, queue: str, frame: Any) -> None:
        self.channel.basic_qos(prefetch_count=2)
        self.channel.basic_consume(queue, self.delivered)
        self.channel.confirm_delivery(self.confirm, callback=self.confirms_on)

    def confirms_on(self, frame: Any) -> None:
        for number in range(self.MESSAGES):
            self.channel.basic_publish(self.exchange, "example.text", b"%d" % number)

    def confirm(self, frame: Any) -> None:
        assert isinstance(frame.method, pika.spec.Basic.Ack)
        self.confirmed.append(frame.method.delivery_tag)
        self.finish_when_done()

    def delivered(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self.got.append(body)
        channel.basic_ack(method.delivery_tag)
        self.finish_when_done()

    def finish_when_done(self) -> None:
        if self.MESSAGES in self.confirmed and len(self.got) == self.MESSAGES:
            self.connection.close()

    def check(self) -> None:
        assert self.got == [b"%d" % number for number in range(self.MESSAGES)]
        assert "Normal shutdown" in str(self.closed)


def test_a_select_connection(broker: TestBroker, name: Name) -> None:
    program = EventProgram(name("message"))

    def on_close(connection: Any, reason: BaseException) -> None:
        program.closed = reason
        connection.ioloop.stop()

    connection = pika.SelectConnection(
        pika.URLParameters(broker.url),
        on_open_callback=program.opened,
        on_open_error_callback=on_close,
        on_close_callback=on_close,
    )
    connection.ioloop.call_later(DEADLINE_S, connection.ioloop.stop)
    connection.ioloop.start()
    connection.ioloop.close()
    program.check()


async def test_an_asyncio_connection(broker: TestBroker, name: Name) -> None:
    program, closed = EventProgram(name("message")), asyncio.Event()

    def on_close(connection: Any, reason: BaseException) -> None:
        program.closed = reason
        closed.set()

    AsyncioConnection(
        pika.URLParameters(broker.url),
        on_open_callback=program.opened,
        on_open_error_callback=on_close,
        on_close_callback=on_close,
    )
    await asyncio.wait_for(closed.wait(), DEADLINE_S)
    program.check()
