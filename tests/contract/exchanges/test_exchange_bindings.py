"""Exchanges bound to exchanges: chains, circles, and one copy a queue at the end."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from pika import spec

from tests.support.wire import Channel


@pytest.fixture
def declare(channel: Channel, name: Callable) -> Callable[..., str]:
    def declare(type: str = "fanout", **options: bool) -> str:
        exchange = name(type)
        channel.declare_exchange(exchange, type, **options)
        return exchange

    return declare


@pytest.fixture
def queue(channel: Channel, name: Callable) -> str:
    return channel.declare(name("queue")).queue


def test_a_message_passes_from_exchange_to_exchange(
    channel: Channel, declare: Callable[..., str], queue: str
) -> None:
    source, destination = declare("direct"), declare("fanout")
    channel.bind_exchange(destination, source, "key")
    channel.bind(queue, destination)
    channel.publish("key", b"passes", exchange=source)
    channel.publish("other", b"does not", exchange=source)
    assert channel.drain(queue) == [b"passes"]


def test_nothing_passes_the_other_way(
    channel: Channel, declare: Callable[..., str], queue: str
) -> None:
    source, destination = declare(), declare()
    channel.bind_exchange(destination, source)
    channel.bind(queue, source)
    channel.publish("", b"hello", exchange=destination)
    assert channel.drain(queue) == []


def test_each_exchange_judges_by_its_own_type(
    channel: Channel, declare: Callable[..., str], queue: str
) -> None:
    topic, headers, direct = declare("topic"), declare("headers"), declare("direct")
    channel.bind_exchange(headers, topic, "a.*")
    channel.bind_exchange(direct, headers, "", {"x-match": "all", "n": 1})
    channel.bind(queue, direct, "a.b")
    channel.publish("a.b", b"yes", exchange=topic, headers={"n": 1})
    channel.publish("a.b", b"wrong header", exchange=topic, headers={"n": 2})
    channel.publish("a.c", b"wrong key", exchange=topic, headers={"n": 1})
    channel.publish("b.b", b"wrong topic", exchange=topic, headers={"n": 1})
    assert channel.drain(queue) == [b"yes"]


def test_a_delivery_names_the_exchange_that_was_published_to(
    channel: Channel, declare: Callable[..., str], queue: str
) -> None:
    source, destination = declare(), declare()
    channel.bind_exchange(destination, source)
    channel.bind(queue, destination)
    channel.publish("key", b"hello", exchange=source)
    message = channel.get(queue)
    assert message is not None
    assert (message.method.exchange, message.method.routing_key) == (source, "key")


def test_a_long_chain_ends_at_its_queue(
    channel: Channel, declare: Callable[..., str], queue: str
) -> None:
    chain = [declare() for _ in range(20)]
    for source, destination in itertools.pairwise(chain):
        channel.bind_exchange(destination, source)
    channel.bind(queue, chain[-1])
    channel.publish("", b"hello", exchange=chain[0])
    assert channel.drain(queue) == [b"hello"]


def test_a_queue_reached_on_several_ways_gets_one_copy(
    channel: Channel, declare: Callable[..., str], queue: str
) -> None:
    source, left, right = declare(), declare(), declare()
    channel.bind_exchange(left, source)
    channel.bind_exchange(right, source)
    for exchange in (source, left, right):
        channel.bind(queue, exchange)
    channel.publish("", b"hello", exchange=source)
    assert channel.drain(queue) == [b"hello"]


def test_a_circle_delivers_once(
    channel: Channel, declare: Callable[..., str], queue: str, name: Callable
) -> None:
    circle = [declare() for _ in range(3)]
    other = channel.declare(name("other")).queue
    for source, destination in zip(circle, circle[1:] + circle[:1], strict=True):
        channel.bind_exchange(destination, source)
    channel.bind(queue, circle[1])
    channel.bind(other, circle[0])
    for exchange in circle:
        channel.publish("", exchange.encode(), exchange=exchange)
    assert channel.drain(queue) == [exchange.encode() for exchange in circle]
    assert channel.drain(other) == [exchange.encode() for exchange in circle]


def test_an_exchange_may_be_bound_to_itself(
    channel: Channel, declare: Callable[..., str], queue: str
) -> None:
    exchange = declare()
    channel.bind_exchange(exchange, exchange)
    channel.bind(queue, exchange)
    channel.publish("", b"hello", exchange=exchange)
    assert channel.drain(queue) == [b"hello"]


def test_a_circle_without_a_queue_ends_too(channel: Channel, declare: Callable[..., str]) -> None:
    first, second = declare(), declare()
    channel.bind_exchange(first, second)
    channel.bind_exchange(second, first)
    channel.publish("", b"hello", exchange=first, mandatory=True)
    assert channel.expect(spec.Basic.Return).method.reply_code == 312


def test_binding_twice_is_as_binding_once(
    channel: Channel, declare: Callable[..., str], queue: str
) -> None:
    source, destination = declare(), declare()
    channel.bind_exchange(destination, source, "key")
    channel.bind_exchange(destination, source, "key")
    channel.bind(queue, destination)
    channel.publish("", b"one", exchange=source)
    channel.unbind_exchange(destination, source, "key")
    channel.publish("", b"none", exchange=source)
    assert channel.drain(queue) == [b"one"]


def test_bindings_that_differ_in_key_or_arguments_are_apart(
    channel: Channel, declare: Callable[..., str], queue: str
) -> None:
    source, destination = declare(), declare()
    bindings = [("", None), ("key", None), ("key", {"n": 1})]
    channel.bind(queue, destination)
    for key, arguments in bindings:
        channel.bind_exchange(destination, source, key, arguments)
    for key, arguments in bindings:
        channel.publish("", b"bound", exchange=source)
        channel.unbind_exchange(destination, source, key, arguments)
    channel.publish("", b"not bound", exchange=source)
    assert channel.drain(queue) == [b"bound"] * 3


def test_a_queue_and_an_exchange_of_one_name_are_two_destinations(
    channel: Channel, declare: Callable[..., str], queue: str, name: Callable
) -> None:
    source, both = declare(), name("both")
    channel.declare(both)
    channel.declare_exchange(both, "fanout")
    channel.bind(queue, both)
    channel.bind_exchange(both, source)
    channel.publish("", b"by exchange", exchange=source)
    assert (channel.drain(both), channel.drain(queue)) == ([], [b"by exchange"])
    channel.bind(both, source)
    channel.unbind_exchange(both, source)
    channel.publish("", b"by queue", exchange=source)
    assert (channel.drain(both), channel.drain(queue)) == ([b"by queue"], [])


def test_unbinding_what_is_not_bound_is_no_error(
    channel: Channel, declare: Callable[..., str], name: Callable
) -> None:
    exchange, missing = declare(), name("missing")
    for destination, source in [(exchange, exchange), (missing, exchange), (exchange, missing)]:
        assert channel.unbind_exchange(destination, source).NAME == "Exchange.UnbindOk"


@pytest.mark.parametrize(
    ("missing_destination", "missing_source"), [(True, False), (False, True), (True, True)]
)
def test_binding_a_missing_exchange_is_refused(
    channel: Channel,
    declare: Callable[..., str],
    name: Callable,
    missing_destination: bool,
    missing_source: bool,
) -> None:
    destination = name("destination") if missing_destination else declare()
    source = name("source") if missing_source else declare()
    refusal = channel.refused(spec.Exchange.Bind(destination=destination, source=source))
    missing = source if missing_source else destination
    text = f"NOT_FOUND - no exchange '{missing}' in vhost '/'"
    assert refusal.args == ("channel", 404, text, 40, 30)


def test_no_wait_bindings_and_unbindings_have_no_answer(
    channel: Channel, declare: Callable[..., str], queue: str
) -> None:
    source, destination = declare(), declare()
    channel.bind(queue, destination)
    channel.send(spec.Exchange.Bind(destination=destination, source=source, nowait=True))
    channel.publish("", b"bound", exchange=source)
    channel.send(spec.Exchange.Unbind(destination=destination, source=source, nowait=True))
    channel.publish("", b"not bound", exchange=source)
    assert channel.drain(queue) == [b"bound"]
    assert not channel.inbox


def test_predeclared_exchanges_may_be_bound(
    channel: Channel, declare: Callable[..., str], queue: str, name: Callable
) -> None:
    destination, key = declare(), name("key")
    channel.bind_exchange(destination, "amq.direct", key)
    channel.bind(queue, destination)
    channel.publish(key, b"hello", exchange="amq.direct")
    assert channel.drain(queue) == [b"hello"]


def test_a_deleted_source_takes_its_bindings_with_it(
    channel: Channel, declare: Callable[..., str], queue: str
) -> None:
    source, destination = declare(), declare()
    channel.bind_exchange(destination, source)
    channel.bind(queue, destination)
    channel.call(spec.Exchange.Delete(exchange=source))
    channel.declare_exchange(source, "fanout")
    channel.publish("", b"through the new", exchange=source)
    channel.publish("", b"to the old", exchange=destination)
    assert channel.drain(queue) == [b"to the old"]
