"""The expiration property: a message's own time to live, in milliseconds, as a string."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.contract.queues.steps import drain, fill, wait_ready, words
from tests.support.wire import Channel, Closed

Queue = Callable[..., str]


def outlive(channel: Channel, queue_with: Queue, expiration: str) -> None:
    """Return when a message of this expiration that is published now has expired."""
    witness = queue_with()
    fill(channel, witness, "w", expiration=expiration)
    wait_ready(channel, witness, 0)


def test_a_message_that_waited_too_long_is_gone(channel: Channel, queue: str) -> None:
    fill(channel, queue, "a", expiration="50")
    wait_ready(channel, queue, 0)
    assert channel.get(queue) is None


def test_the_property_is_delivered(channel: Channel, queue: str) -> None:
    fill(channel, queue, "a", expiration="60000")
    message = channel.get(queue)
    assert message is not None
    assert message.properties.expiration == "60000"


@pytest.mark.parametrize("head", [None, "60000"], ids=["for ever", "for long"])
def test_an_expired_message_stays_behind_one_that_has_time(
    channel: Channel, queue: str, queue_with: Queue, head: str | None
) -> None:
    fill(channel, queue, "a", expiration=head)
    fill(channel, queue, "b", expiration="50")
    outlive(channel, queue_with, "50")
    assert channel.count(queue) == 2
    assert drain(channel, queue) == "a"
    assert channel.count(queue) == 0


def test_get_counts_expired_messages_that_are_not_at_the_head(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    for letter, expiration in (("a", None), ("b", "50"), ("c", None), ("d", "50"), ("e", None)):
        fill(channel, queue, letter, expiration=expiration)
    outlive(channel, queue_with, "50")
    first, second = channel.get(queue), channel.get(queue)
    assert first is not None
    assert second is not None
    # "b" is at the head once "a" has gone and goes at once, before "a"'s answer is made
    assert (first.body, first.method.message_count) == (b"a", 3)
    assert (second.body, second.method.message_count) == (b"c", 1)


def test_zero_expires_what_no_consumer_takes_at_once(channel: Channel, queue: str) -> None:
    fill(channel, queue, "a", expiration="0")
    assert channel.count(queue) == 0
    channel.consume(queue)
    channel.publish(queue, b"b", expiration="0")
    assert channel.delivery().body == b"b"


@pytest.mark.parametrize("expiration", ["315360000000", "+60000", "0060000"])
def test_accepted(channel: Channel, queue: str, expiration: str) -> None:
    fill(channel, queue, "a", expiration=expiration)
    message = channel.get(queue)
    assert message is not None
    assert message.properties.expiration == expiration


@pytest.mark.parametrize(
    ("expiration", "why"),
    [
        ("", "no_integer"),
        ("soon", "no_integer"),
        (" 5", "no_integer"),
        ("5 ", '{leftover_string," "}'),
        ("1.5", '{leftover_string,".5"}'),
        ("1e3", '{leftover_string,"e3"}'),
        ("10s", '{leftover_string,"s"}'),
        ("-1", "{value_negative,-1}"),
        ("315360000001", "{value_too_large,315360000001}"),
    ],
)
def test_refused(channel: Channel, queue: str, expiration: str, why: str) -> None:
    channel.publish(queue, b"a", expiration=expiration)
    refusal = channel.expect_closed()
    text = f"PRECONDITION_FAILED - invalid expiration '{expiration}': {why}"
    assert words(refusal) == ("channel", 406, text, (60, 40))
    assert channel.connection.channel().count(queue) == 0


def test_it_is_judged_also_when_no_queue_gets_the_message(channel: Channel) -> None:
    channel.publish("no such queue", b"a", expiration="soon")
    assert channel.expect_closed().code == 406


def test_the_exchange_is_judged_before_it(channel: Channel) -> None:
    channel.publish("key", b"a", exchange="no-such-exchange", expiration="soon")
    with pytest.raises(Closed) as refusal:
        channel.sync()
    assert refusal.value.code == 404
