"""What a lost connection had declared is there again when it is back."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.contract.client.conftest import Dial, until
from tests.support import wire
from tests.support.brokers import TestBroker
from tests.support.proxy import Proxy
from warren.client import Connection
from warren.errors import ResourceLocked, Unroutable, WarrenError


async def test_what_was_declared_is_declared_again(dial: Dial, proxy: Proxy, name: Any) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel()
    exchange, queue = name("exchange"), name("queue")
    await channel.declare_exchange(exchange, "topic", auto_delete=True)
    await channel.declare_queue(queue, exclusive=True)
    await channel.bind_queue(queue, exchange, "a.*")
    got: list[bytes] = []
    await channel.consume(queue, lambda delivery: got.append(delivery.body), no_ack=True)

    proxy.cut()
    await until(lambda: connection.generation == 2)
    await connection.ready()
    await channel.publish(b"x", exchange=exchange, routing_key="a.b", mandatory=True)

    await until(lambda: got == [b"x"])


async def test_a_queue_that_the_broker_named_gets_a_new_name(
    dial: Dial, proxy: Proxy, name: Any
) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel()
    queue = (await channel.declare_queue(exclusive=True)).name
    exchange = name("exchange")
    await channel.declare_exchange(exchange, "fanout")
    await channel.bind_queue(queue, exchange)
    got: list[bytes] = []
    consumer = await channel.consume(queue, lambda each: got.append(each.body), no_ack=True)

    proxy.cut()
    await until(lambda: connection.generation == 2)
    await connection.ready()
    await channel.publish(b"x", exchange=exchange, mandatory=True)

    await until(lambda: got == [b"x"])
    assert consumer.queue != queue


async def test_what_was_deleted_is_not_declared_again(dial: Dial, proxy: Proxy, name: Any) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name())).name
    await channel.delete_queue(queue)

    proxy.cut()
    await until(lambda: connection.generation == 2)
    await connection.ready()

    probe = await connection.channel()
    with pytest.raises(WarrenError, match="no queue"):
        await probe.declare_queue(queue, passive=True)


async def test_a_queue_that_was_declared_otherwise_meanwhile_is_consumed_as_it_is(
    dial: Dial, proxy: Proxy, name: Any
) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel()
    queue, other = name(), name()
    got: list[bytes] = []
    for each in (queue, other):
        await channel.declare_queue(each)
        await channel.consume(each, lambda delivery: got.append(delivery.body), no_ack=True)
    thief = await (await dial()).channel()
    proxy.refuse()
    proxy.cut()
    await until(lambda: connection.state == "down")
    for each in (queue, other):
        await thief.delete_queue(each)
    await thief.declare_queue(queue, durable=True)
    proxy.accept()
    await asyncio.wait_for(connection.ready(), 20)

    await thief.publish(b"theirs", routing_key=queue)
    await thief.publish(b"ours", routing_key=other)

    await until(lambda: sorted(got) == [b"ours", b"theirs"])


async def test_an_exclusive_queue_is_refused_to_another_connection(
    dial: Dial, connection: Connection
) -> None:
    channel = await connection.channel()
    queue = (await channel.declare_queue(exclusive=True)).name
    other = await (await dial()).channel()

    with pytest.raises(ResourceLocked) as refused:
        await other.declare_queue(queue, passive=True)

    assert (refused.value.code, refused.value.queue, refused.value.vhost) == (405, queue, "/")
    assert channel.is_open


async def test_an_exclusive_queue_is_had_again_once_the_broker_gives_the_former_one_up(
    dial: Dial, proxy: Proxy, name: Any
) -> None:
    connection = await dial(proxy.url, heartbeat_s=1)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), exclusive=True)).name
    got: list[bytes] = []
    await channel.consume(queue, lambda delivery: got.append(delivery.body), no_ack=True)

    proxy.freeze()
    connection.link.abort()
    await until(lambda: connection.generation >= 2 and channel.is_open, 30)

    await channel.publish(b"x", routing_key=queue, mandatory=True)
    await until(lambda: got == [b"x"])


@pytest.fixture
def between() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Has something done once, between the refusal of a declaration and what follows it."""
    logger, begun = logging.getLogger("warren.client.comeback"), []

    class Act(logging.Handler):
        def __init__(self, act: Callable[[], None]) -> None:
            super().__init__()
            self._act = act

        def emit(self, record: logging.LogRecord) -> None:
            if "could not do queue.declare again" in record.getMessage():
                logger.removeHandler(self)
                self._act()

    def begin(act: Callable[[], None]) -> None:
        begun.append(Act(act))
        logger.addHandler(begun[-1])

    yield begin
    for handler in begun:
        logger.removeHandler(handler)


async def _taken_meanwhile(
    proxy: Proxy, connection: Connection, queue: str, url: str
) -> wire.Connection:
    """While the connection is cut, somebody else takes its exclusive queue's name."""
    proxy.refuse()
    proxy.cut()
    await until(lambda: connection.state == "down")
    other = wire.Connection.open(url)
    channel = other.channel()

    def taken() -> bool:
        nonlocal channel
        try:
            channel.declare(queue, exclusive=True)
        except wire.Closed:  # the broker has not seen the cut yet
            channel = other.channel()
            return False
        return True

    await until(taken)
    return other


async def test_an_exclusive_queue_given_up_after_the_refusal_keeps_its_consumer(
    dial: Dial, proxy: Proxy, broker: TestBroker, name: Any, between: Any
) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), exclusive=True)).name
    got: list[bytes] = []
    await channel.consume(queue, lambda delivery: got.append(delivery.body), no_ack=True)

    other = await _taken_meanwhile(proxy, connection, queue, broker.url)
    between(other.close)
    proxy.accept()

    await until(lambda: channel.is_open)
    await channel.publish(b"x", routing_key=queue, mandatory=True)
    await until(lambda: got == [b"x"])


async def test_an_exclusive_queue_that_nobody_consumes_from_is_had_again_too(
    dial: Dial, proxy: Proxy, broker: TestBroker, name: Any
) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), exclusive=True)).name
    await channel.bind_queue(queue, "amq.direct", queue)

    other = await _taken_meanwhile(proxy, connection, queue, broker.url)
    proxy.accept()
    await until(lambda: channel.is_open)
    other.close()

    async def routed() -> bool:
        try:
            await channel.publish(b"x", exchange="amq.direct", routing_key=queue, mandatory=True)
        except Unroutable:
            return False
        return True

    deadline = time.monotonic() + 30
    while not await routed():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    assert (await channel.get(queue, no_ack=True)) is not None


async def test_a_queue_that_was_deleted_meanwhile_costs_its_consumer_only(
    dial: Dial, proxy: Proxy, name: Any
) -> None:
    connection = await dial(proxy.url)
    other = await (await dial()).channel()
    gone, there = name(), name()
    channel = await connection.channel()
    got: list[bytes] = []
    cancelled: list[WarrenError] = []
    for queue in (gone, there):
        await other.declare_queue(queue)
        await channel.consume(
            queue,
            lambda delivery: got.append(delivery.body),
            no_ack=True,
            on_cancel=cancelled.append,
        )
    proxy.refuse()
    proxy.cut()
    await until(lambda: connection.state == "down")
    await other.delete_queue(gone)
    proxy.accept()

    await other.publish(b"x", routing_key=there)

    await until(lambda: got == [b"x"])
    assert [error.args[0] for error in cancelled] == [gone]


async def test_while_one_queue_is_waited_for_the_others_are_made_once(
    dial: Dial, proxy: Proxy, name: Any
) -> None:
    connection = await dial(proxy.url, heartbeat_s=1)
    waiting, going = await connection.channel(), await connection.channel()
    locked = (await waiting.declare_queue(name(), exclusive=True)).name
    await waiting.consume(locked, lambda _: None)
    named = (await going.declare_queue(exclusive=True)).name
    got: list[bytes] = []
    consumer = await going.consume(named, lambda each: got.append(each.body), no_ack=True)

    proxy.freeze()
    connection.link.abort()
    await until(lambda: connection.generation >= 2 and going.is_open, 30)
    generation, renamed = connection.generation, consumer.queue
    await until(lambda: waiting.is_open, 30)

    if connection.generation == generation:  # not lost again on a machine that is too busy
        assert consumer.queue == renamed
    await going.publish(b"x", routing_key=consumer.queue, mandatory=True)
    await until(lambda: got == [b"x"])
