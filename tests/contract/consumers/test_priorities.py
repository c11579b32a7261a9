"""Consumer priorities (x-priority): the highest that can take a message gets it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pika import spec

from tests.contract.consumers.steps import QUIET_S, delivered, fill, word
from tests.support.wire import Channel, Connection


def consume(channel: Channel, queue: str, tag: str, priority: int) -> None:
    channel.consume(queue, tag, arguments={"x-priority": priority})


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("5", "longstr"),
        (True, "bool"),
        (None, "void"),
        ([1], "array"),
        ({"a": 1}, "table"),
        (b"5", "binary"),
        (Decimal("5.5"), "decimal"),
        (datetime(2024, 1, 1, tzinfo=UTC), "timestamp"),
    ],
)
def test_a_priority_must_be_an_integer(channel: Channel, queue: str, value: Any, kind: str) -> None:
    refusal = channel.refused(spec.Basic.Consume(queue=queue, arguments={"x-priority": value}))
    assert (refusal.scope, refusal.code) == ("channel", 406)
    assert refusal.text == (
        f"PRECONDITION_FAILED - invalid arg 'x-priority' for queue '{queue}' in vhost '/': "
        f'"expected integer, got {kind}"'
    )
    assert (refusal.class_id, refusal.method_id) == (60, 20)


def test_the_higher_priority_gets_everything_while_it_can(channel: Channel, queue: str) -> None:
    consume(channel, queue, "low", 1)
    consume(channel, queue, "high", 10)
    fill(channel, queue, "abcd")
    assert delivered(channel, 4) == {"high": "abcd"}


def test_messages_fall_to_the_lower_priority_when_the_higher_is_full(
    channel: Channel, queue: str
) -> None:
    channel.qos(2)
    consume(channel, queue, "high", 10)
    consume(channel, queue, "middle", 5)
    consume(channel, queue, "low", 1)
    fill(channel, queue, "abcdefgh")
    assert delivered(channel, 6) == {"high": "ab", "middle": "cd", "low": "ef"}


def test_the_higher_priority_takes_over_again_once_it_has_room(
    channel: Channel, queue: str
) -> None:
    channel.qos(1)
    consume(channel, queue, "high", 10)
    channel.qos(0)
    consume(channel, queue, "low", 1)
    fill(channel, queue, "ab")
    first, _ = channel.deliveries(2)

    channel.ack(first.tag)
    channel.sync()
    fill(channel, queue, "cd")

    assert delivered(channel, 2) == {"high": "c", "low": "d"}


def test_no_priority_is_priority_zero(channel: Channel, queue: str) -> None:
    channel.qos(1)
    consume(channel, queue, "below", -1)
    channel.consume(queue, "plain")
    consume(channel, queue, "above", 1)
    fill(channel, queue, "abc")
    assert delivered(channel, 3) == {"above": "a", "plain": "b", "below": "c"}


def test_equal_priorities_take_turns(channel: Channel, queue: str) -> None:
    consume(channel, queue, "one", 3)
    channel.consume(queue, "low")
    consume(channel, queue, "two", 3)
    fill(channel, queue, "abcdef")
    assert delivered(channel, 6) == {"one": "ace", "two": "bdf"}


def test_a_higher_priority_that_comes_later_goes_first(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    consume(channel, queue, "low", 1)
    fill(channel, queue, "a")
    assert channel.delivery().body == b"a"

    late = connect().channel()
    consume(late, queue, "high", 2**31)

    fill(channel, queue, "bc")
    assert word(late.deliveries(2)) == "bc"
    assert channel.quiet(QUIET_S)


def test_the_lower_priority_gets_messages_when_the_higher_is_cancelled(
    channel: Channel, queue: str
) -> None:
    consume(channel, queue, "low", -5)
    consume(channel, queue, "high", 5)
    channel.cancel("high")
    fill(channel, queue, "ab")
    assert delivered(channel, 2) == {"low": "ab"}


def test_a_message_given_back_goes_to_the_highest_priority_with_room(
    channel: Channel, queue: str
) -> None:
    channel.qos(1)
    consume(channel, queue, "low", 1)
    fill(channel, queue, "a")
    first = channel.delivery()
    consume(channel, queue, "high", 10)

    channel.nack(first.tag)

    assert delivered(channel, 1) == {"high": "a"}
