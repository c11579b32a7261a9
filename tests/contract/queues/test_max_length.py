"""x-max-length and x-max-length-bytes: the oldest make room for the newest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.contract.queues.steps import QUIET_S, drain, fill, take, wait_ready
from tests.support.wire import Channel

Queue = Callable[..., str]


@pytest.mark.parametrize("arguments", [{}, {"x-overflow": "drop-head"}])
def test_the_oldest_make_room(
    channel: Channel, queue_with: Queue, arguments: dict[str, str]
) -> None:
    queue = queue_with({"x-max-length": 3, **arguments})
    fill(channel, queue, "abcde")
    assert channel.count(queue) == 3
    assert drain(channel, queue) == "cde"


def test_messages_that_wait_for_an_ack_do_not_count(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-length": 2})
    fill(channel, queue, "ab")
    take(channel, queue)
    fill(channel, queue, "c")
    assert drain(channel, queue) == "bc"


def test_what_is_given_back_to_a_full_queue_is_the_oldest_again(
    channel: Channel, queue_with: Queue
) -> None:
    queue = queue_with({"x-max-length": 2})
    fill(channel, queue, "ab")
    take(channel, queue)
    last = take(channel, queue)
    fill(channel, queue, "c")
    channel.nack(last.tag, multiple=True)
    wait_ready(channel, queue, 2)
    assert drain(channel, queue) == "bc"


def test_dropped_messages_were_confirmed(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-length": 1})
    channel.confirm()
    for letter in (b"a", b"b", b"c"):
        channel.publish(queue, letter)
    assert channel.wait_confirms(3) == {1: "ack", 2: "ack", 3: "ack"}
    assert drain(channel, queue) == "c"


def test_zero_keeps_nothing_that_no_consumer_takes_at_once(
    channel: Channel, queue_with: Queue
) -> None:
    queue = queue_with({"x-max-length": 0})
    fill(channel, queue, "a")
    assert channel.count(queue) == 0
    channel.consume(queue)
    channel.publish(queue, b"b")
    assert channel.delivery().body == b"b"
    assert channel.quiet(QUIET_S)


def test_bytes_of_bodies_are_limited(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-length-bytes": 3})
    fill(channel, queue, "abcde")
    assert drain(channel, queue) == "cde"


def test_properties_and_empty_bodies_weigh_nothing(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-length-bytes": 1})
    publisher = channel.connection.channel()
    publisher.confirm()
    publisher.publish(queue, b"a", headers={"long": "x" * 1000})
    publisher.publish(queue, b"", headers={"long": "x" * 1000})
    publisher.wait_confirms(2)
    assert channel.count(queue) == 2


def test_a_body_larger_than_the_limit_empties_the_queue(
    channel: Channel, queue_with: Queue
) -> None:
    queue = queue_with({"x-max-length-bytes": 5})
    fill(channel, queue, "ab")
    publisher = channel.connection.channel()
    publisher.confirm()
    publisher.publish(queue, b"x" * 6)
    assert publisher.wait_confirms(1) == {1: "ack"}
    assert channel.count(queue) == 0


def test_with_both_limits_the_narrower_decides(channel: Channel, queue_with: Queue) -> None:
    few = queue_with({"x-max-length": 2, "x-max-length-bytes": 100})
    small = queue_with({"x-max-length": 100, "x-max-length-bytes": 2})
    fill(channel, few, "abc")
    fill(channel, small, "abc")
    assert (drain(channel, few), drain(channel, small)) == ("bc", "bc")


def test_in_a_priority_queue_the_head_is_the_highest_priority(
    channel: Channel, queue_with: Queue
) -> None:
    queue = queue_with({"x-max-length": 2, "x-max-priority": 5})
    fill(channel, queue, "l", priority=1)
    fill(channel, queue, "h", priority=5)
    fill(channel, queue, "m", priority=3)
    assert drain(channel, queue) == "ml"
