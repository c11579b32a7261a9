from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from warren.handlers.threads import NotBegun, Threads


class Delivery:
    stale = False


class Message:
    """As much of a message as the threads look at."""

    queue, message_id = "orders", "m1"

    def __init__(self) -> None:
        self.delivery = Delivery()
        self.begun, self.done = threading.Event(), threading.Event()


def works(message: Any) -> str:
    message.begun.set()
    assert message.done.wait(60)
    return "result"


@pytest.fixture
async def threads() -> AsyncIterator[Threads]:
    threads = Threads(1)
    yield threads
    threads.close()


@pytest.fixture
async def message() -> AsyncIterator[Message]:
    message = Message()
    yield message
    message.done.set()


def started(threads: Threads, message: Any) -> asyncio.Task[Any]:
    return asyncio.create_task(threads.run(works, message))


async def begun(message: Message) -> None:
    assert await asyncio.to_thread(message.begun.wait, 60)


async def test_a_cancelled_call_lasts_until_its_thread_has_ended(
    threads: Threads, message: Message
) -> None:
    task = started(threads, message)
    await begun(message)
    task.cancel()
    await asyncio.wait({task}, timeout=0.05)
    assert not task.done()
    message.done.set()
    assert await asyncio.wait_for(task, 60) == "result"


async def test_a_message_that_is_lost_is_not_waited_for_but_its_queue_is(
    threads: Threads, message: Message
) -> None:
    task = started(threads, message)
    await begun(message)
    message.delivery.stale = True
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)
    idle = asyncio.create_task(threads.idle("orders"))
    await threads.idle("another")
    await asyncio.wait({idle}, timeout=0.05)
    assert not idle.done()
    message.done.set()
    await asyncio.wait_for(idle, 60)


async def test_a_message_that_waits_for_a_free_thread_is_not_begun_any_more(
    threads: Threads, message: Message
) -> None:
    first, waits = started(threads, message), Message()
    await begun(message)
    task = started(threads, waits)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)
    message.done.set()
    assert await asyncio.wait_for(first, 60) == "result"
    await asyncio.wait_for(threads.idle("orders"), 60)
    assert not waits.begun.is_set()


async def test_a_message_that_is_lost_while_it_waits_for_a_free_thread_is_not_begun(
    threads: Threads, message: Message
) -> None:
    first, waits = started(threads, message), Message()
    await begun(message)
    task = started(threads, waits)
    await asyncio.sleep(0)
    waits.delivery.stale = True
    message.done.set()
    with pytest.raises(NotBegun):
        await asyncio.wait_for(task, 60)
    assert await asyncio.wait_for(first, 60) == "result"
    assert not waits.begun.is_set()
