"""Many messages in a row that differ in their bodies alone, and what changes in the middle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pika import spec

from tests.support.eventually import eventually
from tests.support.wire import Channel, Connection

BODIES = [b"body %d" % number * (number % 3 + 1) for number in range(20)]


def send(channel: Channel, bodies: Sequence[bytes], key: str, exchange: str = "") -> None:
    """All of them in one piece."""
    frames = [channel.publishing(key, body, exchange=exchange) for body in bodies]
    channel.connection.wire.send(b"".join(frames))


@pytest.fixture
def queue(channel: Channel, name: Callable) -> str:
    return channel.declare(name("queue")).queue


def test_all_arrive_in_order_and_are_confirmed(channel: Channel, queue: str) -> None:
    channel.confirm()
    send(channel, BODIES, queue)
    assert channel.wait_confirms(20) == dict.fromkeys(range(1, 21), "ack")
    assert channel.drain(queue) == BODIES


def test_a_binding_that_goes_in_between_is_gone(
    channel: Channel, queue: str, name: Callable
) -> None:
    exchange = name("exchange")
    channel.declare_exchange(exchange)
    channel.bind(queue, exchange, "key")
    send(channel, BODIES, "key", exchange)
    channel.unbind(queue, exchange, "key")
    send(channel, BODIES, "key", exchange)
    channel.sync()
    assert channel.drain(queue) == BODIES


def test_a_binding_that_comes_in_between_counts(
    channel: Channel, queue: str, name: Callable
) -> None:
    exchange, late = name("exchange"), channel.declare(name("late")).queue
    channel.declare_exchange(exchange)
    channel.bind(queue, exchange, "key")
    send(channel, BODIES, "key", exchange)
    channel.bind(late, exchange, "key")
    send(channel, BODIES[:7], "key", exchange)
    channel.sync()
    assert channel.drain(queue) == BODIES + BODIES[:7]
    assert channel.drain(late) == BODIES[:7]


def test_a_queue_that_another_client_makes_anew_gets_the_rest(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    send(channel, BODIES, queue)
    channel.sync()
    other = connect().channel()
    other.call(spec.Queue.Delete(queue=queue))
    other.declare(queue)
    send(channel, BODIES[:5], queue)
    channel.sync()
    assert channel.drain(queue) == BODIES[:5]


def test_a_transaction_that_begins_in_between_holds_them_back(channel: Channel, queue: str) -> None:
    send(channel, BODIES, queue)
    channel.call(spec.Tx.Select())
    send(channel, BODIES[:4], queue)
    # RabbitMQ's queue answers this question before it takes what was sent earlier.
    eventually(lambda: channel.count(queue) >= 20)
    assert channel.count(queue) == 20
    channel.call(spec.Tx.Commit())
    assert channel.drain(queue) == BODIES + BODIES[:4]


def test_a_full_queue_refuses_what_is_too_much(channel: Channel, name: Callable) -> None:
    arguments: dict[str, Any] = {"x-max-length": 12, "x-overflow": "reject-publish"}
    queue = channel.declare(name("queue"), arguments=arguments).queue
    channel.confirm()
    send(channel, BODIES, queue)
    said = channel.wait_confirms(20)
    assert [said[tag] for tag in range(1, 21)] == ["ack"] * 12 + ["nack"] * 8
    assert channel.drain(queue) == BODIES[:12]


def test_every_queue_of_a_fan_out_gets_all(channel: Channel, queue: str, name: Callable) -> None:
    exchange, second = name("exchange"), channel.declare(name("second")).queue
    channel.declare_exchange(exchange, "fanout")
    for each in (queue, second):
        channel.bind(each, exchange)
    send(channel, BODIES, "any", exchange)
    channel.sync()
    assert channel.drain(queue) == channel.drain(second) == BODIES


def test_two_channels_in_turn_keep_their_own_ways(
    channel: Channel, queue: str, name: Callable
) -> None:
    second = channel.connection.channel()
    other = second.declare(name("other")).queue
    for body in BODIES[:3]:
        frames = [channel.publishing(queue, body)] * 3 + [second.publishing(other, body)]
        channel.connection.wire.send(b"".join(frames))
    second.sync()
    channel.sync()
    assert channel.drain(queue) == [body for body in BODIES[:3] for _ in range(3)]
    assert second.drain(other) == BODIES[:3]
