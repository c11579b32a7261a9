"""What kind a queue is can be asked over AMQP alone, and asking changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from warren.client import Connection
from warren.client.kinds import KindProbe, QueueKind, queue_kind
from warren.errors import NotFound, PreconditionFailed

TYPE = "x-queue-type"
QUORUM = {TYPE: "quorum"}
SINGLE = {"x-single-active-consumer": True}
#: What both brokers answer who asks a quorum queue for its kind.
TYPE_TOLD = (
    "inequivalent arg 'x-queue-type' for queue '{queue}' in vhost '/': "
    "received 'warren-asks' but current is 'quorum'"
)


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
            QueueKind("classic", single_active=False, dead_letters=True),
        ),
        ({"durable": True, "arguments": QUORUM}, QueueKind("quorum", single_active=False)),
        (
            {"durable": True, "arguments": {**QUORUM, **SINGLE, "x-delivery-limit": 3}},
            QueueKind("quorum", single_active=True, delivery_limit=3),
        ),
        (
            {
                "durable": True,
                "arguments": {
                    **QUORUM,
                    "x-quorum-initial-group-size": 1,
                    "x-delivery-limit": 0,
                    "x-dead-letter-exchange": "",
                    "x-dead-letter-routing-key": "there",
                },
            },
            QueueKind("quorum", single_active=False, delivery_limit=0, dead_letters=True),
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


async def test_a_queue_that_goes_while_it_is_asked_for_its_limit_is_not_made(
    connection: Connection, name: Callable[[str], str]
) -> None:
    queue, probe = name("gone"), KindProbe()
    assert probe.refused(TYPE_TOLD.format(queue=queue)) is None

    with pytest.raises(PreconditionFailed) as refusal:
        await (await connection.channel()).declare_queue(
            queue, durable=True, arguments=probe.arguments
        )

    assert probe.refused(refusal.value.text) == QueueKind("quorum", single_active=False)
    with pytest.raises(NotFound):
        await queue_kind(connection, queue)


async def test_a_queue_that_is_not_there_is_not_made(
    connection: Connection, name: Callable[[str], str]
) -> None:
    queue = name("nothing")
    for _ in range(2):
        with pytest.raises(NotFound):
            await queue_kind(connection, queue)


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
@pytest.mark.parametrize("octets", [100, 115, 118, 125, 135, 250])
async def test_a_queue_with_a_long_name_tells_its_kind_or_that_the_answer_is_cut(
    connection: Connection, name: Callable[[str], str], kind: str, octets: int
) -> None:
    queue = name("x" * (octets - 9))
    channel = await connection.channel()
    await channel.declare_queue(queue, durable=True, arguments={TYPE: kind})
    probe = KindProbe()
    with pytest.raises(PreconditionFailed) as refusal:
        await channel.declare_queue(queue, durable=True, arguments=probe.arguments)

    if octets < 120:
        assert probe.refused(refusal.value.text) is not None or probe.arguments[TYPE] == kind
        assert (await queue_kind(connection, queue)).type == kind
    if octets > 200:
        with pytest.raises(PreconditionFailed, match=r"\.\.\.$"):
            probe.refused(refusal.value.text)
        assert probe.cut
