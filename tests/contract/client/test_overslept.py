"""A process that was stopped for long does not trust what it was given before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.support.brokers import TestBroker
from warren.client import Delivery, connect
from warren.errors import WarrenError

WITHIN_S = 20


@pytest.mark.parametrize("woken_by", ["the heart", "the handler"])
async def test_what_a_stopped_process_held_is_stale_when_it_goes_on(
    broker: TestBroker, name: Callable[[str], str], woken_by: str
) -> None:
    queue, came = name("overslept"), asyncio.Queue[Delivery]()
    lost: list[WarrenError] = []
    async with connect(broker.url, heartbeat_s=2) as connection:
        connection.on_lost(lost.append)
        channel = await connection.channel()
        await channel.declare_queue(queue)
        await channel.consume(queue, came.put_nowait, exclusive=True)
        await channel.publish(b"1", routing_key=queue)
        first = await asyncio.wait_for(came.get(), WITHIN_S)
        assert not first.stale

        # As SIGSTOP and SIGCONT: the last octets went out four heartbeats ago.
        connection.link.session.sent_at -= 8
        if woken_by == "the heart":
            connection.link.beat(connection.link.session.sent_at + 8)
        assert first.stale
        first.ack()  # must not arrive: the broker may have given the message to somebody
        again = await asyncio.wait_for(came.get(), WITHIN_S)
        assert (again.body, again.redelivered, again.stale) == (b"1", True, False)
        assert "nothing was sent for 4 s" in str(lost[0])
        assert again.ack()
