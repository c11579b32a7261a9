"""Apps on each broker, with names of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

import warren
from tests.support.brokers import TestBroker
from warren.client import Channel, Delivery


class Bench:
    """What the tests of handlers work with: queues, apps, and what came of the messages."""

    def __init__(self, broker: TestBroker, channel: Channel, name: Callable[[str], str]) -> None:
        self.broker, self.channel, self.name = broker, channel, name
        self.group = name("group")
        self.dead = f"warren.dead.{self.group}"

    async def queue(self, label: str = "orders", **arguments: Any) -> str:
        queue = self.name(label)
        await self.channel.declare_queue(queue, durable=True, arguments=arguments)
        return queue

    def app(self, **options: Any) -> warren.App:
        usual = {"min_interval_s": 0.1, "discover_s": 0.2, "management": self.broker.management}
        options = {**usual, **options}
        return warren.App(self.broker.url, group=self.group, **options)

    async def publish(self, queue: str, *bodies: bytes, **fields: Any) -> None:
        for body in bodies:
            await self.channel.publish(
                body, routing_key=queue, properties=warren.Properties(**fields), mandatory=True
            )

    async def ready(self, queue: str) -> int:
        return (await self.channel.declare_queue(queue, passive=True)).messages

    async def next_of(self, queue: str) -> Delivery:
        """The next message of a queue, waited for."""
        async with asyncio.timeout(20):
            while True:
                try:
                    delivery = await self.channel.get(queue)
                except warren.errors.NotFound:
                    self.channel = await self.channel.connection.channel()
                    delivery = None
                if delivery is not None:
                    delivery.ack()
                    return delivery
                await asyncio.sleep(0.02)


@pytest.fixture
async def bench(broker: TestBroker, name: Callable[[str], str]) -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(warren.connect(broker.url))
        bench = Bench(broker, await connection.channel(), name)
        yield bench
        async with await connection.channel() as channel:
            await channel.delete_queue(bench.dead)


async def until(check: Callable[[], Any], within_s: float = 20.0) -> None:
    async with asyncio.timeout(within_s):
        while not check():
            await asyncio.sleep(0.01)
