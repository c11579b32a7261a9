"""Steps the queue tests share. A message's body is one letter, so that order reads as a word."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pika import spec

from tests.support.eventually import eventually
from tests.support.wire import Channel, Closed, Message

QUIET_S = 0.15  # long enough to see a delivery that should not come
DECLARE = (50, 10)
BIND = (50, 20)
PURGE = (50, 30)
DELETE = (50, 40)
UNBIND = (50, 50)
CONSUME = (60, 20)
GET = (60, 70)
QUORUM = {"x-queue-type": "quorum"}
STREAM = {"x-queue-type": "stream"}


def words(refusal: Closed) -> tuple[str, int, str, tuple[int, int]]:
    """All that a refusal says: what it closes, code, text, and which method was refused."""
    ids = (refusal.class_id, refusal.method_id)
    return (refusal.scope, refusal.code, refusal.text, ids)


def locked(queue: str) -> str:
    """What others hear about an exclusive queue."""
    return (
        f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost '/'."
        " It could be originally declared on another connection or the exclusive property value"
        " does not match that of the original declaration."
    )


def no_queue(queue: str, vhost: str = "/") -> str:
    return f"NOT_FOUND - no queue '{queue}' in vhost '{vhost}'"


def fill(channel: Channel, queue: str, letters: str, **properties: Any) -> None:
    """Publish a message for each letter and return when the queue has had them all."""
    publisher = channel.connection.channel()
    publisher.confirm()
    for letter in letters:
        publisher.publish(queue, letter.encode(), **properties)
    publisher.wait_confirms(len(letters))
    publisher.close()


def word(messages: Iterable[Message]) -> str:
    """The letters of these messages, in their order."""
    return "".join(message.body.decode() for message in messages)


def drain(channel: Channel, queue: str) -> str:
    """basic.get until the queue is empty; the word that was in it."""
    return word(iter(lambda: channel.get(queue), None))


def take(channel: Channel, queue: str) -> Message:
    """basic.get the message that is there, without acking it."""
    message = channel.get(queue, no_ack=False)
    assert message is not None, f"{queue} is empty"
    return message


def reject_next(channel: Channel, queue: str) -> None:
    """Take the next message and refuse it for good."""
    channel.reject(take(channel, queue).tag, requeue=False)


def arrival(channel: Channel, queue: str) -> Message:
    """The next message, waiting for it, acked."""
    message = eventually(lambda: channel.get(queue))
    assert message is not None
    return message


def wait_ready(channel: Channel, queue: str, count: int) -> None:
    """Wait until the queue has this many ready messages."""
    eventually(lambda: channel.count(queue) == count)


def wait_gone(channel: Channel, queue: str) -> None:
    """Wait until the queue is deleted."""
    eventually(lambda: not exists(channel, queue))


def exists(channel: Channel, queue: str) -> bool:
    """Whether the queue is there, by a mandatory publish: unlike declare or get, no use of it."""
    prober = channel.connection.channel()
    prober.publish(queue, b"?", mandatory=True)
    prober.sync()
    returned = bool(prober.inbox)
    prober.close()
    return not returned


def delete(channel: Channel, queue: str) -> None:
    channel.call(spec.Queue.Delete(queue=queue))
