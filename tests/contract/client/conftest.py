"""The client against each broker, straight or through a proxy that breaks the connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

import warren
from tests.support.brokers import TestBroker
from tests.support.proxy import Proxy
from warren.client import Backoff, Channel, Connection

Dial = Callable[..., Awaitable[Connection]]
#: Comes back at once: a test need not wait as long as a client that is kind to its broker.
FAST = Backoff(first_s=0.02, most_s=0.2)


async def until(check: Callable[[], Any], within_s: float = 30.0) -> Any:
    """``eventually`` for a test whose event loop must go on meanwhile."""
    deadline = time.monotonic() + within_s
    while not (answer := check()):
        assert time.monotonic() < deadline, f"not true within {within_s} s: {answer!r}"
        await asyncio.sleep(0.01)
    return answer


async def holds(channel: Channel, queue: str, messages: int) -> None:
    """Wait until so many messages are ready: RabbitMQ's queue is a process apart."""
    deadline = time.monotonic() + 30
    while (ready := (await channel.declare_queue(queue, passive=True)).messages) != messages:
        assert time.monotonic() < deadline, f"{queue} holds {ready} messages, not {messages}"
        await asyncio.sleep(0.01)


@pytest.fixture
async def dial(broker: TestBroker, name: Any) -> AsyncIterator[Dial]:
    """Opens connections; all are closed after the test, before its queues go."""
    opened: list[Connection] = []

    async def open_connection(url: Any = None, **options: Any) -> Connection:
        connection = warren.connect(url or broker.url, backoff=FAST, **options)
        opened.append(connection)
        return await connection

    yield open_connection
    if broker.alarmed:
        broker.memory_alarm(False)
    for connection in opened:
        await connection.close(wait=False)


@pytest.fixture
async def connection(dial: Dial) -> Connection:
    return await dial()


@pytest.fixture
async def channel(connection: Connection) -> Channel:
    return await connection.channel()


@pytest.fixture
def proxy(broker: TestBroker) -> Iterator[Proxy]:
    with Proxy(broker.host, broker.port) as proxy:
        yield proxy
