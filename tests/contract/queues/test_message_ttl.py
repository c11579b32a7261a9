"""x-message-ttl: messages that waited too long.

Where a test needs time to pass it publishes a witness of the same age to another queue and waits
until that one has gone.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.contract.queues.steps import QUIET_S, drain, fill, take, wait_ready
from tests.support.clock_race import against_the_clock
from tests.support.wire import Channel

Queue = Callable[..., str]
TTL = {"x-message-ttl": 200}


def outlive(channel: Channel, queue_with: Queue, ttl_ms: int = 200) -> None:
    """Return when a message that is published now has been there too long."""
    witness = queue_with({"x-message-ttl": ttl_ms})
    fill(channel, witness, "w")
    wait_ready(channel, witness, 0)


@against_the_clock
def test_a_message_that_waited_too_long_is_gone(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-message-ttl": 400})
    fill(channel, queue, "ab")
    assert channel.count(queue) == 2
    wait_ready(channel, queue, 0)
    assert channel.get(queue) is None


@against_the_clock
def test_each_message_has_its_own_time(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-message-ttl": 600})
    fill(channel, queue, "a")
    outlive(channel, queue_with, 300)
    fill(channel, queue, "b")
    wait_ready(channel, queue, 1)
    assert drain(channel, queue) == "b"


@against_the_clock
def test_a_message_does_not_expire_while_it_waits_for_an_ack(
    channel: Channel, queue_with: Queue
) -> None:
    queue = queue_with(TTL)
    fill(channel, queue, "a")
    message = take(channel, queue)
    outlive(channel, queue_with)
    channel.ack(message.tag)
    channel.sync()


@against_the_clock
def test_a_requeue_does_not_start_its_time_anew(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with(TTL)
    fill(channel, queue, "a")
    message = take(channel, queue)
    outlive(channel, queue_with)
    channel.nack(message.tag)
    channel.sync()
    assert channel.get(queue) is None


@pytest.mark.parametrize(("ttl_ms", "expiration"), [(60, "60000"), (60000, "60")])
def test_the_shorter_of_queue_and_message_decides(
    channel: Channel, queue_with: Queue, ttl_ms: int, expiration: str
) -> None:
    queue = queue_with({"x-message-ttl": ttl_ms})
    fill(channel, queue, "a", expiration=expiration)
    wait_ready(channel, queue, 0)


def test_zero_expires_what_no_consumer_takes_at_once(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-message-ttl": 0})
    fill(channel, queue, "a")
    assert channel.count(queue) == 0
    channel.consume(queue)
    channel.publish(queue, b"b")
    assert channel.delivery().body == b"b"


def test_zero_expires_what_finds_every_consumer_busy(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-message-ttl": 0})
    channel.qos(1)
    channel.consume(queue)
    fill(channel, queue, "ab")
    held = channel.delivery()
    assert held.body == b"a"
    channel.ack(held.tag)
    assert channel.quiet(QUIET_S)


def test_zero_expires_what_is_given_back(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-message-ttl": 0})
    channel.consume(queue)
    fill(channel, queue, "a")
    channel.nack(channel.delivery().tag)
    assert channel.quiet(QUIET_S)
    assert channel.count(queue) == 0


def test_an_expired_message_counts_as_confirmed(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-message-ttl": 0})
    channel.confirm()
    channel.publish(queue, b"a")
    assert channel.wait_confirms(1) == {1: "ack"}


def test_a_persistent_message_expires_too(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with(TTL, durable=True)
    fill(channel, queue, "a", delivery_mode=2)
    wait_ready(channel, queue, 0)
