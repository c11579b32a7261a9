"""Consuming: callbacks and iteration, acks from anywhere, cancels from either side."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.contract.client.conftest import Dial, holds, until
from warren.client import Channel, Connection, Delivery, Properties
from warren.errors import AccessRefused, ConfigError, ConsumerCancelled, WarrenError


async def filled(channel: Channel, queue: str, count: int) -> str:
    await channel.declare_queue(queue)
    for number in range(count):
        channel.publish(b"%d" % number, routing_key=queue)
    await channel.confirmed()
    return queue


async def test_a_callback_gets_every_message_in_order(
    connection: Connection, channel: Channel, name: Any
) -> None:
    queue = await filled(channel, name(), 500)
    got: list[Delivery] = []

    def take(delivery: Delivery) -> None:
        got.append(delivery)
        assert delivery.ack()

    consumer = await channel.consume(queue, take)
    await until(lambda: len(got) == 500)
    await channel.close()

    assert [int(each.body) for each in got] == list(range(500))
    first = got[0]
    assert (first.queue, first.exchange, first.routing_key) == (queue, "", queue)
    assert (first.consumer_tag, first.redelivered, first.delivery_tag) == (consumer.tag, False, 1)
    await holds(await connection.channel(), queue, 0)


async def test_an_ack_for_each_of_many_in_any_order_settles_exactly_those(
    connection: Connection, name: Any
) -> None:
    channel = await connection.channel(prefetch=0)
    queue = await filled(channel, name(), 20)
    got: list[Delivery] = []
    await channel.consume(queue, got.append)
    await until(lambda: len(got) == 20)
    settled = {1, 2, 3, 7, 5, 6, 4, 12, 19}

    for tag in (3, 1, 2, 12, 7, 5):
        assert got[tag - 1].ack()
    await asyncio.sleep(0)
    for tag in (6, 4, 19):
        assert got[tag - 1].ack()
    await channel.close()

    rest = await connection.channel()
    bodies = [(await rest.get(queue, no_ack=True)) for _ in range(20 - len(settled))]
    assert [int(each.body) + 1 for each in bodies if each] == [
        tag for tag in range(1, 21) if tag not in settled
    ]
    await holds(await connection.channel(), queue, 0)


async def test_nacks_between_acks_keep_their_meaning(
    connection: Connection, channel: Channel, name: Any
) -> None:
    queue = await filled(channel, name(), 6)
    got = [await channel.get(queue) for _ in range(6)]
    one, two, three, four, five, six = (each for each in got if each)

    assert one.ack()
    assert two.nack(requeue=True)
    assert three.ack()
    assert four.reject(requeue=False)
    assert six.ack()
    assert five.nack(requeue=False)
    assert not any(each.ack() or each.nack() or each.reject() for each in got if each)

    again = await channel.get(queue)
    assert again is not None
    assert (again.body, again.redelivered) == (b"1", True)
    again.ack()
    await channel.close()
    await holds(await connection.channel(), queue, 0)


async def test_a_delivery_can_be_settled_only_once(channel: Channel, name: Any) -> None:
    queue = await filled(channel, name(), 2)
    first, second = await channel.get(queue), await channel.get(queue)
    assert first is not None
    assert second is not None

    assert second.ack()
    assert not second.ack()
    assert first.nack(requeue=False)
    assert not first.ack()

    # A second ack on the wire would have cost the channel.
    assert await channel.get(queue) is None


async def test_threads_can_ack(connection: Connection, channel: Channel, name: Any) -> None:
    connection.loop.set_debug(True)  # a call from a wrong thread is an error
    queue = await filled(channel, name(), 200)
    got: list[Delivery] = []
    await channel.consume(queue, got.append)
    await until(lambda: len(got) == 100)  # the prefetch
    results: list[bool] = []

    def work(deliveries: list[Delivery]) -> None:
        results.extend([delivery.ack() for delivery in deliveries])

    threads = [threading.Thread(target=work, args=(got[n:100:4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    await until(lambda: len(got) == 200)
    work(got[100:])
    await channel.close()

    assert results == [True] * 200
    await holds(await connection.channel(), queue, 0)


async def test_a_coroutine_as_callback_runs_as_many_at_once_as_the_prefetch_allows(
    connection: Connection, name: Any
) -> None:
    channel = await connection.channel(prefetch=3)
    queue = await filled(channel, name(), 9)
    running = most = done = 0
    release = asyncio.Event()

    async def work(delivery: Delivery) -> None:
        nonlocal running, most, done
        running += 1
        most = max(most, running)
        await release.wait()
        running -= 1
        done += 1
        delivery.ack()

    await channel.consume(queue, work)
    await until(lambda: running == 3)
    release.set()
    await until(lambda: done == 9)

    assert most == 3


async def test_iteration_gets_every_message_and_gives_the_rest_back(
    connection: Connection, channel: Channel, name: Any
) -> None:
    queue = await filled(channel, name(), 10)
    bodies = []

    async with channel.deliveries(queue) as deliveries:
        async for delivery in deliveries:
            bodies.append(int(delivery.body))
            delivery.ack()
            if len(bodies) == 4:
                break

    assert bodies == [0, 1, 2, 3]
    await holds(channel, queue, 6)
    following = await channel.get(queue)
    assert following is not None
    assert following.body == b"4"


async def test_a_failing_callback_leaves_its_message_and_harms_no_other(
    channel: Channel, name: Any, caplog: pytest.LogCaptureFixture
) -> None:
    queue = await filled(channel, name(), 3)
    got: list[bytes] = []

    def take(delivery: Delivery) -> None:
        if delivery.body == b"1":
            raise ValueError("bad message")
        got.append(delivery.body)
        delivery.ack()

    await channel.consume(queue, take)
    await until(lambda: len(got) == 2)

    assert "bad message" in caplog.text
    await channel.recover()
    await until(lambda: caplog.text.count("bad message") >= 2)


async def test_no_ack_deliveries_need_none_and_disturb_no_ack_of_others(
    connection: Connection, channel: Channel, name: Any
) -> None:
    plain, acked = await filled(channel, name(), 20), await filled(channel, name(), 20)
    free: list[Delivery] = []
    held: list[Delivery] = []
    await channel.consume(plain, free.append, no_ack=True)
    await channel.consume(acked, held.append)
    await until(lambda: len(free) == 20 and len(held) == 20)

    assert not free[0].ack()
    for delivery in held[:10]:
        assert delivery.ack()
    await channel.close()

    await holds(await connection.channel(), plain, 0)
    await holds(await connection.channel(), acked, 10)


async def test_a_cancelled_consumer_gets_nothing_more(
    connection: Connection, channel: Channel, name: Any
) -> None:
    queue = await filled(channel, name(), 1)
    got: list[Delivery] = []
    cancelled: list[WarrenError] = []
    consumer = await channel.consume(queue, got.append, on_cancel=cancelled.append)
    await until(lambda: got)

    await consumer.cancel()
    await channel.publish(b"late", routing_key=queue)

    assert not consumer.active
    assert got[0].ack()
    await channel.close()
    assert (len(got), cancelled) == (1, [])
    await holds(await connection.channel(), queue, 1)


async def test_the_broker_s_cancel_is_told(
    dial: Dial, connection: Connection, channel: Channel, name: Any
) -> None:
    queue = await filled(channel, name(), 0)
    cancelled: list[WarrenError] = []
    consumer = await channel.consume(queue, lambda _: None, on_cancel=cancelled.append)
    deliveries = channel.deliveries(queue)
    await deliveries.start()
    other = await (await dial()).channel()

    await other.delete_queue(queue)
    await until(lambda: cancelled)

    assert isinstance(cancelled[0], ConsumerCancelled)
    assert cancelled[0].args == (queue, consumer.tag)
    with pytest.raises(ConsumerCancelled):
        await asyncio.wait_for(anext(deliveries), 20)
    assert channel.is_open


async def test_an_exclusive_consumer_shuts_others_out_at_the_cost_of_their_channel(
    connection: Connection, channel: Channel, name: Any
) -> None:
    queue = await filled(channel, name(), 0)
    await channel.consume(queue, lambda _: None, exclusive=True)
    second = await connection.channel()

    with pytest.raises(AccessRefused, match="exclusive") as refused:
        await second.consume(queue, lambda _: None, exclusive=True)

    assert refused.value.code == 403
    assert not second.is_open
    assert channel.is_open


async def test_a_tag_is_not_used_twice_on_a_channel(channel: Channel, name: Any) -> None:
    queue = await filled(channel, name(), 0)
    await channel.consume(queue, lambda _: None, tag="mine")

    with pytest.raises(ConfigError, match="mine"):
        await channel.consume(queue, lambda _: None, tag="mine")

    assert channel.is_open  # the broker would have ended the whole connection, with 530


async def test_a_hundred_channels_can_be_opened_and_consume_at_once(
    connection: Connection, channel: Channel, name: Any
) -> None:
    queues = [name() for _ in range(100)]
    await asyncio.gather(*(channel.declare_queue(queue) for queue in queues))
    got: list[str] = []

    async def claim(queue: str) -> Channel:
        own = await connection.channel(prefetch=1)
        await own.consume(queue, lambda delivery: got.append(delivery.queue), exclusive=True)
        return own

    channels = await asyncio.gather(*(claim(queue) for queue in queues))
    for queue in queues:
        channel.publish(b"x", routing_key=queue)

    await until(lambda: sorted(got) == sorted(queues))
    await asyncio.gather(*(own.close() for own in channels))
    await holds(channel, queues[0], 1)


async def test_get_tells_how_many_are_left(channel: Channel, name: Any) -> None:
    queue = await filled(channel, name(), 2)

    first, second, none = [await channel.get(queue, no_ack=True) for _ in range(3)]

    assert first is not None
    assert second is not None
    assert (first.message_count, second.message_count, none) == (1, 0, None)
    assert (first.body, first.queue, first.routing_key) == (b"0", "", queue)


async def test_closing_a_channel_gives_messages_back_in_order(
    connection: Connection, channel: Channel, name: Any
) -> None:
    queue = await filled(channel, name(), 10)
    got: list[Delivery] = []
    await channel.consume(queue, got.append)
    await until(lambda: len(got) == 10)
    got[0].ack()

    await channel.close()

    assert not got[1].ack()
    again = await connection.channel()
    bodies = [await again.get(queue, no_ack=True) for _ in range(9)]
    assert [int(each.body) for each in bodies if each] == list(range(1, 10))


async def test_exchanges_and_bindings_can_be_made_and_unmade(channel: Channel, name: Any) -> None:
    source, target, queue = name("source"), name("target"), name()
    await channel.declare_exchange(source, "topic", durable=True)
    await channel.declare_exchange(target, "fanout")
    await channel.declare_exchange(source, passive=True)
    await channel.declare_queue(queue)
    await channel.bind_exchange(target, source, "a.#")
    await channel.bind_queue(queue, target)
    await channel.publish(b"x", exchange=source, routing_key="a.b", mandatory=True)
    assert await channel.purge_queue(queue) == 1

    await channel.unbind_queue(queue, target)
    await channel.unbind_exchange(target, source, "a.#")
    await channel.publish(b"x", exchange=source, routing_key="a.b")
    assert await channel.delete_queue(queue) == 0
    await channel.delete_exchange(target)


# -- headers that fill a frame ---------------------------------------------------------------------
def filling(connection: Connection) -> Properties:
    """Headers that leave no octet of a frame, as a publisher may send them."""
    size = 131_072
    while not connection.fits(found := Properties(headers={"x": "y" * size}, delivery_mode=2)):
        size -= 1
    return found


@pytest.mark.parametrize(
    ("kind", "added"),
    [("stream", "x-stream-offset"), ("quorum", "x-delivery-count"), ("classic", "x-death")],
)
async def test_what_the_broker_adds_to_headers_may_go_beyond_a_frame(
    connection: Connection, name: Any, kind: str, added: str
) -> None:
    channel = await connection.channel(prefetch=10)
    queue, first = name(), name()
    await channel.declare_queue(queue, durable=True, arguments={"x-queue-type": kind})
    expiring = {
        "x-message-ttl": 0,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": queue,
    }
    await channel.declare_queue(first, arguments=expiring)
    routing_key = first if kind == "classic" else queue
    await channel.publish(b"full", routing_key=routing_key, properties=filling(connection))
    if kind == "quorum":
        await until_given(channel, queue)
    got: list[Delivery] = []
    offset = {"x-stream-offset": "first"} if kind == "stream" else {}

    await channel.consume(queue, got.append, arguments=offset)
    await until(lambda: got)

    assert (got[0].body, added in got[0].headers) == (b"full", True)


async def until_given(channel: Channel, queue: str) -> None:
    """Take the message and give it back."""
    while (delivery := await channel.get(queue)) is None:
        await asyncio.sleep(0.01)
    delivery.nack()
