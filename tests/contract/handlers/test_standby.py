"""The seed's two sequences of events: several workers, one of them working."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

import warren
from tests.support.brokers import TestBroker
from tests.support.proxy import Proxy
from warren.client import Channel
from warren.errors import ConfigError, NotFound
from warren.handlers.standby import Standby

SINGLE = {"x-single-active-consumer": True}
QUORUM = {"x-queue-type": "quorum"}


@pytest.fixture
async def channel(broker: TestBroker) -> AsyncIterator[Channel]:
    async with warren.connect(broker.url) as connection:
        yield await connection.channel()


@pytest.fixture
async def workers(broker: TestBroker) -> AsyncIterator[Callable[..., Any]]:
    """Starts workers; each gets a proxy of its own, so that it can be made to crash."""
    async with AsyncExitStack() as stack:

        async def start(queue: str, mode: str) -> tuple[Standby, Proxy]:
            proxy = stack.enter_context(Proxy(broker.host, broker.port))
            worker = warren.standby(queue, url=proxy.url, mode=mode, retry_s=0.05)
            return await stack.enter_async_context(worker), proxy

        yield start


async def until(check: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not check():
            await asyncio.sleep(0.01)


async def take(worker: Standby, count: int) -> list[bytes]:
    bodies = []
    async with asyncio.timeout(20):
        async for delivery in worker:
            bodies.append(delivery.body)
            assert delivery.ack()
            if len(bodies) == count:
                break
    return bodies


async def publish(channel: Channel, queue: str, *numbers: int) -> None:
    for number in numbers:
        await channel.publish(b"%d" % number, routing_key=queue)


async def test_the_standby_asks_until_the_exclusive_consumer_is_gone(
    channel: Channel, workers: Any, name: Callable[[str], str]
) -> None:
    queue = name("orders")
    await channel.declare_queue(queue, durable=True)
    await publish(channel, queue, *range(6))
    # A starts first and works.
    a, line_of_a = await workers(queue, "exclusive")
    assert await take(a, 2) == [b"0", b"1"]
    # B starts next and is refused, again and again.
    b, _ = await workers(queue, "exclusive")
    await until(lambda: b.refusals >= 2)
    assert (a.active, b.active) == (True, False)
    # The process of A crashes: B's next try succeeds, and goes on in order.
    line_of_a.refuse()
    line_of_a.cut()
    first = await asyncio.wait_for(anext(b), 20)
    assert (first.body, first.redelivered) == (b"2", True)
    assert first.ack()
    assert await take(b, 1) == [b"3"]
    # A comes back and is refused now.
    line_of_a.accept()
    before = a.refusals
    await until(lambda: a.refusals >= before + 2)
    assert (a.active, b.active) == (False, True)
    assert await take(b, 2) == [b"4", b"5"]


@pytest.mark.parametrize("arguments", [SINGLE, {**SINGLE, **QUORUM}], ids=["classic", "quorum"])
async def test_the_broker_hands_the_queue_to_the_next_registered_consumer(
    channel: Channel, workers: Any, name: Callable[[str], str], arguments: dict[str, Any]
) -> None:
    queue = name("orders")
    await channel.declare_queue(queue, durable=True, arguments=arguments)
    # Some consumers register; the first is the active one, the other is ignored.
    a, line_of_a = await workers(queue, "single-active")
    await publish(channel, queue, *range(4))
    assert await take(a, 2) == [b"0", b"1"]
    b, _ = await workers(queue, "single-active")
    assert (a.active, b.active) == (True, False)
    # The active one dies: the queue fails over by itself.
    line_of_a.refuse()
    line_of_a.cut()
    assert await take(b, 2) == [b"2", b"3"]
    await until(lambda: not a.active)
    # It comes back and waits its turn.
    line_of_a.accept()
    await publish(channel, queue, 4)
    assert await take(b, 1) == [b"4"]
    assert (a.active, b.active) == (False, True)


@pytest.mark.parametrize(
    ("arguments", "mode", "remedy"),
    [
        (SINGLE, "exclusive", "use mode='single-active'"),
        (QUORUM, "exclusive", "ignores the exclusive flag.*x-single-active-consumer"),
        ({}, "single-active", "x-single-active-consumer=true.*or use mode='exclusive'"),
    ],
)
async def test_a_queue_that_does_not_fit_the_mode_is_refused_with_the_remedy(
    channel: Channel,
    workers: Any,
    name: Callable[[str], str],
    arguments: dict[str, Any],
    mode: str,
    remedy: str,
) -> None:
    queue = name("orders")
    await channel.declare_queue(queue, durable=True, arguments=arguments)
    with pytest.raises(ConfigError, match=remedy):
        await workers(queue, mode)


async def test_a_worker_that_is_cancelled_while_it_enters_does_not_take_the_queue(
    broker: TestBroker, channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("orders")
    await channel.declare_queue(queue, durable=True)
    with Proxy(broker.host, broker.port) as proxy:
        proxy.stall()
        entering = asyncio.create_task(warren.standby(queue, url=proxy.url).__aenter__())
        await until(lambda: proxy.accepted)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        proxy.resume()
        await until(lambda: not proxy.connections)
    await channel.consume(queue, lambda _: None, exclusive=True)


async def test_a_queue_that_is_not_there_is_named(workers: Any, name: Callable[[str], str]) -> None:
    queue = name("nothing")
    with pytest.raises(NotFound, match=queue):
        await workers(queue, "exclusive")


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="exclusive or single-active"):
        warren.standby("q", mode="both")  # type: ignore[arg-type]
