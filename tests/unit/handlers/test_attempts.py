"""A delivery that is somebody else's by now is left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from warren.amqp.properties import Properties
from warren.clock import SystemClock
from warren.errors import WarrenError
from warren.handlers.attempts import Attempts, Shop
from warren.handlers.metrics import QueueCounters
from warren.handlers.policy import Handling, from_options


class Delivery:
    """As much of a delivery as an attempt looks at."""

    exchange, routing_key, redelivered, body = "", "orders", False, b"1"
    properties = Properties()

    def __init__(self, *, stale: bool = False) -> None:
        self.stale, self.acked = stale, False

    def ack(self) -> bool:
        self.acked = True
        return True


class Outbox:
    """Sends no letter: the broker is away."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then, self.asked = then, 0

    async def dead(self, *_: Any, **__: Any) -> None:
        self.asked += 1
        self._then()
        raise WarrenError("away")


async def work_on(
    delivery: Any,
    handle: Callable[[Any], Any],
    handling: Handling | None = None,
    **shop: Any,
) -> None:
    shared: dict[str, Any] = {"outbox": None, "threads": None} | shop
    made = Shop(group="g", member=lambda: "m", clock=SystemClock(), **shared)
    attempts = Attempts(
        "orders",
        handling or Handling(("orders",)),
        handle,
        made,
        QueueCounters(),
        asyncio.Event(),
    )
    await asyncio.wait_for(attempts(delivery), 20)


async def test_a_stale_delivery_is_not_begun() -> None:
    delivery = Delivery(stale=True)

    async def handle(message: Any) -> None:
        pytest.fail("it was begun")

    await work_on(delivery, handle)
    assert not delivery.acked


async def test_one_that_goes_stale_while_it_waits_for_its_turn_is_not_begun() -> None:
    delivery = Delivery()

    async def pace(stopping: asyncio.Event) -> bool:
        delivery.stale = True
        return True

    async def handle(message: Any) -> None:
        pytest.fail("it was begun")

    await work_on(delivery, handle, pace=pace)
    assert not delivery.acked


async def test_one_that_goes_stale_before_its_next_attempt_is_not_tried_again() -> None:
    delivery, attempts = Delivery(), []

    async def handle(message: Any) -> None:
        attempts.append(message.attempt)
        delivery.stale = True
        raise ValueError

    await work_on(delivery, handle, from_options(("orders",), {"retries": 5, "backoff": 0.01}))
    assert (attempts, delivery.acked) == ([1], False)


@pytest.mark.parametrize("when", ["before the letter", "while it waits for the broker"])
async def test_no_letter_is_written_of_one_that_went_stale(when: str) -> None:
    delivery = Delivery()

    def goes_stale() -> None:
        delivery.stale = True

    outbox = Outbox(then=goes_stale)

    async def handle(message: Any) -> None:
        if when == "before the letter":
            goes_stale()
        raise ValueError

    await work_on(delivery, handle, Handling(("orders",), retries=0), outbox=outbox)
    assert (outbox.asked, delivery.acked) == (0 if when == "before the letter" else 1, False)
