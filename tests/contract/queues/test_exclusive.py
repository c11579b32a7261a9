"""Exclusive queues: one connection's own, gone with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import amqp_object, spec

from tests.contract.queues.steps import (
    BIND,
    CONSUME,
    DECLARE,
    DELETE,
    GET,
    PURGE,
    UNBIND,
    drain,
    locked,
    no_queue,
    wait_gone,
    words,
)
from tests.support.wire import Channel, Connection

Connect = Callable[..., Connection]


@pytest.fixture
def own(channel: Channel, name: Callable[[str], str]) -> str:
    """An exclusive queue of ``channel``'s connection, bound to amq.direct by its name."""
    queue = channel.declare(name("own"), exclusive=True).queue
    channel.bind(queue, "amq.direct", queue)
    return queue


@pytest.mark.parametrize(
    ("method", "ids", "options"),
    [
        (spec.Queue.Declare, DECLARE, {"exclusive": True}),
        (spec.Queue.Declare, DECLARE, {}),
        (spec.Queue.Declare, DECLARE, {"passive": True}),
        (spec.Queue.Declare, DECLARE, {"durable": True, "arguments": {"x-max-length": 1}}),
        (spec.Queue.Bind, BIND, {"exchange": "amq.direct", "routing_key": "key"}),
        (spec.Queue.Purge, PURGE, {}),
        (spec.Queue.Delete, DELETE, {}),
        (spec.Basic.Get, GET, {}),
        (spec.Basic.Consume, CONSUME, {}),
    ],
)
def test_another_connection_is_locked_out(
    own: str,
    connect: Connect,
    method: type[amqp_object.Method],
    ids: tuple[int, int],
    options: dict[str, object],
) -> None:
    refusal = connect().channel().refused(method(queue=own, **options))
    assert words(refusal) == ("channel", 405, locked(own), ids)


def test_another_connection_may_not_unbind_it(own: str, connect: Connect) -> None:
    method = spec.Queue.Unbind(queue=own, exchange="amq.direct", routing_key=own)
    refusal = connect().channel().refused(method)
    assert words(refusal) == ("channel", 405, locked(own), UNBIND)


def test_another_connection_may_publish_to_it(channel: Channel, own: str, connect: Connect) -> None:
    other = connect().channel()
    other.publish(own, b"a")
    other.publish(own, b"b", exchange="amq.direct")
    other.sync()
    assert drain(channel, own) == "ab"


def test_other_channels_of_the_connection_may_use_it(channel: Channel, own: str) -> None:
    other = channel.connection.channel()
    assert other.declare(own, exclusive=True).queue == own
    other.consume(own)
    channel.publish(own, b"a")
    assert other.delivery().body == b"a"


def test_it_outlives_the_channel_that_declared_it(channel: Channel, own: str) -> None:
    other = channel.connection.channel()
    channel.close()
    assert other.declare(own, passive=True).queue == own


def test_it_is_gone_when_its_connection_has_closed(
    channel: Channel, connect: Connect, name: Callable[[str], str]
) -> None:
    queue = name("own")
    owner = connect()
    owner.channel().declare(queue, exclusive=True)
    owner.close()
    refusal = channel.refused(spec.Queue.Declare(queue=queue, passive=True))
    assert words(refusal) == ("channel", 404, no_queue(queue), DECLARE)


def test_it_is_gone_when_its_connection_is_cut(
    channel: Channel, connect: Connect, name: Callable[[str], str]
) -> None:
    queue = name("own")
    owner = connect()
    owner.channel().declare(queue, exclusive=True, durable=True)
    owner.drop()
    wait_gone(channel, queue)


def test_the_next_connection_may_declare_it_after_the_first_has_closed(
    channel: Channel, connect: Connect, name: Callable[[str], str]
) -> None:
    queue = name("own")
    owner = connect()
    owner.channel().declare(queue, exclusive=True)
    owner.channel().publish(queue, b"a")
    owner.close()
    assert channel.declare(queue, exclusive=True).message_count == 0


def test_its_bindings_are_gone_with_it(
    channel: Channel, connect: Connect, name: Callable[[str], str]
) -> None:
    queue = name("own")
    owner = connect()
    owner.channel().declare(queue, exclusive=True)
    owner.channels[1].bind(queue, "amq.direct", queue)
    owner.close()
    channel.publish(queue, b"a", exchange="amq.direct", mandatory=True)
    assert channel.expect(spec.Basic.Return).method.reply_code == 312
