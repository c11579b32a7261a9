"""The client and a broker that fails it: restarts, lost confirms, cancelled consumers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import warren
from tests.contract.client.conftest import FAST, until
from tests.support import rabbitmq
from warren import Broker
from warren.client import Backoff, Delivery
from warren.errors import HostUnreachable, Unconfirmed, WarrenError


async def test_after_a_restart_everything_is_there_again(tmp_path: Path) -> None:
    got: list[bytes] = []

    def take(delivery: Delivery) -> None:
        got.append(delivery.body)
        delivery.ack()

    with Broker.in_thread(data_dir=str(tmp_path)) as broker:
        port = broker.port
        connection = await warren.connect(broker.url, backoff=FAST)
        channel = await connection.channel()
        await channel.declare_exchange("volatile", "topic")
        await channel.declare_queue("volatile")
        await channel.bind_queue("volatile", "volatile", "#")
        await channel.declare_queue("kept", durable=True)
        await channel.consume("volatile", take)
        persistent = warren.Properties(delivery_mode=2)
        await channel.publish(b"kept", routing_key="kept", properties=persistent)
    await until(lambda: connection.state == "down")
    waiting = channel.publish(b"late", exchange="volatile", routing_key="x", mandatory=True)

    with Broker.in_thread(port=port, data_dir=str(tmp_path)):
        await asyncio.wait_for(waiting, 20)
        await until(lambda: got == [b"late"])
        kept = await channel.get("kept", no_ack=True)
        assert kept is not None
        assert kept.body == b"kept"
        await connection.close()


async def test_a_closed_connection_does_not_come_back() -> None:
    with Broker.in_thread() as broker:
        connection = await warren.connect(broker.url, backoff=FAST)
        broker.faults.cut_connections()
        await until(lambda: connection.state == "down")
        await connection.close()
        assert connection.state == "closed"
        await until(lambda: broker.snapshot()["connections"] == 0)


async def test_closing_ends_the_tries(caplog: pytest.LogCaptureFixture) -> None:
    with Broker.in_thread() as broker:
        connection = await warren.connect(broker.url, backoff=Backoff(first_s=0.01, most_s=0.01))
    await until(lambda: "trying again" in caplog.text)

    await connection.close()

    with pytest.raises(HostUnreachable):
        await warren.connect(broker.url)


async def test_cut_again_and_again_it_still_has_its_consumer() -> None:
    got: set[bytes] = set()

    def take(delivery: Delivery) -> None:
        got.add(delivery.body)
        delivery.ack()

    with Broker.in_thread() as broker:
        async with warren.connect(broker.url, backoff=FAST) as connection:
            channel = await connection.channel(prefetch=5, republish=True)
            await channel.declare_queue("work", durable=True)
            await channel.consume("work", take)
            for number in range(200):
                channel.publish(b"%d" % number, routing_key="work")
                if number % 20 == 0:
                    broker.faults.cut_connections()
                await asyncio.sleep(0)
            await asyncio.wait_for(channel.confirmed(), 30)
            await until(lambda: len(got) == 200)
            [queue] = broker.snapshot()["queues"]
            assert queue["consumers"] == 1


async def test_a_confirm_that_never_comes_is_unsure_when_the_channel_is_closed() -> None:
    with Broker.in_thread() as broker:
        broker.faults.drop_confirms()
        async with warren.connect(broker.url) as connection:
            channel = await connection.channel()
            queue = (await channel.declare_queue(exclusive=True)).name
            confirm = channel.publish(b"x", routing_key=queue)
            await channel.declare_queue(queue, passive=True)
            assert not confirm.done

            await channel.close()

            with pytest.raises(Unconfirmed):
                await confirm


async def test_a_consumer_that_the_broker_cancels_is_told() -> None:
    with Broker.in_thread() as broker:
        async with warren.connect(broker.url) as connection:
            channel = await connection.channel()
            await channel.declare_queue("work")
            cancelled: list[WarrenError] = []
            await channel.consume("work", lambda _: None, on_cancel=cancelled.append)

            broker.faults.cancel_consumers("work")

            await until(lambda: cancelled)
            assert channel.is_open


@pytest.fixture
def node() -> Iterator[rabbitmq.Node]:
    node = rabbitmq.restartable()
    yield node
    try:
        node.wait_ready()
    except rabbitmq.ServerEnded:  # the test failed half way
        node.start()
        node.wait_ready()


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_after_a_power_cut_of_rabbitmq_everything_is_there_again(node: rabbitmq.Node) -> None:
    got: list[bytes] = []

    def take(delivery: Delivery) -> None:
        got.append(delivery.body)
        delivery.ack()

    async with warren.connect(node.url, backoff=FAST) as connection:
        channel = await connection.channel(republish=True)
        await channel.declare_exchange("volatile", "topic")
        named = (await channel.declare_queue(exclusive=True)).name
        await channel.bind_queue(named, "volatile", "#")
        await channel.declare_queue("kept", durable=True)
        consumer = await channel.consume(named, take)
        persistent = warren.Properties(delivery_mode=2)
        await channel.publish(b"kept", routing_key="kept", properties=persistent)

        await asyncio.to_thread(node.keep_declared)
        await asyncio.to_thread(node.kill)
        await until(lambda: connection.state == "down")
        waiting = channel.publish(b"late", exchange="volatile", routing_key="x", mandatory=True)
        node.start()

        await asyncio.wait_for(waiting, 120)
        await until(lambda: got == [b"late"])
        assert consumer.queue != named
        kept = await channel.get("kept", no_ack=True)
        assert kept is not None
        assert kept.body == b"kept"
        await channel.delete_queue("kept")
        await channel.delete_exchange("volatile")
