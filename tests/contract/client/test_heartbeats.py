"""Heartbeats go on whatever the program does."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tests.contract.client.conftest import Dial, until
from warren.client import Delivery
from warren.errors import WarrenError


async def test_an_idle_connection_lives(dial: Dial) -> None:
    connection = await dial(heartbeat_s=1)
    lost: list[WarrenError] = []
    connection.on_lost(lost.append)

    await asyncio.sleep(3.5)

    assert not lost
    assert connection.generation == 1


async def test_a_handler_that_blocks_the_event_loop_costs_no_connection(
    dial: Dial, name: Any
) -> None:
    connection = await dial(heartbeat_s=1)
    lost: list[WarrenError] = []
    connection.on_lost(lost.append)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), exclusive=True)).name
    settled: list[bool] = []

    def block(delivery: Delivery) -> None:
        if not settled:
            time.sleep(4)  # four heartbeats; the broker gives up after two
        settled.append(delivery.ack())

    await channel.consume(queue, block)
    channel.publish(b"x", routing_key=queue)
    await until(lambda: settled)

    # The broker still knows us, and our ack has reached it.
    await channel.publish(b"y", routing_key=queue)
    await until(lambda: len(settled) == 2)
    assert settled == [True, True]
    assert (lost, connection.generation) == ([], 1)
