"""The 14 basic properties and the body arrive as they were sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pika import spec

from tests.support.wire import Channel, Message

ALL: dict[str, Any] = {
    "content_type": "application/json",
    "content_encoding": "gzip",
    "headers": {"text": "naïve", "number": -5, "yes": True, "none": None, "in": {"a": [1, "b"]}},
    "delivery_mode": 2,
    "priority": 9,
    "correlation_id": "correlation",
    "reply_to": "a reply queue",
    "expiration": "3600000",
    "message_id": "message",
    "timestamp": 1700000000,
    "type": "a type",
    "user_id": "guest",
    "app_id": "an app",
    "cluster_id": "a cluster",
}


@pytest.fixture
def queue(channel: Channel, name: Callable) -> str:
    return channel.declare(name("queue")).queue


def _given(message: Message | None) -> dict[str, Any]:
    assert message is not None
    found = {key: getattr(message.properties, key) for key in ALL}
    return {key: value for key, value in found.items() if value is not None}


def _by_get(channel: Channel, queue: str, sent: dict[str, Any]) -> Message | None:
    channel.publish(queue, b"body", **sent)
    return channel.get(queue)


def _by_delivery(channel: Channel, queue: str, sent: dict[str, Any]) -> Message:
    channel.consume(queue, no_ack=True)
    channel.publish(queue, b"body", **sent)
    return channel.delivery()


def _by_return(channel: Channel, queue: str, sent: dict[str, Any]) -> Message:
    channel.publish("nowhere", b"body", mandatory=True, **sent)
    return channel.expect(spec.Basic.Return)


def _by_redelivery(channel: Channel, queue: str, sent: dict[str, Any]) -> Message | None:
    channel.publish(queue, b"body", **sent)
    first = channel.get(queue, no_ack=False)
    assert first is not None
    channel.nack(first.tag, requeue=True)
    return channel.get(queue)


WAYS = [_by_get, _by_delivery, _by_return, _by_redelivery]


@pytest.mark.parametrize("way", WAYS)
def test_all_properties_together(channel: Channel, queue: str, way: Callable) -> None:
    assert _given(way(channel, queue, ALL)) == ALL


@pytest.mark.parametrize("way", WAYS)
def test_no_property_is_added(channel: Channel, queue: str, way: Callable) -> None:
    assert _given(way(channel, queue, {})) == {}


@pytest.mark.parametrize("key", ALL)
def test_each_property_alone(channel: Channel, queue: str, key: str) -> None:
    assert _given(_by_get(channel, queue, {key: ALL[key]})) == {key: ALL[key]}


@pytest.mark.parametrize("key", ALL)
def test_each_property_left_out(channel: Channel, queue: str, key: str) -> None:
    sent = {other: value for other, value in ALL.items() if other != key}
    assert _given(_by_get(channel, queue, sent)) == sent


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("content_type", ""),
        ("correlation_id", ""),
        ("reply_to", ""),
        ("message_id", ""),
        ("type", ""),
        ("app_id", ""),
        ("cluster_id", ""),
        ("headers", {}),
        ("priority", 0),
        ("priority", 255),
        ("timestamp", 0),
        ("timestamp", 2**40),
        ("delivery_mode", 1),
        ("message_id", "m" * 255),
        ("correlation_id", "ключ-鍵"),
        ("headers", {"": "an empty name"}),
        ("headers", {"k" * 128: "v" * 10_000}),
    ],
)
def test_values_at_the_edge(channel: Channel, queue: str, key: str, value: Any) -> None:
    assert _given(_by_get(channel, queue, {key: value})) == {key: value}


def test_headers_keep_their_order(channel: Channel, queue: str) -> None:
    headers = {key: number for number, key in enumerate("zyxabc")}
    message = _by_get(channel, queue, {"headers": headers})
    assert message is not None
    assert list(message.properties.headers) == list("zyxabc")


def test_properties_differ_from_message_to_message(channel: Channel, queue: str) -> None:
    for number in range(10):
        channel.publish(queue, b"", message_id=str(number), priority=number)
    for number in range(10):
        assert _given(channel.get(queue)) == {"message_id": str(number), "priority": number}


def test_every_copy_has_the_properties(channel: Channel, name: Callable) -> None:
    exchange = name("fanout")
    channel.declare_exchange(exchange, "fanout")
    queues = [channel.declare(name("queue")).queue for _ in range(3)]
    for queue in queues:
        channel.bind(queue, exchange)
    channel.publish("", b"body", exchange=exchange, **ALL)
    for queue in queues:
        assert _given(channel.get(queue)) == ALL


@pytest.mark.parametrize("size", [0, 1, 4096, 131063, 131064, 131065, 262128, 262129])
def test_a_body_of_any_length_arrives_whole(channel: Channel, queue: str, size: int) -> None:
    body = (bytes(range(256)) * (size // 256 + 1))[:size]
    channel.publish(queue, body)
    message = channel.get(queue)
    assert message is not None
    assert message.body == body


@pytest.mark.parametrize("mode", [0, 3, 255])
def test_an_unknown_delivery_mode_is_refused(channel: Channel, queue: str, mode: int) -> None:
    channel.publish(queue, b"hello", delivery_mode=mode)
    text = f"PRECONDITION_FAILED - invalid message: {{delivery_mode_unknown,{mode}}}"
    assert channel.expect_closed().args == ("channel", 406, text, 60, 40)
