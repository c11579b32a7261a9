"""Direct exchanges, and what holds for bindings of any exchange."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.support.wire import Channel, Connection
from tests.support.wire_frames import Field


@pytest.fixture
def exchange(channel: Channel, name: Callable) -> str:
    exchange = name("direct")
    channel.declare_exchange(exchange, "direct")
    return exchange


@pytest.fixture
def queue(channel: Channel, name: Callable) -> str:
    return channel.declare(name("queue")).queue


def test_only_the_queue_bound_with_the_key_gets_the_message(
    channel: Channel, name: Callable, exchange: str, queue: str
) -> None:
    other = channel.declare(name("other")).queue
    channel.bind(queue, exchange, "red")
    channel.bind(other, exchange, "blue")
    channel.publish("red", b"r", exchange=exchange)
    channel.publish("blue", b"b", exchange=exchange)
    assert channel.drain(queue) == [b"r"]
    assert channel.drain(other) == [b"b"]


def test_every_queue_bound_with_the_key_gets_its_own_copy(
    channel: Channel, name: Callable, exchange: str, queue: str
) -> None:
    queues = [queue, channel.declare(name("second")).queue, channel.declare(name("third")).queue]
    for each in queues:
        channel.bind(each, exchange, "key")
    channel.publish("key", b"hello", exchange=exchange)
    assert [channel.drain(each) for each in queues] == [[b"hello"]] * 3


@pytest.mark.parametrize(
    ("bound", "published", "arrives"),
    [
        ("key", "key", True),
        ("", "", True),
        ("", "key", False),
        ("Key", "key", False),
        ("a.b", "a.b", True),
        ("a.*", "a.b", False),
        ("#", "a", False),
        ("*", "*", True),
        ("k" * 255, "k" * 255, True),
        ("k" * 255, "k" * 254, False),
        ("clé-ключ", "clé-ключ", True),
        ("key", " key", False),
    ],
)
def test_keys_are_compared_octet_by_octet(
    channel: Channel, exchange: str, queue: str, bound: str, published: str, arrives: bool
) -> None:
    channel.bind(queue, exchange, bound)
    channel.publish(published, b"hello", exchange=exchange)
    assert channel.drain(queue) == ([b"hello"] if arrives else [])


def test_a_delivery_names_the_exchange_and_the_key(
    channel: Channel, exchange: str, queue: str
) -> None:
    channel.bind(queue, exchange, "key")
    channel.publish("key", b"hello", exchange=exchange)
    message = channel.get(queue)
    assert message is not None
    assert (message.method.exchange, message.method.routing_key) == (exchange, "key")


def test_a_queue_may_be_bound_by_many_keys(channel: Channel, exchange: str, queue: str) -> None:
    for key in ("one", "two", "three"):
        channel.bind(queue, exchange, key)
    for key in ("one", "two", "three", "four"):
        channel.publish(key, key.encode(), exchange=exchange)
    assert channel.drain(queue) == [b"one", b"two", b"three"]


def test_a_message_without_a_matching_binding_is_dropped(
    channel: Channel, exchange: str, queue: str
) -> None:
    channel.bind(queue, exchange, "key")
    channel.publish("other", b"lost", exchange=exchange)
    channel.publish("key", b"kept", exchange=exchange)
    assert channel.drain(queue) == [b"kept"]


def test_binding_twice_is_as_binding_once(channel: Channel, exchange: str, queue: str) -> None:
    channel.bind(queue, exchange, "key")
    channel.bind(queue, exchange, "key")
    channel.publish("key", b"one copy", exchange=exchange)
    assert channel.drain(queue) == [b"one copy"]

    channel.unbind(queue, exchange, "key")
    channel.publish("key", b"unbound at once", exchange=exchange)
    assert channel.drain(queue) == []


def test_bindings_that_differ_only_in_arguments_are_two(
    channel: Channel, exchange: str, queue: str
) -> None:
    channel.bind(queue, exchange, "key", {"n": 1})
    channel.bind(queue, exchange, "key", {"n": 2})
    channel.publish("key", b"one copy", exchange=exchange)
    assert channel.drain(queue) == [b"one copy"]

    channel.unbind(queue, exchange, "key", {"n": 1})
    channel.publish("key", b"the other holds", exchange=exchange)
    assert channel.drain(queue) == [b"the other holds"]

    channel.unbind(queue, exchange, "key", {"n": 2})
    channel.publish("key", b"none left", exchange=exchange)
    assert channel.drain(queue) == []


@pytest.mark.parametrize(
    "arguments", [None, {"n": 2}, {"n": 1, "m": 1}, {"n": "1"}, {"n": Field("l", 1)}]
)
def test_unbinding_needs_the_very_arguments_of_the_binding(
    channel: Channel, exchange: str, queue: str, arguments: dict | None
) -> None:
    channel.bind(queue, exchange, "key", {"n": 1})
    channel.unbind(queue, exchange, "key", arguments)
    channel.publish("key", b"still bound", exchange=exchange)
    assert channel.drain(queue) == [b"still bound"]


def test_the_order_of_a_bindings_arguments_does_not_matter(
    channel: Channel, exchange: str, queue: str
) -> None:
    channel.bind(queue, exchange, "key", {"a": 1, "b": 2})
    channel.unbind(queue, exchange, "key", {"b": 2, "a": 1})
    channel.publish("key", b"unbound", exchange=exchange)
    assert channel.drain(queue) == []


def test_unbinding_one_key_leaves_the_others(channel: Channel, exchange: str, queue: str) -> None:
    channel.bind(queue, exchange, "one")
    channel.bind(queue, exchange, "two")
    channel.unbind(queue, exchange, "one")
    channel.publish("one", b"1", exchange=exchange)
    channel.publish("two", b"2", exchange=exchange)
    assert channel.drain(queue) == [b"2"]


def test_unbinding_what_is_not_bound_is_no_error(
    channel: Channel, exchange: str, queue: str, name: Callable
) -> None:
    missing = name("missing")
    assert channel.unbind(queue, exchange, "key").NAME == "Queue.UnbindOk"
    assert channel.unbind(missing, exchange, "key").NAME == "Queue.UnbindOk"
    assert channel.unbind(queue, missing, "key").NAME == "Queue.UnbindOk"


def test_binding_a_missing_queue_is_refused(
    channel: Channel, exchange: str, name: Callable
) -> None:
    queue = name("missing")
    refusal = channel.refused(spec.Queue.Bind(queue=queue, exchange=exchange, routing_key="key"))
    text = f"NOT_FOUND - no queue '{queue}' in vhost '/'"
    assert refusal.args == ("channel", 404, text, 50, 20)


def test_binding_to_a_missing_exchange_is_refused(
    channel: Channel, queue: str, name: Callable
) -> None:
    exchange = name("missing")
    refusal = channel.refused(spec.Queue.Bind(queue=queue, exchange=exchange, routing_key="key"))
    text = f"NOT_FOUND - no exchange '{exchange}' in vhost '/'"
    assert refusal.args == ("channel", 404, text, 50, 20)


def test_when_both_are_missing_the_exchange_is_named(channel: Channel, name: Callable) -> None:
    queue, exchange = name("queue"), name("exchange")
    refusal = channel.refused(spec.Queue.Bind(queue=queue, exchange=exchange, routing_key="key"))
    text = f"NOT_FOUND - no exchange '{exchange}' in vhost '/'"
    assert refusal.args == ("channel", 404, text, 50, 20)


def test_an_exclusive_queue_is_bound_by_its_own_connection_only(
    channel: Channel, connect: Callable[..., Connection], exchange: str, name: Callable
) -> None:
    queue = channel.declare(name("mine"), exclusive=True).queue
    stranger = connect().channel()
    refusal = stranger.refused(spec.Queue.Bind(queue=queue, exchange=exchange, routing_key="key"))
    text = (
        f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost '/'."
        " It could be originally declared on another connection or the exclusive property value"
        " does not match that of the original declaration."
    )
    assert refusal.args == ("channel", 405, text, 50, 20)
    channel.bind(queue, exchange, "key")


def test_an_exclusive_queue_is_unbound_by_its_own_connection_only(
    channel: Channel, connect: Callable[..., Connection], exchange: str, name: Callable
) -> None:
    queue = channel.declare(name("mine"), exclusive=True).queue
    channel.bind(queue, exchange, "key")
    stranger = connect().channel()
    refusal = stranger.refused(spec.Queue.Unbind(queue=queue, exchange=exchange, routing_key="key"))
    assert (refusal.scope, refusal.code) == ("channel", 405)
    assert (refusal.class_id, refusal.method_id) == (50, 50)
    channel.publish("key", b"still bound", exchange=exchange)
    assert channel.drain(queue) == [b"still bound"]


def test_an_empty_queue_name_means_the_queue_declared_last_on_the_channel(
    channel: Channel, exchange: str, queue: str, name: Callable
) -> None:
    last = channel.declare(name("last")).queue
    channel.bind("", exchange, "key")
    channel.publish("key", b"hello", exchange=exchange)
    assert channel.drain(last) == [b"hello"]
    assert channel.drain(queue) == []

    channel.unbind("", exchange, "key")
    channel.publish("key", b"unbound", exchange=exchange)
    assert channel.drain(last) == []


def test_an_empty_queue_name_with_an_empty_key_binds_by_the_queues_name(
    channel: Channel, exchange: str, queue: str
) -> None:
    channel.bind("", exchange, "")
    channel.publish(queue, b"by name", exchange=exchange)
    channel.publish("", b"by nothing", exchange=exchange)
    assert channel.drain(queue) == [b"by name"]


@pytest.mark.parametrize("method", [spec.Queue.Bind, spec.Queue.Unbind])
def test_an_empty_queue_name_without_a_declared_queue_is_refused(
    connect: Callable[..., Connection], method: type
) -> None:
    refusal = connect().channel().refused(method(queue="", exchange="amq.direct", routing_key="k"))
    text = "NOT_FOUND - no previously declared queue"
    assert refusal.args == ("channel", 404, text, 50, method.INDEX & 0xFFFF)


def test_a_no_wait_binding_is_made_without_an_answer(
    channel: Channel, exchange: str, queue: str
) -> None:
    channel.send(spec.Queue.Bind(queue=queue, exchange=exchange, routing_key="key", nowait=True))
    channel.publish("key", b"hello", exchange=exchange)
    assert channel.drain(queue) == [b"hello"]
    assert not channel.inbox


def test_a_no_wait_binding_that_fails_closes_the_channel_all_the_same(
    channel: Channel, exchange: str, name: Callable
) -> None:
    queue = name("missing")
    refusal = channel.refused(
        spec.Queue.Bind(queue=queue, exchange=exchange, routing_key="key", nowait=True)
    )
    text = f"NOT_FOUND - no queue '{queue}' in vhost '/'"
    assert refusal.args == ("channel", 404, text, 50, 20)


def test_a_deleted_queue_loses_its_bindings(channel: Channel, exchange: str, queue: str) -> None:
    channel.bind(queue, exchange, "key")
    channel.call(spec.Queue.Delete(queue=queue))
    channel.declare(queue)
    channel.publish("key", b"hello", exchange=exchange)
    assert channel.drain(queue) == []


def test_the_predeclared_direct_exchange_routes(
    channel: Channel, queue: str, name: Callable
) -> None:
    key = name("key")
    channel.bind(queue, "amq.direct", key)
    channel.publish(key, b"hello", exchange="amq.direct")
    assert channel.drain(queue) == [b"hello"]


def test_messages_of_one_channel_stay_in_order_whatever_way_they_come(
    channel: Channel, exchange: str, queue: str
) -> None:
    channel.bind(queue, exchange, "one")
    channel.bind(queue, exchange, "two")
    bodies = [str(number).encode() for number in range(30)]
    for number, body in enumerate(bodies):
        way = [("one", exchange), ("two", exchange), (queue, "")][number % 3]
        channel.publish(way[0], body, exchange=way[1])
    assert channel.drain(queue) == bodies
