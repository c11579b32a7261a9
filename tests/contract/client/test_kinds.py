"""What kind a queue is can be asked over AMQP alone, and asking changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from warren.client import Connection
from warren.client.kinds import QueueKind, queue_kind
from warren.errors import NotFound

QUORUM = {"x-queue-type": "quorum"}
SINGLE = {"x-single-active-consumer": True}


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"durable": True}, QueueKind("classic", single_active=False)),
        ({}, QueueKind("classic", single_active=False)),
        ({"auto_delete": True}, QueueKind("classic", single_active=False, auto_delete=True)),
        (
            {"durable": True, "auto_delete": True, "arguments": SINGLE},
            QueueKind("classic", single_active=True, auto_delete=True),
        ),
        (
            {"durable": True, "arguments": {"x-queue-type": "classic"}},
            QueueKind("classic", single_active=False),
        ),
        ({"arguments": SINGLE}, QueueKind("classic", single_active=True)),
        (
            {
                "arguments": {
                    "x-max-priority": 3,
                    "x-expires": 60_000,
                    "x-overflow": "reject-publish",
                    "x-dead-letter-exchange": "it's",
                    "x-max-length": 7,
                }
            },
            QueueKind("classic", single_active=False),
        ),
        ({"durable": True, "arguments": QUORUM}, QueueKind("quorum", single_active=False)),
        (
            {"durable": True, "arguments": {**QUORUM, **SINGLE, "x-delivery-limit": 3}},
            QueueKind("quorum", single_active=True),
        ),
        (
            {"durable": True, "arguments": {"x-queue-type": "stream"}},
            QueueKind("stream", single_active=False),
        ),
    ],
)
async def test_a_queue_tells_its_kind(
    connection: Connection, name: Callable[[str], str], options: dict[str, Any], kind: QueueKind
) -> None:
    queue = name("it's a queue")
    channel = await connection.channel()
    await channel.declare_queue(queue, **options)
    assert await queue_kind(connection, queue) == kind
    await channel.declare_queue(queue, **options)


async def test_a_queue_that_is_not_there_is_not_made(
    connection: Connection, name: Callable[[str], str]
) -> None:
    queue = name("nothing")
    for _ in range(2):
        with pytest.raises(NotFound):
            await queue_kind(connection, queue)
