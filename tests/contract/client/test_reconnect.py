"""A lost connection comes back with its channels and consumers."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from tests.contract.client.conftest import Dial, holds, until
from tests.support.brokers import TestBroker
from tests.support.proxy import Proxy
from warren.client import Connection, Delivery
from warren.errors import (
    ConnectionClosed,
    ConnectionLost,
    Unconfirmed,
    WarrenError,
)


async def test_a_consumer_goes_on_after_a_cut(dial: Dial, proxy: Proxy, name: Any) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), durable=True)).name
    got: list[bytes] = []

    def take(delivery: Delivery) -> None:
        got.append(delivery.body)
        delivery.ack()

    consumer = await channel.consume(queue, take)
    await channel.publish(b"before", routing_key=queue)
    await until(lambda: got)

    proxy.cut()
    await until(lambda: connection.generation == 2)
    await channel.publish(b"after", routing_key=queue)

    await until(lambda: b"after" in got)
    assert consumer.active
    assert channel.is_open


async def test_listeners_hear_of_the_loss_and_of_the_return(dial: Dial, proxy: Proxy) -> None:
    connection = await dial(proxy.url)
    lost: list[WarrenError] = []
    back = asyncio.Event()
    connection.on_lost(lost.append)
    connection.on_restored(back.set)

    proxy.cut()
    await asyncio.wait_for(back.wait(), 20)

    assert [type(error) for error in lost] == [ConnectionLost]
    assert (connection.state, connection.generation) == ("open", 2)


async def test_it_keeps_trying_while_nobody_listens(dial: Dial, proxy: Proxy) -> None:
    connection = await dial(proxy.url)
    proxy.refuse()
    proxy.cut()
    await until(lambda: connection.state == "down")
    proxy.accept()

    await asyncio.wait_for(connection.ready(), 20)

    assert connection.generation == 2


async def test_a_stale_ack_is_dropped(dial: Dial, proxy: Proxy, name: Any) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel(prefetch=1)
    queue = (await channel.declare_queue(name(), durable=True)).name
    await channel.publish(b"work", routing_key=queue)
    deliveries = channel.deliveries(queue)
    first = await anext(deliveries)

    proxy.cut()
    await until(lambda: first.stale)
    again = await asyncio.wait_for(anext(deliveries), 20)

    assert not first.ack()
    assert not first.nack()
    assert (again.body, again.redelivered, again.generation) == (b"work", True, 2)
    assert again.ack()
    await deliveries.close()
    await holds(channel, queue, 0)


async def test_what_was_not_taken_out_is_not_handed_out_twice(
    dial: Dial, proxy: Proxy, name: Any
) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), durable=True)).name
    for number in range(5):
        await channel.publish(b"%d" % number, routing_key=queue)
    deliveries = channel.deliveries(queue)
    first = await anext(deliveries)
    first.ack()
    # All five are here now, and four of them wait to be taken out.
    await holds(channel, queue, 0)

    proxy.cut()
    await until(lambda: connection.generation == 2)
    rest = [await asyncio.wait_for(anext(deliveries), 20) for _ in range(4)]

    assert [delivery.body for delivery in rest] == [b"1", b"2", b"3", b"4"]
    assert all(delivery.ack() for delivery in rest)


async def test_an_exclusive_consumer_waits_for_its_place(
    dial: Dial, proxy: Proxy, name: Any
) -> None:
    """The broker believes in the former connection until it notices that it is gone."""
    connection = await dial(proxy.url, heartbeat_s=1)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), durable=True)).name
    got: list[bytes] = []

    def take(delivery: Delivery) -> None:
        got.append(delivery.body)
        delivery.ack()

    await channel.consume(queue, take, exclusive=True)

    proxy.freeze()  # the broker's half of it lives on
    connection.link.abort()
    rival = await (await dial()).channel()
    await rival.publish(b"x", routing_key=queue)

    await until(lambda: b"x" in got, 30)


async def test_a_publish_in_flight_fails_with_a_clear_error(
    dial: Dial, proxy: Proxy, name: Any
) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), durable=True)).name
    proxy.stall()
    confirm = channel.publish(b"x", routing_key=queue)
    await asyncio.sleep(0)

    proxy.cut()

    with pytest.raises(Unconfirmed, match="nobody knows"):
        await asyncio.wait_for(confirm, 20)
    proxy.resume()


async def test_confirmed_raises_what_nobody_awaited(dial: Dial, proxy: Proxy, name: Any) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), durable=True)).name
    proxy.stall()
    for _ in range(3):
        channel.publish(b"x", routing_key=queue)
    await asyncio.sleep(0)
    proxy.cut()

    with pytest.raises(Unconfirmed):
        await asyncio.wait_for(channel.confirmed(), 20)
    proxy.resume()
    await channel.confirmed()  # told once


async def test_a_publish_in_flight_is_sent_again_when_asked(
    dial: Dial, proxy: Proxy, name: Any
) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel(republish=True)
    queue = (await channel.declare_queue(name(), durable=True)).name
    proxy.stall()
    confirms = [channel.publish(b"%d" % number, routing_key=queue) for number in range(3)]
    await asyncio.sleep(0)
    proxy.cut()
    proxy.resume()

    for confirm in confirms:
        await asyncio.wait_for(confirm, 20)
    bodies = [await channel.get(queue, no_ack=True) for _ in range(3)]
    assert [body.body for body in bodies if body] == [b"0", b"1", b"2"]


async def test_a_publish_while_there_is_no_connection_waits_for_it(
    dial: Dial, proxy: Proxy, name: Any
) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), durable=True)).name
    proxy.refuse()
    proxy.cut()
    await until(lambda: connection.state == "down")
    confirm = channel.publish(b"x", routing_key=queue)
    assert channel.unconfirmed == 1
    proxy.accept()

    await asyncio.wait_for(confirm, 20)

    await holds(channel, queue, 1)


async def test_a_call_under_way_fails_and_the_next_one_waits(
    dial: Dial, proxy: Proxy, name: Any
) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel()
    proxy.stall()
    call = asyncio.ensure_future(channel.declare_queue(name()))
    await asyncio.sleep(0)
    proxy.cut()
    with pytest.raises(ConnectionLost):
        await asyncio.wait_for(call, 20)
    proxy.resume()

    await asyncio.wait_for(channel.declare_queue(name()), 20)


async def test_without_reconnect_the_channel_is_told(dial: Dial, proxy: Proxy, name: Any) -> None:
    connection = await dial(proxy.url, reconnect=False)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), exclusive=True)).name
    closed: list[WarrenError] = []
    cancelled: list[WarrenError] = []
    channel.on_closed(closed.append)
    await channel.consume(queue, lambda _: None, on_cancel=cancelled.append)

    proxy.cut()
    await until(lambda: closed and cancelled)

    assert isinstance(closed[0], ConnectionLost)
    assert connection.state == "closed"
    with pytest.raises(ConnectionClosed):
        await connection.channel()
    with pytest.raises(WarrenError, match="closed"):
        channel.publish(b"x", routing_key=queue)


async def test_a_half_open_connection_is_given_up(dial: Dial, proxy: Proxy) -> None:
    connection = await dial(proxy.url, heartbeat_s=1)
    lost: list[WarrenError] = []
    connection.on_lost(lost.append)
    proxy.stall()

    await until(lambda: lost, 30)

    # On a machine that is too busy it may be us who were silent.
    assert re.search("no heartbeat|nothing was sent", str(lost[0]))
    proxy.resume()


async def test_an_operator_s_close_is_a_loss(
    dial: Dial, broker: TestBroker, connection: Connection
) -> None:
    lost: list[WarrenError] = []
    connection.on_lost(lost.append)

    # RabbitMQ's list of connections is a few seconds late.
    for _ in range(100):
        broker.close_connections("maintenance")
        if lost:
            break
        await asyncio.sleep(0.2)

    assert "maintenance" in str(lost[0])
    await until(lambda: connection.generation == 2)


async def test_a_consumer_that_was_cancelled_meanwhile_stays_so(
    dial: Dial, proxy: Proxy, name: Any
) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), durable=True)).name
    consumer = await channel.consume(queue, lambda _: None)
    proxy.refuse()
    proxy.cut()
    await until(lambda: connection.state == "down")
    await consumer.cancel()
    proxy.accept()

    await asyncio.wait_for(connection.ready(), 20)

    assert (await channel.declare_queue(queue, passive=True)).consumers == 0


async def test_a_callback_that_fails_keeps_nothing_from_coming_back(
    dial: Dial, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    connection = await dial(proxy.url)
    back = asyncio.Event()

    def fail(*_: object) -> None:
        raise ValueError("not my day")

    connection.on_lost(fail)
    connection.on_restored(fail)
    connection.on_restored(back.set)
    proxy.cut()

    await asyncio.wait_for(back.wait(), 20)

    assert caplog.text.count("a callback failed") == 2


async def test_a_process_that_was_stopped_too_long_gives_its_connection_up(
    dial: Dial, name: Any
) -> None:
    """After SIGCONT, what it holds may be somebody else's: nothing is said about it any more."""
    connection = await dial(heartbeat_s=5)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), durable=True)).name
    await channel.publish(b"x", routing_key=queue)
    deliveries = channel.deliveries(queue)
    delivery = await anext(deliveries)

    connection.link.session.sent_at -= 10  # nothing was sent for two heartbeats
    assert delivery.stale
    delivery.ack()

    again = await asyncio.wait_for(anext(deliveries), 20)
    assert (again.redelivered, again.generation) == (True, 2)
    assert again.ack()
