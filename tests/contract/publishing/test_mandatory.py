"""Mandatory messages: what reaches no queue comes back, before its confirm."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.support.wire import Channel, Connection, Message

PROPERTIES = {
    "content_type": "text/plain",
    "content_encoding": "gzip",
    "headers": {"n": 1, "nested": {"a": [1, "b"]}},
    "delivery_mode": 2,
    "priority": 5,
    "correlation_id": "correlation",
    "reply_to": "reply",
    "expiration": "60000",
    "message_id": "message",
    "timestamp": 1700000000,
    "type": "type",
    "user_id": "guest",
    "app_id": "app",
    "cluster_id": "cluster",
}


def test_an_unroutable_message_comes_back_with_all_it_had(channel: Channel) -> None:
    channel.publish("nowhere", b"body", exchange="amq.direct", mandatory=True, **PROPERTIES)
    returned = channel.expect(spec.Basic.Return)
    method = returned.method
    assert (method.reply_code, method.reply_text) == (312, "NO_ROUTE")
    assert (method.exchange, method.routing_key) == ("amq.direct", "nowhere")
    assert returned.body == b"body"
    for key, value in PROPERTIES.items():
        assert getattr(returned.properties, key) == value


def test_a_message_to_a_missing_queue_comes_back_from_the_default_exchange(
    channel: Channel, name: Callable
) -> None:
    queue = name("missing")
    channel.publish(queue, b"body", mandatory=True)
    method = channel.expect(spec.Basic.Return).method
    assert (method.reply_code, method.reply_text) == (312, "NO_ROUTE")
    assert (method.exchange, method.routing_key) == ("", queue)


@pytest.mark.parametrize("size", [0, 1, 131064, 131065, 400_000])
def test_the_whole_body_comes_back(channel: Channel, size: int) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    channel.publish("nowhere", body[:size], exchange="amq.direct", mandatory=True)
    assert channel.expect(spec.Basic.Return).body == body[:size]


def test_a_routed_message_does_not_come_back(channel: Channel, name: Callable) -> None:
    queue = channel.declare(name("queue")).queue
    channel.publish(queue, b"hello", mandatory=True)
    assert channel.drain(queue) == [b"hello"]
    assert channel.quiet(0.1)


def test_an_unroutable_message_that_is_not_mandatory_is_dropped(channel: Channel) -> None:
    channel.publish("nowhere", b"dropped", exchange="amq.direct")
    channel.publish("nowhere", b"returned", exchange="amq.direct", mandatory=True)
    assert channel.expect(spec.Basic.Return).body == b"returned"
    assert not channel.inbox


def test_returns_come_in_the_order_of_publishing(channel: Channel, name: Callable) -> None:
    queue = channel.declare(name("queue")).queue
    for number in range(20):
        key = queue if number % 2 else "nowhere"
        channel.publish(key, str(number).encode(), mandatory=True)
    returned = [channel.expect(spec.Basic.Return).body for _ in range(10)]
    assert returned == [str(number).encode() for number in range(0, 20, 2)]


def test_the_return_comes_before_the_ack(channel: Channel) -> None:
    channel.confirm()
    channel.publish("nowhere", b"hello", exchange="amq.direct", mandatory=True)
    first = channel.expect(spec.Basic.Return, spec.Basic.Ack)
    assert isinstance(first, Message)
    ack = channel.expect(spec.Basic.Return, spec.Basic.Ack)
    assert (ack.NAME, ack.delivery_tag) == ("Basic.Ack", 1)


def test_each_return_comes_before_its_own_ack(channel: Channel, name: Callable) -> None:
    queue = channel.declare(name("queue")).queue
    channel.confirm()
    for number in range(1, 31):
        key = "nowhere" if number % 3 == 0 else queue
        channel.publish(key, str(number).encode(), mandatory=True)
    acked: set[int] = set()
    while len(acked) < 30:
        entry = channel.expect(spec.Basic.Return, spec.Basic.Ack)
        if isinstance(entry, Message):
            assert int(entry.body) not in acked
        elif entry.multiple:
            acked.update(range(1, entry.delivery_tag + 1))
        else:
            acked.add(entry.delivery_tag)


def test_the_message_comes_back_on_the_channel_that_published_it(
    connect: Callable[..., Connection],
) -> None:
    connection = connect()
    first, second = connection.channel(), connection.channel()
    second.publish("nowhere", b"second", exchange="amq.direct", mandatory=True)
    first.publish("nowhere", b"first", exchange="amq.direct", mandatory=True)
    assert first.expect(spec.Basic.Return).body == b"first"
    assert second.expect(spec.Basic.Return).body == b"second"


@pytest.mark.parametrize("type", ["direct", "fanout", "topic", "headers", "x-consistent-hash"])
def test_every_type_of_exchange_returns(channel: Channel, name: Callable, type: str) -> None:
    exchange = name(type)
    channel.declare_exchange(exchange, type)
    channel.publish("key", b"hello", exchange=exchange, mandatory=True)
    assert channel.expect(spec.Basic.Return).method.exchange == exchange


def test_a_full_queue_that_drops_does_not_return(channel: Channel, name: Callable) -> None:
    queue = channel.declare(name("queue"), arguments={"x-max-length": 1}).queue
    for body in (b"old", b"new"):
        channel.publish(queue, body, mandatory=True)
    assert channel.drain(queue) == [b"new"]
    assert not channel.inbox


def test_a_full_queue_that_rejects_nacks_and_does_not_return(
    channel: Channel, name: Callable
) -> None:
    arguments = {"x-max-length": 0, "x-overflow": "reject-publish"}
    queue = channel.declare(name("queue"), arguments=arguments).queue
    channel.confirm()
    channel.publish(queue, b"hello", mandatory=True)
    assert channel.expect(spec.Basic.Return, spec.Basic.Ack, spec.Basic.Nack).NAME == "Basic.Nack"
