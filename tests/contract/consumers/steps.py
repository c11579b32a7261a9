"""Steps the consumer tests share. A message's body is one letter, so that order reads as a word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pika import spec

from tests.support.eventually import eventually
from tests.support.wire import Channel, Closed, Message

QUIET_S = 0.1  # long enough to see a delivery that should not come


def fill(channel: Channel, queue: str, letters: str) -> None:
    """Publish a message for each letter and return when the queue holds them all."""
    publisher = channel.connection.channel()
    publisher.confirm()
    for letter in letters:
        publisher.publish(queue, letter.encode())
    publisher.wait_confirms(len(letters))
    publisher.close()


def word(messages: Iterable[Message]) -> str:
    """The letters of these messages, in their order."""
    return "".join(message.body.decode() for message in messages)


def take(channel: Channel, queue: str, count: int) -> list[Message]:
    """basic.get this many messages that are there, without acking them."""
    messages = [channel.get(queue, no_ack=False) for _ in range(count)]
    return [message for message in messages if message is not None]


def drain(channel: Channel, queue: str) -> list[Message]:
    """basic.get until the queue is empty."""
    return list(iter(lambda: channel.get(queue), None))


def held(channel: Channel, count: int) -> str:
    """The word of the next deliveries, and proof that no more follow."""
    seen = word(channel.deliveries(count))
    assert channel.quiet(QUIET_S), channel.inbox
    return seen


def delivered(channel: Channel, count: int) -> dict[str, str]:
    """The next deliveries as {consumer tag: word}, and proof that no more follow."""
    words: defaultdict[str, str] = defaultdict(str)
    for message in channel.deliveries(count):
        words[message.method.consumer_tag] += word([message])
    assert channel.quiet(QUIET_S), channel.inbox
    return dict(words)


def wait_ready(channel: Channel, queue: str, count: int) -> None:
    """Wait until this many messages are ready: what another channel did may take a moment."""
    eventually(lambda: channel.count(queue) == count, every_s=0.002)


def wait_consumers(channel: Channel, queue: str, count: int) -> None:
    eventually(lambda: channel.declare(queue, passive=True).consumer_count == count)


def try_consume(channel: Channel, queue: str, **options: object) -> Closed | str:
    """A consume that may be refused: the consumer tag, or the words of the refusal."""
    try:
        return channel.consume(queue, **options)
    except Closed as refusal:
        return refusal


def delete(channel: Channel, queue: str) -> None:
    channel.call(spec.Queue.Delete(queue=queue))
