"""basic.consume: what is answered, what is delivered, what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import frame, spec

from tests.contract.consumers.steps import (
    QUIET_S,
    delete,
    drain,
    fill,
    wait_consumers,
    wait_ready,
    word,
)
from tests.support.wire import Channel, Connection, Message


def test_a_delivery_says_where_it_comes_from(channel: Channel, queue: str) -> None:
    channel.bind(queue, "amq.topic", "orders.#")
    tag = channel.consume(queue)

    channel.publish("orders.new", b"hello", exchange="amq.topic", type="order")

    message = channel.delivery()
    assert message.method.consumer_tag == tag
    assert (message.method.exchange, message.method.routing_key) == ("amq.topic", "orders.new")
    assert (message.tag, message.method.redelivered) == (1, False)
    assert (message.properties.type, message.body) == ("order", b"hello")


def test_messages_that_wait_come_right_after_consume_ok_in_order(
    channel: Channel, queue: str
) -> None:
    fill(channel, queue, "abc")
    channel.send(spec.Basic.Consume(queue=queue, consumer_tag="t"))

    channel.wait(lambda entry: isinstance(entry, Message))  # a delivery is here:

    assert isinstance(channel.inbox[0], spec.Basic.ConsumeOk), "its consume-ok came first"
    assert word(channel.deliveries(2)) == "bc"


def test_declare_consume_and_publish_sent_in_one_go_are_all_done(
    channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("pipelined")
    methods = (spec.Queue.Declare(queue=queue), spec.Basic.Consume(queue=queue, consumer_tag="t"))
    data = b"".join(frame.Method(channel.number, method).marshal() for method in methods)
    channel.connection.wire.send(data)
    channel.publish(queue, b"a")

    assert channel.delivery().body == b"a"
    assert channel.expect(spec.Basic.ConsumeOk).consumer_tag == "t"


def test_a_no_wait_consume_is_not_answered_but_delivers(channel: Channel, queue: str) -> None:
    channel.send(spec.Basic.Consume(queue=queue, consumer_tag="t", nowait=True))
    fill(channel, queue, "a")
    assert channel.delivery().method.consumer_tag == "t"
    assert channel.quiet(QUIET_S)


def test_a_no_wait_consume_without_a_tag_learns_it_from_the_delivery(
    channel: Channel, queue: str
) -> None:
    channel.send(spec.Basic.Consume(queue=queue, nowait=True))
    fill(channel, queue, "a")
    assert channel.delivery().method.consumer_tag.startswith("amq.ctag-")


def test_an_empty_queue_name_means_the_queue_declared_last(channel: Channel, queue: str) -> None:
    channel.consume("", "t")
    fill(channel, queue, "a")
    assert channel.delivery().body == b"a"


@pytest.mark.parametrize(
    ("queue", "text"),
    [
        ("no-such", "NOT_FOUND - no queue 'no-such' in vhost '/'"),
        ("", "NOT_FOUND - no previously declared queue"),
    ],
)
@pytest.mark.parametrize("nowait", [False, True])
def test_consuming_a_queue_that_is_not_there_closes_the_channel(
    channel: Channel, queue: str, text: str, nowait: bool
) -> None:
    refusal = channel.refused(spec.Basic.Consume(queue=queue, nowait=nowait))
    assert (refusal.scope, refusal.code, refusal.text) == ("channel", 404, text)
    assert (refusal.class_id, refusal.method_id) == (60, 20)


def test_the_exclusive_queue_of_another_connection_is_locked(
    channel: Channel, name: Callable[[str], str], connect: Callable[..., Connection]
) -> None:
    queue = channel.declare(name("mine"), exclusive=True).queue
    refusal = connect().channel().refused(spec.Basic.Consume(queue=queue))
    assert (refusal.scope, refusal.code) == ("channel", 405)
    assert refusal.text == (
        f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost '/'. "
        "It could be originally declared on another connection or the exclusive property value "
        "does not match that of the original declaration."
    )
    assert (refusal.class_id, refusal.method_id) == (60, 20)


def test_no_local_is_ignored(channel: Channel, queue: str) -> None:
    channel.consume(queue, no_local=True)
    channel.publish(queue, b"my own")
    assert channel.delivery().body == b"my own"


def test_unknown_arguments_are_ignored(channel: Channel, queue: str) -> None:
    channel.consume(queue, arguments={"x-what": "ever", "plain": 1})
    fill(channel, queue, "a")
    assert channel.delivery().body == b"a"


def test_a_stream_offset_is_refused_on_a_classic_queue(channel: Channel, queue: str) -> None:
    refusal = channel.refused(spec.Basic.Consume(queue=queue, arguments={"x-stream-offset": 1}))
    assert (refusal.scope, refusal.code) == ("channel", 406)
    assert refusal.text == (
        f"PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue '{queue}' in vhost '/' "
        "of queue type rabbit_classic_queue"
    )


def test_cancel_on_ha_failover_must_be_a_bool(channel: Channel, queue: str) -> None:
    refusal = channel.refused(
        spec.Basic.Consume(queue=queue, arguments={"x-cancel-on-ha-failover": "yes"})
    )
    assert (refusal.scope, refusal.code) == ("channel", 406)
    assert refusal.text == (
        f"PRECONDITION_FAILED - invalid arg 'x-cancel-on-ha-failover' for queue '{queue}' in "
        "vhost '/': {unacceptable_type,longstr}"
    )


def test_declare_ok_counts_consumers_of_all_connections(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    assert channel.declare(queue).consumer_count == 0
    channel.consume(queue, "one")
    channel.consume(queue, "two")
    connect().channel().consume(queue, "three")
    assert channel.declare(queue).consumer_count == 3

    channel.cancel("one")

    assert channel.declare(queue, passive=True).consumer_count == 2


def test_delivery_tags_count_from_one_on_each_channel(channel: Channel, queue: str) -> None:
    other = channel.connection.channel()
    channel.consume(queue, "t")
    fill(channel, queue, "ab")
    assert [message.tag for message in channel.deliveries(2)] == [1, 2]
    channel.cancel("t")

    other.consume(queue)
    fill(channel, queue, "cd")

    assert [message.tag for message in other.deliveries(2)] == [1, 2]


def test_consumers_of_one_channel_share_its_delivery_tags(
    channel: Channel, queue: str, name: Callable[[str], str]
) -> None:
    second = channel.declare(name("second")).queue
    channel.consume(queue)
    channel.consume(second)
    for target in (queue, second, queue):
        fill(channel, target, "a")
    assert [message.tag for message in channel.deliveries(3)] == [1, 2, 3]


def test_many_consumers_on_one_channel_each_get_their_share(channel: Channel, queue: str) -> None:
    tags = [channel.consume(queue, f"t{number}") for number in range(200)]
    fill(channel, queue, "x" * 400)

    seen = [message.method.consumer_tag for message in channel.deliveries(400)]

    assert seen == tags * 2
    assert channel.declare(queue, passive=True).consumer_count == 200


def test_an_unacked_message_stays_out_while_its_channel_is_open(
    channel: Channel, queue: str
) -> None:
    holder = channel.connection.channel()
    holder.consume(queue)
    fill(channel, queue, "a")
    holder.delivery()

    assert channel.get(queue) is None
    assert holder.quiet(QUIET_S)
    holder.close()

    wait_ready(channel, queue, 1)


def test_a_message_goes_to_one_consumer_only(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    workers = [connect().channel() for _ in range(2)]
    for worker in workers:
        worker.consume(queue)
    letters = "".join(chr(ord("A") + number) for number in range(60))
    fill(channel, queue, letters)

    seen = [message for worker in workers for message in worker.deliveries(30)]
    for worker in workers:
        worker.ack(0, multiple=True)

    assert sorted(word(seen)) == list(letters)
    assert all(worker.quiet(QUIET_S) for worker in workers)
    assert channel.get(queue) is None


def test_closing_the_channel_ends_its_consumers(channel: Channel, queue: str) -> None:
    worker = channel.connection.channel()
    worker.consume(queue)
    worker.close()
    wait_consumers(channel, queue, 0)
    fill(channel, queue, "a")
    assert word(drain(channel, queue)) == "a"


def test_consuming_again_after_the_queue_was_deleted_is_refused(
    channel: Channel, queue: str
) -> None:
    channel.consume(queue, "t")
    delete(channel, queue)
    channel.expect(spec.Basic.Cancel)
    refusal = channel.refused(spec.Basic.Consume(queue=queue, consumer_tag="t"))
    assert (refusal.scope, refusal.code) == ("channel", 404)
    assert refusal.text == f"NOT_FOUND - no queue '{queue}' in vhost '/'"


@pytest.mark.parametrize("settle", ["ack", "nack", "reject"])
def test_a_delivery_of_a_deleted_queue_can_still_be_settled(
    channel: Channel, queue: str, settle: str
) -> None:
    channel.consume(queue)
    fill(channel, queue, "a")
    message = channel.delivery()
    delete(channel, queue)
    channel.expect(spec.Basic.Cancel)

    getattr(channel, settle)(message.tag)

    channel.sync()
    assert channel.refused(spec.Basic.Ack(message.tag)).text.endswith("unknown delivery tag 1")


def test_a_queue_made_anew_knows_nothing_of_the_old_ones_messages(
    channel: Channel, queue: str
) -> None:
    channel.consume(queue)
    fill(channel, queue, "a")
    message = channel.delivery()
    delete(channel, queue)
    channel.expect(spec.Basic.Cancel)
    assert channel.declare(queue).message_count == 0

    channel.nack(message.tag)

    fill(channel, queue, "b")
    assert word(drain(channel, queue)) == "b"
