"""Fanout exchanges: a copy for every bound queue, whatever the key."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.wire import Channel


@pytest.fixture
def exchange(channel: Channel, name: Callable) -> str:
    exchange = name("fanout")
    channel.declare_exchange(exchange, "fanout")
    return exchange


def test_every_bound_queue_gets_one_copy(channel: Channel, name: Callable, exchange: str) -> None:
    queues = [channel.declare(name("queue")).queue for _ in range(5)]
    for queue in queues:
        channel.bind(queue, exchange)
    channel.publish("", b"hello", exchange=exchange)
    assert [channel.drain(queue) for queue in queues] == [[b"hello"]] * 5


@pytest.mark.parametrize("key", ["", "key", "other", "#"])
def test_keys_are_ignored(channel: Channel, name: Callable, exchange: str, key: str) -> None:
    queue = channel.declare(name("queue")).queue
    channel.bind(queue, exchange, "key")
    channel.publish(key, b"hello", exchange=exchange)
    message = channel.get(queue)
    assert message is not None
    assert (message.method.exchange, message.method.routing_key) == (exchange, key)


def test_a_queue_bound_by_several_keys_gets_one_copy(
    channel: Channel, name: Callable, exchange: str
) -> None:
    queue = channel.declare(name("queue")).queue
    for key in ("", "one", "two"):
        channel.bind(queue, exchange, key)
    channel.publish("one", b"hello", exchange=exchange)
    assert channel.drain(queue) == [b"hello"]


def test_a_queue_stays_bound_until_its_last_binding_goes(
    channel: Channel, name: Callable, exchange: str
) -> None:
    queue = channel.declare(name("queue")).queue
    channel.bind(queue, exchange, "one")
    channel.bind(queue, exchange, "two")
    channel.unbind(queue, exchange, "one")
    channel.publish("", b"still bound", exchange=exchange)
    channel.unbind(queue, exchange, "two")
    channel.publish("", b"lost", exchange=exchange)
    assert channel.drain(queue) == [b"still bound"]


def test_a_queue_bound_later_gets_only_what_comes_later(
    channel: Channel, name: Callable, exchange: str
) -> None:
    queue = channel.declare(name("queue")).queue
    channel.publish("", b"early", exchange=exchange)
    channel.bind(queue, exchange)
    channel.publish("", b"late", exchange=exchange)
    assert channel.drain(queue) == [b"late"]


def test_the_copies_are_independent_of_each_other(
    channel: Channel, name: Callable, exchange: str
) -> None:
    taken, kept = channel.declare(name("taken")).queue, channel.declare(name("kept")).queue
    channel.bind(taken, exchange)
    channel.bind(kept, exchange)
    channel.publish("", b"hello", exchange=exchange, headers={"n": 1})
    assert channel.drain(taken) == [b"hello"]
    message = channel.get(kept)
    assert message is not None
    assert (message.body, message.properties.headers) == (b"hello", {"n": 1})
    assert message.method.redelivered is False


def test_the_predeclared_fanout_exchange_routes(channel: Channel, name: Callable) -> None:
    queue = channel.declare(name("queue")).queue
    channel.bind(queue, "amq.fanout")
    channel.publish("any", b"hello", exchange="amq.fanout")
    # Other tests may use the same exchange at the same time.
    assert b"hello" in channel.drain(queue)
