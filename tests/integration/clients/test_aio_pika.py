"""Programs as aio-pika's users write them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import aio_pika
import pytest
from aio_pika.abc import AbstractIncomingMessage, AbstractRobustChannel, AbstractRobustConnection
from aio_pika.exceptions import (
    ChannelInvalidStateError,
    ChannelPreconditionFailed,
    DeliveryError,
    MessageProcessError,
    QueueEmpty,
)
from aio_pika.patterns import RPC, Master, NackMessage
from aio_pika.pool import Pool
from aiormq.exceptions import ChannelAccessRefused

from tests.integration.clients.programs import DEADLINE_S
from tests.support.brokers import TestBroker, WarrenBroker

Name = Callable[[str], str]


@pytest.fixture
async def connection(broker: TestBroker, name: Name) -> AsyncIterator[AbstractRobustConnection]:
    connection = await aio_pika.connect_robust(broker.url, reconnect_interval=0.1)
    async with connection:
        yield connection


@pytest.fixture
async def channel(connection: AbstractRobustConnection) -> AbstractRobustChannel:
    return await connection.channel()


def message(body: bytes, **properties: Any) -> aio_pika.Message:
    return aio_pika.Message(body, **properties)


async def within_deadline(awaitable: Any) -> Any:
    return await asyncio.wait_for(awaitable, DEADLINE_S)


class Inbox:
    """What a consumer got, in the order in which it came."""

    def __init__(self) -> None:
        self.got: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()

    async def __call__(self, message: AbstractIncomingMessage) -> None:
        async with message.process():
            self.got.put_nowait(message)

    async def next(self) -> bytes:
        return (await within_deadline(self.got.get())).body


# -- publish and consume -------------------------------------------------------------------------
async def test_the_simple_consumer_iterates_over_a_queue(
    channel: AbstractRobustChannel, name: Name
) -> None:
    orders = await channel.declare_queue(name("orders"), auto_delete=True)
    for number in range(5):
        await channel.default_exchange.publish(message(b"%d" % number), orders.name)
    got = []
    async with orders.iterator(timeout=DEADLINE_S) as messages:
        async for each in messages:
            async with each.process():
                got.append(each.body)
            if len(got) == 5:
                break
    assert got == [b"0", b"1", b"2", b"3", b"4"]


async def test_get_and_an_empty_queue(channel: AbstractRobustChannel, name: Name) -> None:
    orders = await channel.declare_queue(name("orders"))
    await channel.default_exchange.publish(message(b"one", type="order"), orders.name)
    got = await orders.get()
    assert (got.body, got.type, got.redelivered) == (b"one", "order", False)
    await got.ack()
    assert await orders.get(fail=False) is None
    with pytest.raises(QueueEmpty):
        await orders.get()


async def test_logs_by_topic(channel: AbstractRobustChannel, name: Name) -> None:
    logs = await channel.declare_exchange(name("logs"), aio_pika.ExchangeType.TOPIC)
    errors, kernel = Inbox(), Inbox()
    for pattern, inbox in (("*.error", errors), ("kern.#", kernel)):
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind(logs, pattern)
        await queue.consume(inbox)
    for key in ("kern.info", "cron.error", "kern.error"):
        await logs.publish(message(key.encode()), key)
    assert [await errors.next() for _ in range(2)] == [b"cron.error", b"kern.error"]
    assert [await kernel.next() for _ in range(2)] == [b"kern.info", b"kern.error"]


async def test_an_exception_while_processing_requeues_or_dead_letters(
    channel: AbstractRobustChannel, name: Name
) -> None:
    dead = await channel.declare_queue(name("dead"))
    orders = await channel.declare_queue(
        name("orders"),
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.name},
    )
    await channel.default_exchange.publish(message(b"bad"), orders.name)
    for requeue in (True, False):
        got = await orders.get(timeout=DEADLINE_S)
        assert got.redelivered is not requeue
        with pytest.raises(ValueError):
            async with got.process(requeue=requeue):
                raise ValueError
    inbox = Inbox()
    await dead.consume(inbox)
    letter = await within_deadline(inbox.got.get())
    assert letter.headers["x-first-death-reason"] == "rejected"
    assert letter.headers["x-death"][0]["queue"] == orders.name


async def test_a_message_expires_into_its_dead_letter_queue(
    channel: AbstractRobustChannel, name: Name
) -> None:
    inbox = Inbox()
    late = await channel.declare_queue(name("late"))
    await late.consume(inbox)
    waiting = await channel.declare_queue(
        name("waiting"),
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": late.name},
    )
    await channel.default_exchange.publish(message(b"later", expiration=0.05), waiting.name)
    letter = await within_deadline(inbox.got.get())
    assert letter.body == b"later"
    assert letter.headers["x-death"][0]["original-expiration"] == "50"


async def test_fair_dispatch(connection: AbstractRobustConnection, name: Name) -> None:
    tasks, busy, free = name("tasks"), asyncio.Queue[Any](), Inbox()
    for on_message in (busy.put, free):
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=1)
        queue = await channel.declare_queue(tasks, durable=True)
        await queue.consume(on_message)
    for number in range(10):
        task = message(b"%d" % number, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await channel.default_exchange.publish(task, tasks)
    held = await within_deadline(busy.get())
    others = {await free.next() for _ in range(9)}
    assert others | {held.body} == {b"%d" % number for number in range(10)}
    assert busy.empty()
    await held.ack()


async def test_channels_from_a_pool(broker: TestBroker, name: Name) -> None:
    pool: Pool[Any] = Pool(aio_pika.connect_robust, broker.url, max_size=2)
    async with pool:

        async def publish(queue: str, number: int) -> None:
            async with pool.acquire() as connection, connection.channel() as channel:
                await channel.default_exchange.publish(message(b"%d" % number), queue)

        async with pool.acquire() as connection, connection.channel() as channel:
            orders = await channel.declare_queue(name("orders"))
        await within_deadline(asyncio.gather(*(publish(orders.name, n) for n in range(20))))
        async with pool.acquire() as connection, connection.channel() as channel:
            again = await channel.declare_queue(orders.name, passive=True)
            assert again.declaration_result.message_count == 20


# -- confirms ------------------------------------------------------------------------------------
async def test_many_publishes_wait_for_their_confirms_at_once(
    channel: AbstractRobustChannel, name: Name
) -> None:
    orders = await channel.declare_queue(name("orders"))
    confirms = await within_deadline(
        asyncio.gather(
            *(channel.default_exchange.publish(message(b"x"), orders.name) for _ in range(300))
        )
    )
    assert {type(confirm).__name__ for confirm in confirms} == {"Ack"}
    assert (await orders.declare()).message_count == 300


async def test_an_unroutable_message_is_an_error_where_asked_for(
    connection: AbstractRobustConnection, name: Name
) -> None:
    channel = await connection.channel(on_return_raises=True)
    with pytest.raises(DeliveryError) as failed:
        await channel.default_exchange.publish(message(b"lost"), name("nowhere"))
    assert failed.value.message.delivery.reply_text == "NO_ROUTE"


async def test_a_message_that_a_full_queue_refuses_is_an_error(
    channel: AbstractRobustChannel, name: Name
) -> None:
    full = await channel.declare_queue(
        name("full"), arguments={"x-max-length": 0, "x-overflow": "reject-publish"}
    )
    with pytest.raises(DeliveryError) as failed:
        await channel.default_exchange.publish(message(b"no room"), full.name)
    assert type(failed.value.frame).__name__ == "Nack"


async def test_a_transaction(connection: AbstractRobustConnection, name: Name) -> None:
    channel = await connection.channel(publisher_confirms=False)
    orders = await channel.declare_queue(name("orders"))
    async with channel.transaction():
        await channel.default_exchange.publish(message(b"committed"), orders.name)
        assert (await orders.declare()).message_count == 0
    with pytest.raises(ValueError):
        async with channel.transaction():
            await channel.default_exchange.publish(message(b"rolled back"), orders.name)
            raise ValueError
    assert (await orders.declare()).message_count == 1
    assert (await orders.get()).body == b"committed"


# -- patterns ------------------------------------------------------------------------------------
async def test_rpc(vhost_url: str) -> None:
    async def multiply(*, x: int, y: int) -> int:
        return x * y

    async def fail() -> None:
        raise KeyError("no such thing")

    async with await aio_pika.connect_robust(vhost_url) as connection:
        server = await RPC.create(await connection.channel())
        await server.register("multiply", multiply, auto_delete=True)
        await server.register("fail", fail, auto_delete=True)
        client = await RPC.create(await connection.channel())
        assert await within_deadline(client.proxy.multiply(x=6, y=7)) == 42
        calls = (client.call("multiply", {"x": n, "y": n}) for n in range(50))
        assert await within_deadline(asyncio.gather(*calls)) == [n * n for n in range(50)]
        with pytest.raises(KeyError, match="no such thing"):
            await within_deadline(client.proxy.fail())
        with pytest.raises(MessageProcessError, match="Message has been returned"):
            await within_deadline(client.proxy.nobody())
        await client.close()
        await server.close()


async def test_an_rpc_call_that_nobody_takes_in_time_comes_back_through_the_headers_exchange(
    vhost_url: str,
) -> None:
    async with await aio_pika.connect_robust(vhost_url) as connection:
        channel = await connection.channel()
        client = await RPC.create(channel)
        await channel.declare_queue("slow", arguments={"x-dead-letter-exchange": RPC.DLX_NAME})
        with pytest.raises(asyncio.TimeoutError, match="Message timed-out"):
            await within_deadline(client.call("slow", expiration=0.05))
        await client.close()


async def test_master_and_workers(connection: AbstractRobustConnection, name: Name) -> None:
    tasks, done = name("tasks"), asyncio.Queue[tuple[str, int]]()
    refused: list[int] = []

    def worker(who: str) -> Callable[..., Any]:
        async def work(*, task_id: int) -> None:
            if task_id == 3 and not refused:
                refused.append(task_id)
                raise NackMessage(requeue=True)
            done.put_nowait((who, task_id))

        return work

    for who in ("a", "b"):
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=1)
        await Master(channel).create_worker(tasks, worker(who), auto_delete=True)
    master = Master(await connection.channel())
    for task_id in range(10):
        await master.create_task(tasks, {"task_id": task_id})
    got = [await within_deadline(done.get()) for _ in range(10)]
    assert sorted(task_id for _, task_id in got) == list(range(10))
    assert {who for who, _ in got} == {"a", "b"}
    assert refused == [3]


# -- connections that heal -----------------------------------------------------------------------
async def break_connections(broker: TestBroker) -> None:
    """Cut the sockets where we can; RabbitMQ's close is the nearest thing it offers."""
    if isinstance(broker, WarrenBroker):
        broker.broker.faults.cut_connections()
    else:
        await asyncio.to_thread(broker.close_connections, "cut")


async def close_connections(broker: TestBroker) -> None:
    await asyncio.to_thread(broker.close_connections, "maintenance")


@pytest.mark.parametrize("end", [break_connections, close_connections])
async def test_a_robust_connection_comes_back_with_its_queues_and_consumers(
    broker: TestBroker, connection: AbstractRobustConnection, name: Name, end: Any
) -> None:
    again, inbox = asyncio.Event(), Inbox()
    connection.reconnect_callbacks.add(lambda *_: again.set())
    channel = await connection.channel()
    await channel.set_qos(prefetch_count=2)
    logs = await channel.declare_exchange(name("logs"), aio_pika.ExchangeType.FANOUT)
    mine = await channel.declare_queue(name("mine"), exclusive=True)
    await mine.bind(logs)
    tag = await mine.consume(inbox)
    await logs.publish(message(b"before"), "")
    assert await inbox.next() == b"before"

    await end(broker)
    await within_deadline(again.wait())
    await logs.publish(message(b"after"), "")
    assert await inbox.next() == b"after"
    await mine.cancel(tag)


async def test_what_was_not_acked_before_the_cut_comes_again(
    broker: TestBroker, connection: AbstractRobustConnection, name: Name
) -> None:
    got: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
    channel = await connection.channel()
    orders = await channel.declare_queue(name("orders"), durable=True)
    await channel.default_exchange.publish(message(b"order"), orders.name)
    await orders.consume(got.put)
    first = await within_deadline(got.get())
    await break_connections(broker)
    second = await within_deadline(got.get())
    assert (first.redelivered, second.redelivered) == (False, True)
    await second.ack()
    with pytest.raises(ChannelInvalidStateError):
        await first.ack()


async def test_a_plain_connection_tells_why_it_was_closed(broker: TestBroker) -> None:
    closed: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    connection = await aio_pika.connect(broker.url)
    connection.close_callbacks.add(lambda _, reason: closed.set_result(reason))
    await close_connections(broker)
    assert "CONNECTION_FORCED - maintenance" in str(await within_deadline(closed))


# -- refusals ------------------------------------------------------------------------------------
async def test_a_refused_declaration_is_an_error_and_the_connection_goes_on(
    connection: AbstractRobustConnection, name: Name
) -> None:
    orders = name("orders")
    await (await connection.channel()).declare_queue(orders, durable=True)
    with pytest.raises(ChannelPreconditionFailed, match="inequivalent arg 'durable'"):
        await (await connection.channel()).declare_queue(orders, durable=False)
    await (await connection.channel()).declare_queue(orders, durable=True)


async def test_an_exclusive_consumer_refuses_the_second(
    connection: AbstractRobustConnection, name: Name
) -> None:
    orders = await (await connection.channel()).declare_queue(name("orders"))
    tag = await orders.consume(Inbox(), exclusive=True)
    other = await (await connection.channel()).get_queue(orders.name)
    with pytest.raises(ChannelAccessRefused, match="in exclusive use"):
        await other.consume(Inbox(), exclusive=True)
    await orders.cancel(tag)
    await (await (await connection.channel()).get_queue(orders.name)).consume(
        Inbox(), exclusive=True
    )
