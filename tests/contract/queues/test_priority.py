"""x-max-priority: higher priorities first, order kept within one."""

from __future__ import annotations

from collections.abc import Callable

from tests.contract.queues.steps import drain, fill, take, wait_ready
from tests.support.wire import Channel

Queue = Callable[..., str]


def test_higher_priorities_come_first(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-priority": 5})
    for letter, priority in zip("abcd", (1, 5, 0, 3), strict=True):
        fill(channel, queue, letter, priority=priority)
    assert channel.count(queue) == 4
    assert drain(channel, queue) == "bdac"


def test_within_a_priority_order_is_kept(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-priority": 5})
    for letter, priority in zip("abcdef", (2, 1, 2, 1, 2, 1), strict=True):
        fill(channel, queue, letter, priority=priority)
    assert drain(channel, queue) == "acebdf"


def test_no_priority_is_the_lowest(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-priority": 5})
    fill(channel, queue, "a")
    fill(channel, queue, "b", priority=0)
    fill(channel, queue, "c", priority=1)
    fill(channel, queue, "d")
    assert drain(channel, queue) == "cabd"


def test_a_priority_above_the_highest_is_the_highest(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-priority": 5})
    fill(channel, queue, "a", priority=5)
    fill(channel, queue, "b", priority=200)
    fill(channel, queue, "c", priority=5)
    first = take(channel, queue)
    second = take(channel, queue)
    assert (first.body, second.body) == (b"a", b"b")
    assert second.properties.priority == 200


def test_255_priorities_are_told_apart(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-priority": 255})
    fill(channel, queue, "a", priority=254)
    fill(channel, queue, "b", priority=255)
    assert drain(channel, queue) == "ba"


def test_a_message_given_back_is_ahead_of_younger_ones_of_its_priority(
    channel: Channel, queue_with: Queue
) -> None:
    queue = queue_with({"x-max-priority": 5})
    fill(channel, queue, "a", priority=5)
    fill(channel, queue, "b", priority=1)
    message = take(channel, queue)
    fill(channel, queue, "c", priority=5)
    channel.nack(message.tag)
    wait_ready(channel, queue, 3)
    assert drain(channel, queue) == "acb"


def test_a_consumer_gets_the_highest_that_waits(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-priority": 5})
    channel.qos(1)
    channel.consume(queue)
    fill(channel, queue, "a")
    held = channel.delivery()
    fill(channel, queue, "b")
    fill(channel, queue, "c", priority=4)
    channel.ack(held.tag)
    assert channel.delivery().body == b"c"


def test_a_queue_without_the_argument_knows_no_priorities(channel: Channel, queue: str) -> None:
    fill(channel, queue, "a", priority=1)
    fill(channel, queue, "b", priority=9)
    assert drain(channel, queue) == "ab"


def test_a_highest_priority_of_zero_knows_no_priorities(
    channel: Channel, queue_with: Queue
) -> None:
    queue = queue_with({"x-max-priority": 0})
    fill(channel, queue, "a", priority=1)
    fill(channel, queue, "b", priority=9)
    assert drain(channel, queue) == "ab"


def test_an_expired_message_stays_while_one_of_higher_priority_is_ahead(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    prioritised = queue_with({"x-max-priority": 5})
    fill(channel, prioritised, "a", priority=5)
    fill(channel, prioritised, "b", priority=1, expiration="50")
    fill(channel, queue, "w", expiration="50")
    wait_ready(channel, queue, 0)
    assert channel.count(prioritised) == 2
    assert drain(channel, prioritised) == "a"
