"""x-overflow reject-publish and reject-publish-dlx: a full queue says no."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.queues.steps import (
    QUIET_S,
    arrival,
    drain,
    fill,
    reject_next,
    take,
    wait_ready,
    words,
)
from tests.support.wire import Channel

Queue = Callable[..., str]
REJECTING = ["reject-publish", "reject-publish-dlx"]


def publish(channel: Channel, queue: str, *bodies: bytes) -> dict[int, str]:
    """Publish these on a new channel; what became of each."""
    publisher = channel.connection.channel()
    publisher.confirm()
    for body in bodies:
        publisher.publish(queue, body)
    return publisher.wait_confirms(len(bodies))


@pytest.mark.parametrize("overflow", REJECTING)
def test_a_full_queue_nacks_and_keeps_what_it_has(
    channel: Channel, queue_with: Queue, overflow: str
) -> None:
    queue = queue_with({"x-max-length": 2, "x-overflow": overflow})
    settled = publish(channel, queue, b"a", b"b", b"c", b"d")
    assert settled == {1: "ack", 2: "ack", 3: "nack", 4: "nack"}
    assert drain(channel, queue) == "ab"


def test_without_confirms_the_message_just_vanishes(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-length": 1, "x-overflow": "reject-publish"})
    fill(channel, queue, "a")
    channel.publish(queue, b"b", mandatory=True)
    assert channel.quiet(QUIET_S)
    assert drain(channel, queue) == "a"


def test_there_is_room_again_after_a_message_has_left(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-length": 1, "x-overflow": "reject-publish"})
    assert publish(channel, queue, b"a", b"b") == {1: "ack", 2: "nack"}
    channel.get(queue)
    assert publish(channel, queue, b"c") == {1: "ack"}


def test_messages_that_wait_for_an_ack_do_not_count(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-length": 1, "x-overflow": "reject-publish"})
    publish(channel, queue, b"a")
    take(channel, queue)
    assert publish(channel, queue, b"b", b"c") == {1: "ack", 2: "nack"}


def test_a_message_given_back_is_never_refused(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-length": 1, "x-overflow": "reject-publish"})
    publish(channel, queue, b"a")
    message = take(channel, queue)
    publish(channel, queue, b"b")
    channel.nack(message.tag)
    wait_ready(channel, queue, 2)
    assert drain(channel, queue) == "ab"


@pytest.mark.parametrize("consumed", [False, True], ids=["idle", "consumed"])
def test_a_queue_of_length_zero_refuses_all_even_with_a_consumer(
    channel: Channel, queue_with: Queue, consumed: bool
) -> None:
    queue = queue_with({"x-max-length": 0, "x-overflow": "reject-publish"})
    if consumed:
        channel.consume(queue)
    assert publish(channel, queue, b"a") == {1: "nack"}
    assert channel.quiet(QUIET_S)


def test_bytes_are_judged_with_the_new_message(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-length-bytes": 5, "x-overflow": "reject-publish"})
    settled = publish(channel, queue, b"x" * 6, b"abc", b"x" * 3, b"de")
    assert settled == {1: "nack", 2: "ack", 3: "nack", 4: "ack"}
    assert drain(channel, queue) == "abcde"


def test_one_queue_of_several_that_refuses_makes_it_a_nack(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    full = queue_with({"x-max-length": 0, "x-overflow": "reject-publish"})
    channel.bind(full, "amq.direct", queue)
    channel.bind(queue, "amq.direct", queue)
    channel.confirm()
    channel.publish(queue, b"a", exchange="amq.direct")
    assert channel.wait_confirms(1) == {1: "nack"}
    assert drain(channel, queue) == "a"


def test_a_transaction_that_a_queue_refuses_fails(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-max-length": 0, "x-overflow": "reject-publish"})
    channel.call(spec.Tx.Select())
    channel.publish(queue, b"a")
    refusal = channel.refused(spec.Tx.Commit())
    text = "PRECONDITION_FAILED - partial tx completion"
    assert words(refusal) == ("channel", 406, text, (90, 20))


def test_reject_publish_does_not_dead_letter_what_it_refuses(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    dead_letter = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
    full = queue_with({"x-max-length": 1, "x-overflow": "reject-publish", **dead_letter})
    assert publish(channel, full, b"a", b"b") == {1: "ack", 2: "nack"}
    reject_next(channel, full)
    wait_ready(channel, queue, 1)
    assert drain(channel, queue) == "a"


def test_reject_publish_dlx_dead_letters_what_it_refuses(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    dead_letter = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
    full = queue_with({"x-max-length": 1, "x-overflow": "reject-publish-dlx", **dead_letter})
    assert publish(channel, full, b"a", b"b") == {1: "ack", 2: "nack"}
    refused = arrival(channel, queue)
    assert refused.body == b"b"
    assert refused.properties.headers["x-first-death-reason"] == "maxlen"
