"""Consumers that take deliveries as settled the moment they are sent."""

from __future__ import annotations

from collections.abc import Callable

from pika import spec

from tests.contract.consumers.steps import (
    QUIET_S,
    drain,
    fill,
    take,
    wait_consumers,
    wait_ready,
    word,
)
from tests.support.wire import Channel, Connection


def test_a_message_is_gone_once_delivered(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    worker = connect()
    taker = worker.channel()
    taker.consume(queue, no_ack=True)
    fill(channel, queue, "abc")
    assert word(taker.deliveries(3)) == "abc"

    worker.drop()

    wait_consumers(channel, queue, 0)
    assert drain(channel, queue) == []


def test_a_delivery_of_a_no_ack_consumer_cannot_be_acked(channel: Channel, queue: str) -> None:
    channel.consume(queue, no_ack=True)
    fill(channel, queue, "a")
    refusal = channel.refused(spec.Basic.Ack(channel.delivery().tag))
    assert (refusal.scope, refusal.code) == ("channel", 406)
    assert refusal.text == "PRECONDITION_FAILED - unknown delivery tag 1"
    assert (refusal.class_id, refusal.method_id) == (60, 80)


def test_its_deliveries_use_up_delivery_tags(channel: Channel, queue: str) -> None:
    channel.consume(queue, "quick", no_ack=True)
    fill(channel, queue, "ab")
    assert [message.tag for message in channel.deliveries(2)] == [1, 2]
    channel.cancel("quick")
    fill(channel, queue, "c")
    assert [message.tag for message in take(channel, queue, 1)] == [3]


def test_a_prefetch_of_its_own_does_not_hold_it_back(channel: Channel, queue: str) -> None:
    channel.qos(1)
    channel.consume(queue, no_ack=True)
    fill(channel, queue, "abcde")
    assert word(channel.deliveries(5)) == "abcde"


def test_recover_brings_nothing_back(channel: Channel, queue: str) -> None:
    channel.consume(queue, no_ack=True)
    fill(channel, queue, "ab")
    channel.deliveries(2)
    channel.call(spec.Basic.Recover(requeue=True))
    assert channel.quiet(QUIET_S)


def test_ack_of_everything_passes_over_its_deliveries(channel: Channel, queue: str) -> None:
    channel.consume(queue, no_ack=True)
    fill(channel, queue, "ab")
    channel.deliveries(2)
    channel.ack(0, multiple=True)
    channel.sync()


def test_a_message_that_was_given_back_is_flagged_here_too(channel: Channel, queue: str) -> None:
    fill(channel, queue, "a")
    take(channel, queue, 1)
    channel.nack(1)
    channel.consume(queue, no_ack=True)
    assert channel.delivery().method.redelivered


def test_only_what_must_be_acked_comes_back_when_both_kinds_share_a_queue(
    channel: Channel, queue: str
) -> None:
    worker = channel.connection.channel()
    worker.consume(queue, "quick", no_ack=True)
    worker.consume(queue, "careful")
    fill(channel, queue, "abcd")
    seen = worker.deliveries(4)
    assert [message.method.consumer_tag for message in seen] == ["quick", "careful"] * 2

    worker.close()

    wait_ready(channel, queue, 2)
    assert word(drain(channel, queue)) == "bd"
