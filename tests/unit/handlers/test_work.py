from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import warren
from warren.clock import SystemClock
from warren.errors import ConfigError
from warren.handlers.attempts import Shop
from warren.handlers.policy import Handling
from warren.handlers.threads import Threads
from warren.handlers.work import Handler, Work

#: Handlers as (queue or pattern, dead-letter queue); those that can't work go round in circles.
CIRCLES = [
    [("orders.*", "orders.dead")],
    [("orders", "orders")],
    [("*", "dead")],
    [("orders", "dead"), ("dead", "elsewhere")],
    [("orders", None), ("warren.dead.g", "elsewhere")],
]
FINE = [
    [("*", None)],
    [("warren.*", None)],
    [("*", "warren.graveyard")],
    [("broker", "broker")],
    [("orders.*", "dead.orders")],
    [("warren.dead.another", None)],
]


def app_of(*handlers: tuple[str, str | None]) -> warren.App:
    app = warren.App("amqp://127.0.0.1:1", group="g")
    for queue, dead in handlers:

        async def handle(message: Any) -> None: ...

        app.handler(queue, dead_letter=dead)(handle)
    return app


@pytest.mark.parametrize("handlers", CIRCLES)
async def test_an_app_that_would_handle_its_own_dead_letters_does_not_start(
    handlers: list[tuple[str, str | None]],
) -> None:
    dead, taker = handlers[0][1] or "warren.dead.g", handlers[-1][0]
    with pytest.raises(ConfigError) as refused:
        await app_of(*handlers).start()
    said = str(refused.value)
    assert f"@app.handler({handlers[0][0]!r}) dead_letter" in said
    assert f"'{dead}', which handle takes, @app.handler({taker!r})" in said


@pytest.mark.parametrize("handlers", FINE)
async def test_dead_letters_may_go_where_no_handler_looks(
    handlers: list[tuple[str, str | None]],
) -> None:
    with pytest.raises(warren.errors.ConnectError):  # there is no broker: all else is well
        await app_of(*handlers).start()


class Waiting:
    """As much of a message as a thread looks at."""

    queue, stale = "orders", False

    @property
    def delivery(self) -> Waiting:
        return self


async def test_a_queue_that_went_and_came_back_while_a_thread_worked_is_begun() -> None:
    outbox: Any = None
    message: Any = Waiting()
    threads, done = Threads(1), threading.Event()
    work = Work(
        [Handler(lambda message: None, Handling(("orders",)))],
        Shop("g", lambda: "me", outbox, SystemClock(), threads),
    )
    running = asyncio.create_task(threads.run(lambda _: done.wait(60), message))
    await asyncio.sleep(0)  # it is in its thread
    first = asyncio.create_task(work.assigned("orders"))
    await asyncio.sleep(0)  # it waits
    await work.lost("orders")
    second = asyncio.create_task(work.assigned("orders"))
    await asyncio.sleep(0)
    assert [first.done(), second.done()] == [False, False]
    done.set()
    await asyncio.gather(running, first, second)
    assert set(work.held) == {"orders"}
    await work.lost("orders")
    threads.close()
