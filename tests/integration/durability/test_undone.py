"""What is done and undone before the disk has heard of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import warren
from warren.client.delivery import Delivery
from warren.server.server import Server

#: Longer than a message takes to its consumer and the acknowledgement back.
LATE_S = 0.3


async def test_a_confirm_does_not_wait_for_a_message_that_need_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = Server._flush

    async with (
        warren.Broker(port=0, data_dir=str(tmp_path)) as broker,
        warren.connect(broker.url) as publishing,
        warren.connect(broker.url) as consuming,
    ):
        publisher, consumer = await publishing.channel(), await consuming.channel()
        await publisher.declare_queue("q", durable=True)
        acknowledged = asyncio.Event()

        def done(delivery: Delivery) -> None:
            delivery.ack()
            acknowledged.set()

        await consumer.consume("q", done)
        # The disk's turn comes when the acknowledgement is here.
        monkeypatch.setattr(
            Server, "_flush", lambda self: self._loop.call_later(LATE_S, flush, self)
        )
        persistent = warren.Properties(delivery_mode=2)

        confirm = publisher.publish(b"x", routing_key="q", properties=persistent)

        await asyncio.wait_for(acknowledged.wait(), 10)
        await asyncio.wait_for(confirm, 10)
        monkeypatch.undo()
