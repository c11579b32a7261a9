"""basic.get: one message at a time, asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.consumers.steps import drain, fill, take, wait_ready, word
from tests.support.wire import Channel, Connection


def test_an_empty_queue_answers_get_empty(channel: Channel, queue: str) -> None:
    answer = channel.call(spec.Basic.Get(queue=queue))
    assert isinstance(answer, spec.Basic.GetEmpty)
    assert answer.cluster_id == ""


def test_get_ok_says_where_the_message_comes_from(channel: Channel, queue: str) -> None:
    channel.bind(queue, "amq.topic", "orders.#")
    channel.publish("orders.new", b"hello", exchange="amq.topic", app_id="shop")
    message = channel.get(queue)
    assert message is not None
    assert (message.method.exchange, message.method.routing_key) == ("amq.topic", "orders.new")
    assert (message.tag, message.method.redelivered) == (1, False)
    assert (message.properties.app_id, message.body) == ("shop", b"hello")


def test_it_counts_the_messages_left(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abc")
    assert [message.method.message_count for message in drain(channel, queue)] == [2, 1, 0]


def test_unacked_messages_are_not_counted_as_left(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abc")
    taken = take(channel, queue, 2)
    assert [message.method.message_count for message in taken] == [2, 1]
    assert channel.count(queue) == 1


def test_messages_come_oldest_first(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abcde")
    assert word(drain(channel, queue)) == "abcde"


def test_a_no_ack_get_is_settled_at_once(channel: Channel, queue: str) -> None:
    fill(channel, queue, "a")
    getter = channel.connection.channel()
    assert getter.get(queue, no_ack=True) is not None
    getter.close()
    assert channel.get(queue) is None


def test_a_no_ack_get_cannot_be_acked(channel: Channel, queue: str) -> None:
    fill(channel, queue, "a")
    channel.get(queue, no_ack=True)
    refusal = channel.refused(spec.Basic.Ack(1))
    assert (refusal.scope, refusal.code) == ("channel", 406)
    assert refusal.text == "PRECONDITION_FAILED - unknown delivery tag 1"


def test_an_unacked_get_is_not_given_out_again(channel: Channel, queue: str) -> None:
    fill(channel, queue, "ab")
    assert word(take(channel, queue, 1)) == "a"
    assert word(drain(channel.connection.channel(), queue)) == "b"


def test_an_acked_get_is_gone(channel: Channel, queue: str) -> None:
    fill(channel, queue, "a")
    getter = channel.connection.channel()
    getter.ack(take(getter, queue, 1)[0].tag)
    getter.close()
    assert channel.get(queue) is None


@pytest.mark.parametrize("end", ["close", "drop"])
def test_unacked_gets_come_back_in_order_when_the_connection_ends(
    channel: Channel, queue: str, connect: Callable[..., Connection], end: str
) -> None:
    fill(channel, queue, "abcd")
    getter = connect()
    assert word(take(getter.channel(), queue, 3)) == "abc"

    getattr(getter, end)()

    wait_ready(channel, queue, 4)
    seen = drain(channel, queue)
    assert word(seen) == "abcd"
    assert [message.method.redelivered for message in seen] == [True, True, True, False]


def test_gets_and_deliveries_share_the_channels_delivery_tags(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abc")
    assert [message.tag for message in take(channel, queue, 2)] == [1, 2]
    channel.consume(queue)
    assert channel.delivery().tag == 3
    channel.ack(3, multiple=True)
    assert channel.refused(spec.Basic.Ack(1)).code == 406


def test_get_works_beside_consumers(channel: Channel, queue: str) -> None:
    channel.qos(1)
    channel.consume(queue)
    fill(channel, queue, "abc")
    assert channel.delivery().body == b"a"
    assert word(drain(channel, queue)) == "bc"


def test_an_empty_queue_name_means_the_queue_declared_last(channel: Channel, queue: str) -> None:
    fill(channel, queue, "a")
    assert word(drain(channel, "")) == "a"


@pytest.mark.parametrize(
    ("queue", "text"),
    [
        ("no-such", "NOT_FOUND - no queue 'no-such' in vhost '/'"),
        ("", "NOT_FOUND - no previously declared queue"),
    ],
)
def test_getting_from_a_queue_that_is_not_there_closes_the_channel(
    channel: Channel, queue: str, text: str
) -> None:
    refusal = channel.refused(spec.Basic.Get(queue=queue))
    assert (refusal.scope, refusal.code, refusal.text) == ("channel", 404, text)
    assert (refusal.class_id, refusal.method_id) == (60, 70)


def test_the_exclusive_queue_of_another_connection_is_locked(
    channel: Channel, name: Callable[[str], str], connect: Callable[..., Connection]
) -> None:
    queue = channel.declare(name("mine"), exclusive=True).queue
    refusal = connect().channel().refused(spec.Basic.Get(queue=queue))
    assert (refusal.scope, refusal.code) == ("channel", 405)
    assert refusal.text.startswith(
        f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost '/'."
    )
    assert (refusal.class_id, refusal.method_id) == (60, 70)
