"""Heartbeats go on whatever the program does."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from tests.contract.client.conftest import Dial, until
from warren.client import Channel, Delivery
from warren.errors import WarrenError


@pytest.mark.slow
async def test_a_handler_that_blocks_the_event_loop_costs_no_connection(
    dial: Dial, name: Any
) -> None:
    connection = await dial(heartbeat_s=2)
    lost: list[WarrenError] = []
    connection.on_lost(lost.append)
    channel = await connection.channel()
    queue = (await channel.declare_queue(name(), exclusive=True)).name
    settled: list[bool] = []

    def block(delivery: Delivery) -> None:
        if not settled:
            time.sleep(7)  # the broker gives up after two heartbeats, and looks twice in one
        settled.append(delivery.ack())

    await channel.consume(queue, block)
    channel.publish(b"x", routing_key=queue)
    await until(lambda: settled)

    # The broker still knows us, and our ack has reached it.
    await channel.publish(b"y", routing_key=queue)
    await until(lambda: len(settled) == 2)
    assert settled == [True, True]
    assert (lost, connection.generation) == ([], 1)


async def test_a_heartbeat_never_lands_inside_another_frame(channel: Channel, name: Any) -> None:
    """Another thread sends them, whenever it likes."""
    await beat_while_busy(channel, (await channel.declare_queue(name(), exclusive=True)).name)
    assert channel.connection.generation == 1


async def beat_while_busy(channel: Channel, queue: str) -> None:
    """Publish and consume large and small messages while heartbeats go out without pause."""
    link, stop = channel.connection.link, threading.Event()

    def beat() -> None:
        while not stop.wait(0.0005):
            link.beat(time.monotonic())

    thread = threading.Thread(target=beat)
    thread.start()
    bodies = [b"x" * (50_000 if number % 10 == 0 else 10) for number in range(1000)]
    try:
        for body in bodies:
            channel.publish(body, routing_key=queue)
        await channel.confirmed()
        async with channel.deliveries(queue) as deliveries:
            for body in bodies:
                delivery = await anext(deliveries)
                assert delivery.body == body
                delivery.ack()
    finally:
        stop.set()
        thread.join()
