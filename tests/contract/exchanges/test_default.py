"""The default exchange: every queue is reachable by its name, and nobody may change that."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import amqp_object, spec

from tests.support.wire import Channel, Connection

REFUSAL = "ACCESS_REFUSED - operation not permitted on the default exchange"


def test_a_message_goes_to_the_queue_its_key_names(channel: Channel, name: Callable) -> None:
    wanted, other = name("wanted"), name("other")
    channel.declare(wanted)
    channel.declare(other)
    channel.publish(wanted, b"hello")
    assert channel.drain(wanted) == [b"hello"]
    assert channel.drain(other) == []


def test_a_delivery_names_the_default_exchange_by_an_empty_string(
    channel: Channel, name: Callable
) -> None:
    queue = name("queue")
    channel.declare(queue)
    channel.publish(queue, b"hello")
    message = channel.get(queue)
    assert message is not None
    assert (message.method.exchange, message.method.routing_key) == ("", queue)


@pytest.mark.parametrize("word", ["with space", "naïve-ключ-鍵", "a.b.*.#", "q" * 240])
def test_any_name_is_a_key(channel: Channel, name: Callable, word: str) -> None:
    queue = name(word)
    channel.declare(queue)
    channel.publish(queue, b"hello")
    assert channel.drain(queue) == [b"hello"]


@pytest.mark.parametrize("key", ["", "#", "*"])
def test_the_key_is_no_pattern(channel: Channel, name: Callable, key: str) -> None:
    queue = name("queue")
    channel.declare(queue)
    channel.publish(key, b"hello")
    assert channel.drain(queue) == []


def test_a_message_for_a_queue_that_is_not_there_is_dropped_in_silence(
    channel: Channel, name: Callable
) -> None:
    queue = name("queue")
    channel.publish(queue, b"too early")
    channel.declare(queue)
    channel.publish(queue, b"in time")
    assert channel.drain(queue) == [b"in time"]


def test_a_deleted_queue_is_no_longer_reachable(channel: Channel, name: Callable) -> None:
    queue = name("queue")
    channel.declare(queue)
    channel.call(spec.Queue.Delete(queue=queue))
    channel.publish(queue, b"hello", mandatory=True)
    assert channel.expect(spec.Basic.Return).method.reply_code == 312


@pytest.mark.parametrize(
    "method",
    [
        spec.Exchange.Declare(exchange="", type="direct", durable=True),
        spec.Exchange.Declare(exchange="", passive=True),
        spec.Exchange.Declare(exchange="\r\n", type="direct", durable=True),
        spec.Exchange.Delete(exchange=""),
        spec.Exchange.Bind(destination="amq.fanout", source=""),
        spec.Exchange.Bind(destination="", source="amq.fanout"),
        spec.Exchange.Unbind(destination="amq.fanout", source=""),
        spec.Exchange.Unbind(destination="", source="amq.fanout"),
        spec.Queue.Bind(queue="no-such-queue", exchange="", routing_key="key"),
        spec.Queue.Unbind(queue="no-such-queue", exchange="", routing_key="key"),
    ],
    ids=lambda method: method.NAME,
)
def test_it_can_not_be_declared_deleted_or_bound(
    channel: Channel, method: amqp_object.Method
) -> None:
    class_id, method_id = method.INDEX >> 16, method.INDEX & 0xFFFF
    assert channel.refused(method).args == ("channel", 403, REFUSAL, class_id, method_id)


def test_a_queue_can_not_be_unbound_from_it(channel: Channel, name: Callable) -> None:
    queue = name("queue")
    channel.declare(queue)
    refusal = channel.refused(spec.Queue.Unbind(queue=queue, exchange="", routing_key=queue))
    assert refusal.args == ("channel", 403, REFUSAL, 50, 50)
    again = channel.connection.channel()
    again.publish(queue, b"hello")
    assert again.drain(queue) == [b"hello"]


def test_a_refusal_leaves_the_connection_and_its_other_channels_open(
    connect: Callable[..., Connection],
) -> None:
    connection = connect()
    first, second = connection.channel(), connection.channel()
    first.refused(spec.Exchange.Delete(exchange=""))
    second.sync()
    connection.channel(first.number).sync()
