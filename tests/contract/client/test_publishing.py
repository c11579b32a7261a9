"""Publishing: confirms one by one and in windows, returns, nacks, blocked connections."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import warren
from tests.contract.client.conftest import Dial, holds, until
from tests.support.brokers import TestBroker
from tests.support.proxy import Proxy
from warren.client import Channel, Connection, Returned
from warren.errors import ChannelClosed, Nacked, NotFound, Unconfirmed, Unroutable


async def test_a_publish_that_was_awaited_is_in_the_queue(channel: Channel, name: Any) -> None:
    queue = (await channel.declare_queue(name())).name

    await channel.publish(b"x", routing_key=queue)

    await holds(channel, queue, 1)


async def test_many_publishes_are_confirmed_together(channel: Channel, name: Any) -> None:
    queue = (await channel.declare_queue(name())).name
    confirms = [channel.publish(b"%d" % n, routing_key=queue) for n in range(1000)]
    assert channel.unconfirmed == 1000

    await channel.confirmed()

    assert channel.unconfirmed == 0
    assert all(confirm.done and confirm.error is None for confirm in confirms)
    await holds(channel, queue, 1000)


async def test_a_window_lets_no_more_than_so_many_be_open(channel: Channel, name: Any) -> None:
    queue = (await channel.declare_queue(name())).name
    for _ in range(50):
        channel.publish(b"x", routing_key=queue)

    await channel.confirmed(at_most=10)

    assert channel.unconfirmed <= 10


async def test_messages_keep_their_order_and_their_bytes(channel: Channel, name: Any) -> None:
    queue = (await channel.declare_queue(name())).name
    bodies = [b"", b"a", bytes(range(256)), b"x" * 131_064, b"y" * 131_065, b"z" * 1_000_000]
    for body in bodies:
        channel.publish(body, routing_key=queue)
    await channel.confirmed()

    got = [await channel.get(queue, no_ack=True) for _ in bodies]

    assert [message.body for message in got if message] == bodies


async def test_all_properties_arrive_as_they_were(channel: Channel, name: Any) -> None:
    queue = (await channel.declare_queue(name())).name
    properties = warren.Properties(
        content_type="application/json",
        content_encoding="utf-8",
        headers={"text": "é", "number": 5, "list": [1, "two"], "table": {"a": True}, "none": None},
        delivery_mode=2,
        priority=3,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=1_700_000_000,
        type="order",
        user_id="guest",
        app_id="app",
    )

    await channel.publish(b"x", routing_key=queue, properties=properties)

    message = await channel.get(queue, no_ack=True)
    assert message is not None
    assert message.properties == properties
    assert message.headers["list"] == [1, "two"]


async def test_headers_that_are_changed_between_publishes_are_sent_as_they_are(
    channel: Channel, name: Any
) -> None:
    queue = (await channel.declare_queue(name())).name
    headers = {"n": 1}
    properties = warren.Properties(headers=headers)
    channel.publish(b"x", routing_key=queue, properties=properties)
    headers["n"] = 2
    await channel.publish(b"x", routing_key=queue, properties=properties)

    got = [await channel.get(queue, no_ack=True) for _ in range(2)]

    assert [message.headers["n"] for message in got if message] == [1, 2]


async def test_a_mandatory_message_without_a_queue_fails(channel: Channel, name: Any) -> None:
    returned: list[Returned] = []
    channel.on_return(returned.append)
    nowhere = name("nowhere")
    properties = warren.Properties(message_id="m1")

    with pytest.raises(Unroutable, match="NO_ROUTE") as failed:
        await channel.publish(b"x", routing_key=nowhere, mandatory=True, properties=properties)

    assert (failed.value.code, failed.value.routing_key) == (312, nowhere)
    assert [(each.body, each.properties.message_id) for each in returned] == [(b"x", "m1")]
    assert channel.is_open


async def test_of_many_mandatory_messages_the_right_ones_fail(channel: Channel, name: Any) -> None:
    queue, nowhere = (await channel.declare_queue(name())).name, name("nowhere")
    confirms = [
        channel.publish(b"%d" % n, routing_key=nowhere if n % 3 == 0 else queue, mandatory=True)
        for n in range(30)
    ]
    with pytest.raises(Unroutable):
        await channel.confirmed()

    assert [n for n, confirm in enumerate(confirms) if confirm.error] == list(range(0, 30, 3))


async def test_a_full_queue_s_nack_fails_the_publish(channel: Channel, name: Any) -> None:
    queue = (
        await channel.declare_queue(
            name(), arguments={"x-max-length": 1, "x-overflow": "reject-publish"}
        )
    ).name
    await channel.publish(b"fits", routing_key=queue)

    with pytest.raises(Nacked, match="queue is full"):
        await channel.publish(b"does not", routing_key=queue)

    assert channel.is_open


async def test_a_missing_exchange_costs_the_channel_and_fails_the_publish(
    connection: Connection, name: Any
) -> None:
    channel, other = await connection.channel(), await connection.channel()
    closed: list[Any] = []
    channel.on_closed(closed.append)
    nowhere = name("exchange")

    with pytest.raises(warren.ClientError, match=f"no exchange '{nowhere}'"):
        await channel.publish(b"x", exchange=nowhere)

    assert [(type(error), error.code, error.name) for error in closed] == [(NotFound, 404, nowhere)]
    with pytest.raises(ChannelClosed, match="no exchange"):
        channel.publish(b"x")
    with pytest.raises(ChannelClosed, match="open a new one"):
        await channel.declare_queue(name())
    await other.declare_queue(name())


async def test_without_confirms_a_publish_is_done_when_it_is_written(
    connection: Connection, name: Any
) -> None:
    channel = await connection.channel(confirms=False)
    queue = (await channel.declare_queue(name())).name

    await channel.publish(b"x", routing_key=queue)

    assert channel.unconfirmed == 0
    await holds(channel, queue, 1)


async def test_a_thread_can_publish_and_wait(channel: Channel, name: Any) -> None:
    channel.loop.set_debug(True)  # a call from a wrong thread is an error
    queue = (await channel.declare_queue(name())).name
    nowhere = name("nowhere")
    errors: list[BaseException] = []

    def work() -> None:
        for n in range(100):
            channel.publish(b"%d" % n, routing_key=queue).wait(20)
        try:
            channel.publish(b"x", routing_key=nowhere, mandatory=True).wait(20)
        except Unroutable as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)

    assert len(errors) == 4
    await holds(channel, queue, 400)


async def test_a_blocked_connection_s_publishes_wait(
    dial: Dial, broker: TestBroker, name: Any
) -> None:
    connection = await dial()
    told: list[str | None] = []
    connection.on_blocked(told.append)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name())).name
    broker.memory_alarm(True)
    channel.publish(b"1", routing_key=queue)  # only publishers are blocked
    await until(lambda: connection.blocked)
    second = channel.publish(b"2", routing_key=queue)
    third = channel.publish(b"3", routing_key=queue)

    broker.memory_alarm(False)
    for confirm in (second, third):
        await asyncio.wait_for(confirm, 20)

    assert connection.blocked is None
    assert [bool(reason) for reason in told] == [True, False]
    got = [await channel.get(queue, no_ack=True) for _ in range(3)]
    assert [message.body for message in got if message] == [b"1", b"2", b"3"]


async def test_what_waits_for_a_blocked_broker_was_not_sent_and_survives_a_cut(
    dial: Dial, broker: TestBroker, proxy: Proxy, name: Any
) -> None:
    connection = await dial(proxy.url)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), durable=True)).name
    broker.memory_alarm(True)
    sent = channel.publish(b"1", routing_key=queue)
    await until(lambda: connection.blocked)
    kept = channel.publish(b"2", routing_key=queue)

    proxy.cut()
    with pytest.raises(Unconfirmed):
        await asyncio.wait_for(sent, 20)
    broker.memory_alarm(False)

    await asyncio.wait_for(kept, 20)


async def test_closing_waits_for_the_answers(dial: Dial, name: Any) -> None:
    connection = await dial()
    channel = await connection.channel()
    queue = (await channel.declare_queue(name())).name
    confirms = [channel.publish(b"x", routing_key=queue) for _ in range(100)]

    await connection.close()

    assert all(confirm.done and confirm.error is None for confirm in confirms)
