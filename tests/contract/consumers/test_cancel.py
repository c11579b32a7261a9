"""basic.cancel, from the client and from the broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.consumers.steps import QUIET_S, delete, drain, fill, wait_consumers, word
from tests.support.wire import CAPABILITIES, Channel, Connection


def test_cancel_is_answered_with_the_tag_and_ends_deliveries(channel: Channel, queue: str) -> None:
    channel.consume(queue, "t")
    assert channel.cancel("t").consumer_tag == "t"
    fill(channel, queue, "a")
    assert word(drain(channel, queue)) == "a"
    assert channel.quiet(QUIET_S)


def test_cancelling_an_unknown_tag_is_answered_all_the_same(channel: Channel) -> None:
    assert channel.cancel("nobody").consumer_tag == "nobody"
    channel.sync()


def test_cancelling_twice_is_fine(channel: Channel, queue: str) -> None:
    channel.consume(queue, "t")
    channel.cancel("t")
    assert channel.cancel("t").consumer_tag == "t"


def test_a_no_wait_cancel_is_not_answered(channel: Channel, queue: str) -> None:
    channel.consume(queue, "t")
    channel.send(spec.Basic.Cancel(consumer_tag="t", nowait=True))
    channel.send(spec.Basic.Cancel(consumer_tag="nobody", nowait=True))
    wait_consumers(channel, queue, 0)
    assert not channel.inbox


def test_a_tag_of_another_channel_is_unknown(channel: Channel, queue: str) -> None:
    channel.consume(queue, "t")
    channel.connection.channel().cancel("t")
    fill(channel, queue, "a")
    assert channel.delivery().method.consumer_tag == "t"


def test_cancel_leaves_unacked_deliveries_with_the_channel(channel: Channel, queue: str) -> None:
    channel.consume(queue, "t")
    fill(channel, queue, "ab")
    first, second = channel.deliveries(2)
    channel.cancel("t")
    assert channel.get(queue) is None

    channel.ack(first.tag)
    channel.nack(second.tag)

    assert word(drain(channel, queue)) == "b"


def test_nothing_is_delivered_after_cancel_ok(channel: Channel, queue: str) -> None:
    channel.qos(1)
    channel.consume(queue, "t")
    fill(channel, queue, "abc")
    first = channel.delivery()
    channel.cancel("t")

    channel.ack(first.tag)

    assert channel.quiet(QUIET_S)
    assert word(drain(channel, queue)) == "bc"


def test_the_others_go_on_when_one_is_cancelled(channel: Channel, queue: str) -> None:
    channel.consume(queue, "one")
    channel.consume(queue, "two")
    channel.cancel("one")
    fill(channel, queue, "abc")
    assert {message.method.consumer_tag for message in channel.deliveries(3)} == {"two"}


def test_deleting_the_queue_tells_the_consumers(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    worker = connect().channel()
    worker.consume(queue, "one")
    worker.consume(queue, "two")

    delete(channel, queue)

    cancels = [worker.expect(spec.Basic.Cancel) for _ in range(2)]
    assert {cancel.consumer_tag for cancel in cancels} == {"one", "two"}
    assert all(cancel.nowait for cancel in cancels)


def test_the_channel_that_deletes_the_queue_is_told_too(channel: Channel, queue: str) -> None:
    channel.consume(queue, "t")
    delete(channel, queue)
    assert channel.expect(spec.Basic.Cancel).consumer_tag == "t"


def test_a_consumer_that_did_not_wait_for_consume_ok_is_told_too(
    channel: Channel, queue: str
) -> None:
    channel.send(spec.Basic.Consume(queue=queue, consumer_tag="t", nowait=True))
    delete(channel, queue)
    assert channel.expect(spec.Basic.Cancel).consumer_tag == "t"


def test_consumers_of_an_exclusive_queue_are_told_when_it_is_deleted(
    channel: Channel, name: Callable[[str], str]
) -> None:
    queue = channel.declare(name("mine"), exclusive=True).queue
    channel.consume(queue, "t")
    delete(channel, queue)
    assert channel.expect(spec.Basic.Cancel).consumer_tag == "t"


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"capabilities": {}},
        {"capabilities": {**CAPABILITIES, "consumer_cancel_notify": False}},
        {"capabilities": {**CAPABILITIES, "consumer_cancel_notify": "yes"}},
    ],
    ids=["no properties", "no capabilities", "false", "not a bool"],
)
def test_a_client_without_the_capability_is_not_told(
    connect: Callable[..., Connection], channel: Channel, queue: str, properties: dict[str, object]
) -> None:
    worker = connect(properties=properties).channel()
    worker.consume(queue, "t")
    delete(channel, queue)
    assert worker.quiet(QUIET_S)
    worker.sync()


def test_a_cancelled_consumer_hears_of_the_deletion_no_more(channel: Channel, queue: str) -> None:
    channel.consume(queue, "t")
    channel.cancel("t")
    delete(channel, queue)
    assert channel.quiet(QUIET_S)


def test_cancelling_a_consumer_whose_queue_is_gone_is_fine(channel: Channel, queue: str) -> None:
    channel.consume(queue, "t")
    delete(channel, queue)
    channel.expect(spec.Basic.Cancel)
    assert channel.cancel("t").consumer_tag == "t"


def test_answering_the_brokers_cancel_is_a_command_it_does_not_know(
    channel: Channel, queue: str
) -> None:
    channel.consume(queue, "t")
    delete(channel, queue)
    channel.expect(spec.Basic.Cancel)

    refusal = channel.refused(spec.Basic.CancelOk(consumer_tag="t"))

    assert (refusal.scope, refusal.code) == ("connection", 503)
    assert refusal.text == "COMMAND_INVALID - unimplemented method"
    assert (refusal.class_id, refusal.method_id) == (60, 31)
