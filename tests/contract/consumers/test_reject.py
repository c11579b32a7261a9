"""basic.reject and basic.nack: give back or throw away."""

from __future__ import annotations

import pytest
from pika import spec

from tests.contract.consumers.steps import drain, fill, take, wait_ready, word
from tests.support.wire import Channel

REFUSALS = {
    "reject": lambda tag, requeue=True: spec.Basic.Reject(tag, requeue),
    "nack": lambda tag, requeue=True: spec.Basic.Nack(tag, False, requeue),
    "nack multiple": lambda tag, requeue=True: spec.Basic.Nack(tag, True, requeue),
}
METHOD_IDS = {"reject": 90, "nack": 120, "nack multiple": 120}


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_requeued_message_can_be_had_again(channel: Channel, queue: str, kind: str) -> None:
    fill(channel, queue, "ab")
    take(channel, queue, 1)
    channel.send(REFUSALS[kind](1))
    assert word(drain(channel, queue)) == "ab"


@pytest.mark.parametrize("kind", REFUSALS)
def test_without_requeue_the_message_is_gone(channel: Channel, queue: str, kind: str) -> None:
    fill(channel, queue, "ab")
    take(channel, queue, 1)
    channel.send(REFUSALS[kind](1, requeue=False))
    assert word(drain(channel, queue)) == "b"
    channel.close()
    checker = channel.connection.channel()
    assert checker.get(queue) is None


@pytest.mark.parametrize(
    ("kind", "tag"),
    [("reject", 0), ("reject", 7), ("nack", 0), ("nack", 7), ("nack multiple", 7)],
)
def test_an_unknown_tag_closes_the_channel(channel: Channel, kind: str, tag: int) -> None:
    refusal = channel.refused(REFUSALS[kind](tag))
    assert (refusal.scope, refusal.code) == ("channel", 406)
    assert refusal.text == f"PRECONDITION_FAILED - unknown delivery tag {tag}"
    assert (refusal.class_id, refusal.method_id) == (60, METHOD_IDS[kind])


@pytest.mark.parametrize("kind", REFUSALS)
def test_refusing_an_acked_message_closes_the_channel(
    channel: Channel, queue: str, kind: str
) -> None:
    fill(channel, queue, "ab")
    take(channel, queue, 2)
    channel.ack(2)
    refusal = channel.refused(REFUSALS[kind](2))
    assert refusal.text == "PRECONDITION_FAILED - unknown delivery tag 2"


def test_nack_multiple_gives_back_all_up_to_the_tag(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abcde")
    take(channel, queue, 4)
    channel.nack(3, multiple=True)
    assert word(drain(channel, queue)) == "abce"


def test_nack_multiple_throws_away_all_up_to_the_tag(channel: Channel, queue: str) -> None:
    holder = channel.connection.channel()
    fill(channel, queue, "abcde")
    take(holder, queue, 4)
    holder.nack(3, multiple=True, requeue=False)
    holder.close()
    wait_ready(channel, queue, 2)
    assert word(drain(channel, queue)) == "de"


@pytest.mark.parametrize(("requeue", "left"), [(True, "abcd"), (False, "d")])
def test_nack_multiple_with_tag_zero_means_all(
    channel: Channel, queue: str, requeue: bool, left: str
) -> None:
    fill(channel, queue, "abcd")
    take(channel, queue, 3)
    channel.nack(0, multiple=True, requeue=requeue)
    assert word(drain(channel, queue)) == left


def test_nack_multiple_with_tag_zero_and_nothing_unacked_is_fine(channel: Channel) -> None:
    channel.nack(0, multiple=True)
    channel.sync()


def test_nack_multiple_passes_over_what_is_settled_already(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abcd")
    take(channel, queue, 4)
    channel.ack(1)
    channel.nack(3, requeue=False)
    channel.nack(4, multiple=True)
    assert word(drain(channel, queue)) == "bd"


def test_a_rejected_message_goes_to_another_consumer(channel: Channel, queue: str) -> None:
    refuser, worker = channel.connection.channel(), channel.connection.channel()
    refuser.consume(queue, "refuser")
    fill(channel, queue, "a")
    message = refuser.delivery()
    worker.consume(queue, "worker")
    refuser.send(spec.Basic.Cancel(consumer_tag="refuser"))
    refuser.reject(message.tag)

    again = worker.delivery()

    assert (again.body, again.method.redelivered) == (b"a", True)


def test_a_lone_consumer_gets_what_it_rejects_again_and_again(channel: Channel, queue: str) -> None:
    channel.consume(queue)
    fill(channel, queue, "a")
    for tag in range(1, 21):
        message = channel.delivery()
        assert (message.tag, message.method.redelivered) == (tag, tag > 1)
        channel.reject(tag)


def test_nack_multiple_over_several_queues_gives_each_its_own_back(
    channel: Channel, queue: str
) -> None:
    second = channel.declare(exclusive=True).queue
    fill(channel, queue, "ab")
    fill(channel, second, "cd")
    for source in (queue, second, second, queue):
        take(channel, source, 1)
    channel.nack(0, multiple=True)
    assert word(drain(channel, queue)) == "ab"
    assert word(drain(channel, second)) == "cd"
