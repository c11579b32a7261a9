"""basic.recover: give back everything this channel has not acked."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.consumers.steps import drain, fill, held, take, wait_ready, word
from tests.support.wire import Channel, Connection


def recover(channel: Channel) -> None:
    channel.call(spec.Basic.Recover(requeue=True))


def test_recover_gives_all_unacked_messages_back_in_order(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abcde")
    take(channel, queue, 4)
    channel.ack(2)
    recover(channel)
    seen = drain(channel, queue)
    assert word(seen) == "acde"
    assert [message.method.redelivered for message in seen] == [True, True, True, False]


def test_a_consumer_gets_them_again_with_new_tags(channel: Channel, queue: str) -> None:
    channel.consume(queue, "t")
    fill(channel, queue, "abc")
    channel.deliveries(3)

    recover(channel)

    seen = channel.deliveries(3)
    assert word(seen) == "abc"
    assert [message.tag for message in seen] == [4, 5, 6]
    assert all(message.method.redelivered for message in seen)


def test_recovered_messages_come_before_those_still_waiting(channel: Channel, queue: str) -> None:
    channel.qos(2)
    channel.consume(queue)
    fill(channel, queue, "abcd")
    assert held(channel, 2) == "ab"
    recover(channel)
    assert held(channel, 2) == "ab"


def test_other_channels_keep_what_they_hold(channel: Channel, queue: str) -> None:
    other = channel.connection.channel()
    fill(channel, queue, "abc")
    take(other, queue, 1)
    take(channel, queue, 1)
    recover(channel)
    assert word(drain(channel, queue)) == "bc"
    other.ack(1)
    other.sync()


def test_it_reaches_over_all_queues_of_the_channel(channel: Channel, queue: str) -> None:
    second = channel.declare(exclusive=True).queue
    fill(channel, queue, "ab")
    fill(channel, second, "cd")
    for source in (second, queue, queue, second):
        take(channel, source, 1)
    recover(channel)
    assert word(drain(channel, queue)) == "ab"
    assert word(drain(channel, second)) == "cd"


def test_the_old_tags_are_unknown_afterwards(channel: Channel, queue: str) -> None:
    fill(channel, queue, "a")
    take(channel, queue, 1)
    recover(channel)
    refusal = channel.refused(spec.Basic.Ack(1))
    assert refusal.text == "PRECONDITION_FAILED - unknown delivery tag 1"


def test_with_nothing_unacked_it_is_answered_all_the_same(channel: Channel) -> None:
    recover(channel)
    recover(channel)


def test_recover_async_does_the_same_without_an_answer(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abc")
    take(channel, queue, 2)
    channel.send(spec.Basic.RecoverAsync(requeue=True))
    wait_ready(channel, queue, 3)
    assert not channel.inbox
    seen = drain(channel, queue)
    assert [message.method.redelivered for message in seen] == [True, True, False]


@pytest.mark.parametrize(
    ("method", "method_id"),
    [(spec.Basic.Recover(requeue=False), 110), (spec.Basic.RecoverAsync(requeue=False), 100)],
    ids=["recover", "recover-async"],
)
def test_without_requeue_it_is_not_implemented(
    channel: Channel, method: spec.Basic.Recover, method_id: int
) -> None:
    refusal = channel.refused(method)
    assert (refusal.scope, refusal.code) == ("connection", 540)
    assert refusal.text == "NOT_IMPLEMENTED - requeue=false"
    assert (refusal.class_id, refusal.method_id) == (60, method_id)


def test_a_refused_recover_gives_everything_back_by_closing(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    holder = connect().channel()
    fill(channel, queue, "ab")
    take(holder, queue, 2)
    holder.refused(spec.Basic.Recover(requeue=False))
    wait_ready(channel, queue, 2)
    assert word(drain(channel, queue)) == "ab"
