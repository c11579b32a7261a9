"""Alternate exchanges: what an exchange can't route goes to another one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.support.wire import Channel


@pytest.fixture
def declare(channel: Channel, name: Callable) -> Callable[..., str]:
    """Declare an exchange, with an alternate one if it is named."""

    def declare(type: str = "direct", *, alternate: str | None = None, called: str = "") -> str:
        called = called or name(type)
        arguments = None if alternate is None else {"alternate-exchange": alternate}
        channel.declare_exchange(called, type, arguments=arguments)
        return called

    return declare


@pytest.fixture
def queue(channel: Channel, name: Callable) -> str:
    return channel.declare(name("queue")).queue


@pytest.fixture
def rest(channel: Channel, name: Callable) -> str:
    """The queue of last resort."""
    return channel.declare(name("rest")).queue


def test_only_what_finds_no_binding_goes_to_the_alternate_exchange(
    channel: Channel, declare: Callable[..., str], queue: str, rest: str
) -> None:
    alternate = declare("fanout")
    exchange = declare(alternate=alternate)
    channel.bind(queue, exchange, "key")
    channel.bind(rest, alternate)
    channel.publish("key", b"routed", exchange=exchange)
    channel.publish("other", b"unrouted", exchange=exchange)
    assert channel.drain(queue) == [b"routed"]
    assert channel.drain(rest) == [b"unrouted"]


@pytest.mark.parametrize("type", ["direct", "fanout", "topic", "headers", "x-consistent-hash"])
def test_every_type_may_have_one(
    channel: Channel, declare: Callable[..., str], rest: str, type: str
) -> None:
    alternate = declare("fanout")
    channel.bind(rest, alternate)
    channel.publish("key", b"unrouted", exchange=declare(type, alternate=alternate))
    assert channel.drain(rest) == [b"unrouted"]


def test_the_message_keeps_the_name_of_its_exchange_and_its_key(
    channel: Channel, declare: Callable[..., str], rest: str
) -> None:
    alternate = declare("topic")
    exchange = declare(alternate=alternate)
    channel.bind(rest, alternate, "a.#")
    channel.publish("a.b", b"unrouted", exchange=exchange)
    message = channel.get(rest)
    assert message is not None
    assert (message.method.exchange, message.method.routing_key) == (exchange, "a.b")


def test_alternate_exchanges_may_follow_each_other(
    channel: Channel, declare: Callable[..., str], rest: str
) -> None:
    third = declare("fanout")
    second = declare(alternate=third)
    first = declare(alternate=second)
    channel.bind(rest, third)
    channel.publish("key", b"unrouted", exchange=first)
    assert channel.drain(rest) == [b"unrouted"]


def test_a_chain_ends_where_a_binding_is_found(
    channel: Channel, declare: Callable[..., str], queue: str, rest: str
) -> None:
    third = declare("fanout")
    second = declare(alternate=third)
    first = declare(alternate=second)
    channel.bind(queue, second, "key")
    channel.bind(rest, third)
    channel.publish("key", b"hello", exchange=first)
    assert channel.drain(queue) == [b"hello"]
    assert channel.drain(rest) == []


def test_a_circle_of_alternate_exchanges_ends(
    channel: Channel, declare: Callable[..., str], name: Callable
) -> None:
    first = name("first")
    second = declare(alternate=first)
    declare(alternate=second, called=first)
    channel.publish("key", b"hello", exchange=first, mandatory=True)
    assert channel.expect(spec.Basic.Return).method.reply_code == 312


def test_an_exchange_may_be_its_own_alternate(
    channel: Channel, declare: Callable[..., str], name: Callable
) -> None:
    exchange = name("own")
    declare(alternate=exchange, called=exchange)
    channel.publish("key", b"hello", exchange=exchange, mandatory=True)
    assert channel.expect(spec.Basic.Return).method.reply_code == 312


def test_a_mandatory_message_that_the_alternate_exchange_routes_is_not_returned(
    channel: Channel, declare: Callable[..., str], rest: str
) -> None:
    alternate = declare("fanout")
    exchange = declare(alternate=alternate)
    channel.bind(rest, alternate)
    channel.confirm()
    channel.publish("key", b"hello", exchange=exchange, mandatory=True)
    assert channel.expect(spec.Basic.Return, spec.Basic.Ack).NAME == "Basic.Ack"
    assert channel.drain(rest) == [b"hello"]


def test_a_mandatory_message_that_nobody_routes_is_returned_by_its_own_exchange(
    channel: Channel, declare: Callable[..., str]
) -> None:
    exchange = declare(alternate=declare("fanout"))
    channel.publish("key", b"hello", exchange=exchange, mandatory=True)
    returned = channel.expect(spec.Basic.Return)
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.method.exchange, returned.method.routing_key) == (exchange, "key")


def test_the_alternate_exchange_need_not_be_there(
    channel: Channel, declare: Callable[..., str], name: Callable
) -> None:
    exchange = declare(alternate=name("missing"))
    channel.publish("key", b"hello", exchange=exchange)
    channel.publish("key", b"hello", exchange=exchange, mandatory=True)
    assert channel.expect(spec.Basic.Return).method.reply_code == 312


def test_the_alternate_exchange_may_be_declared_later(
    channel: Channel, declare: Callable[..., str], name: Callable, rest: str
) -> None:
    alternate = name("later")
    exchange = declare(alternate=alternate)
    channel.publish("key", b"too early", exchange=exchange)
    declare("fanout", called=alternate)
    channel.bind(rest, alternate)
    channel.publish("key", b"in time", exchange=exchange)
    assert channel.drain(rest) == [b"in time"]


def test_an_internal_exchange_may_be_the_alternate(
    channel: Channel, declare: Callable[..., str], name: Callable, rest: str
) -> None:
    alternate = name("internal")
    channel.declare_exchange(alternate, "fanout", internal=True)
    channel.bind(rest, alternate)
    channel.publish("key", b"hello", exchange=declare(alternate=alternate))
    assert channel.drain(rest) == [b"hello"]


def test_a_matching_binding_to_an_exchange_counts_as_routed_even_if_it_leads_nowhere(
    channel: Channel, declare: Callable[..., str], rest: str
) -> None:
    alternate, nowhere = declare("fanout"), declare("direct")
    exchange = declare("fanout", alternate=alternate)
    channel.bind(rest, alternate)
    channel.bind_exchange(nowhere, exchange)
    channel.publish("key", b"hello", exchange=exchange, mandatory=True)
    assert channel.expect(spec.Basic.Return).method.reply_code == 312
    assert channel.drain(rest) == []


def test_an_exchange_on_the_way_uses_its_own_alternate(
    channel: Channel, declare: Callable[..., str], rest: str
) -> None:
    alternate = declare("fanout")
    inner = declare(alternate=alternate)
    outer = declare("fanout")
    channel.bind_exchange(inner, outer)
    channel.bind(rest, alternate)
    channel.publish("key", b"hello", exchange=outer)
    assert channel.drain(rest) == [b"hello"]


def test_a_queue_reached_by_a_binding_and_by_an_alternate_gets_one_copy(
    channel: Channel, declare: Callable[..., str], queue: str
) -> None:
    alternate = declare("fanout")
    inner = declare(alternate=alternate)
    outer = declare("fanout")
    channel.bind_exchange(inner, outer)
    channel.bind(queue, outer)
    channel.bind(queue, alternate)
    channel.publish("key", b"hello", exchange=outer)
    assert channel.drain(queue) == [b"hello"]


def test_the_default_exchange_is_no_use_as_alternate(
    channel: Channel, declare: Callable[..., str], queue: str
) -> None:
    channel.publish(queue, b"hello", exchange=declare(alternate=""))
    assert channel.drain(queue) == []


def test_a_deleted_alternate_exchange_is_simply_not_there(
    channel: Channel, declare: Callable[..., str], rest: str
) -> None:
    alternate = declare("fanout")
    exchange = declare(alternate=alternate)
    channel.bind(rest, alternate)
    channel.call(spec.Exchange.Delete(exchange=alternate, if_unused=False))
    channel.publish("key", b"hello", exchange=exchange)
    assert channel.drain(rest) == []
