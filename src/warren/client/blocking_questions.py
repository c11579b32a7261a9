"""What a broker can be asked: how much is ready, what is there, of which kind."""

from __future__ import annotations

from collections.abc import Sequence

from warren.amqp import methods as m
from warren.amqp.tables import Table
from warren.client.blocking import BlockingChannel, BlockingConnection
from warren.client.kinds import KindProbe, QueueKind
from warren.errors import (
    AccessRefused,
    NotFound,
    PreconditionFailed,
    ResourceLocked,
    Unavailable,
)


def count_ready(
    link: BlockingConnection, queues: Sequence[str]
) -> dict[str, int | Unavailable | None]:
    """Ready messages of each queue, None where it is not there, or why it can't be asked now;
    asked all at once."""
    counts: dict[str, int | Unavailable | None] = {}
    names = list(queues)
    while names:
        channel: BlockingChannel = link.channel()
        for name in names:
            channel.send(m.QueueDeclare(queue=name, passive=True))
        try:
            while names:
                counts[names[0]] = channel.expect(m.QueueDeclareOk).message_count
                names.pop(0)
            channel.close()
        except NotFound as refusal:
            # The channel is gone, and with it the questions behind this one.
            counts[names.pop(0)] = refusal if isinstance(refusal, Unavailable) else None
    return counts


def has_exchange(link: BlockingConnection, name: str) -> bool:
    channel: BlockingChannel = link.channel()
    try:
        channel.call(m.ExchangeDeclare(exchange=name, passive=True), m.ExchangeDeclareOk)
    except NotFound:
        return False
    channel.close()
    return True


def queue_kind(link: BlockingConnection, queue: str) -> QueueKind | None:
    """What kind of queue it is; None if the broker does not tell.

    Raises NotFound; PreconditionFailed if the name is so long that the broker's answer is cut.
    """
    channel: BlockingChannel = link.channel()
    channel.ready_messages(queue)
    channel.close()
    probe = KindProbe()
    while True:
        channel = link.channel()
        try:
            channel.call(
                m.QueueDeclare(
                    queue=queue,
                    durable=probe.durable,
                    exclusive=probe.exclusive,
                    auto_delete=probe.auto_delete,
                    arguments=Table(probe.arguments),
                ),
                m.QueueDeclareOk,
            )
            channel.close()
            return probe.taken()
        except PreconditionFailed as refusal:
            try:
                kind = probe.refused(refusal.text)
            except PreconditionFailed:
                if probe.cut:
                    raise
                return None
            if kind is not None:
                return kind
        except (AccessRefused, ResourceLocked):
            return None
