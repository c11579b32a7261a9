"""Deleting exchanges."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.support.wire import Channel, Connection


@pytest.fixture
def exchange(channel: Channel, name: Callable) -> str:
    exchange = name("exchange")
    channel.declare_exchange(exchange, "fanout")
    return exchange


def test_a_deleted_exchange_is_gone(channel: Channel, exchange: str) -> None:
    assert channel.call(spec.Exchange.Delete(exchange=exchange)).NAME == "Exchange.DeleteOk"
    assert channel.refused(spec.Exchange.Declare(exchange=exchange, passive=True)).code == 404


def test_publishing_to_a_deleted_exchange_is_refused(channel: Channel, exchange: str) -> None:
    channel.publish("", exchange=exchange)
    channel.call(spec.Exchange.Delete(exchange=exchange))
    channel.publish("", exchange=exchange)
    text = f"NOT_FOUND - no exchange '{exchange}' in vhost '/'"
    assert channel.expect_closed().args == ("channel", 404, text, 60, 40)


@pytest.mark.parametrize("if_unused", [False, True])
def test_deleting_a_missing_exchange_is_no_error(
    channel: Channel, name: Callable, if_unused: bool
) -> None:
    answer = channel.call(spec.Exchange.Delete(exchange=name("missing"), if_unused=if_unused))
    assert answer.NAME == "Exchange.DeleteOk"


def test_an_exchange_in_use_is_not_deleted_if_unused(
    channel: Channel, name: Callable, exchange: str
) -> None:
    queue = channel.declare(name("queue")).queue
    channel.bind(queue, exchange)
    refusal = channel.refused(spec.Exchange.Delete(exchange=exchange, if_unused=True))
    text = f"PRECONDITION_FAILED - exchange '{exchange}' in vhost '/' in use"
    assert refusal.args == ("channel", 406, text, 40, 20)
    again = channel.connection.channel()
    again.publish("", b"still there", exchange=exchange)
    assert again.drain(queue) == [b"still there"]


def test_a_binding_to_an_exchange_counts_as_use(
    channel: Channel, name: Callable, exchange: str
) -> None:
    destination = name("destination")
    channel.declare_exchange(destination)
    channel.bind_exchange(destination, exchange)
    refusal = channel.refused(spec.Exchange.Delete(exchange=exchange, if_unused=True))
    text = f"PRECONDITION_FAILED - exchange '{exchange}' in vhost '/' in use"
    assert refusal.args == ("channel", 406, text, 40, 20)


def test_a_binding_from_an_exchange_does_not_count_as_use(
    channel: Channel, name: Callable, exchange: str
) -> None:
    source = name("source")
    channel.declare_exchange(source)
    channel.bind_exchange(exchange, source)
    channel.call(spec.Exchange.Delete(exchange=exchange, if_unused=True))
    assert channel.refused(spec.Exchange.Declare(exchange=exchange, passive=True)).code == 404


def test_an_unused_exchange_is_deleted_if_unused(channel: Channel, exchange: str) -> None:
    channel.call(spec.Exchange.Delete(exchange=exchange, if_unused=True))
    assert channel.refused(spec.Exchange.Declare(exchange=exchange, passive=True)).code == 404


def test_deleting_takes_the_bindings_and_leaves_the_queue(
    channel: Channel, name: Callable, exchange: str
) -> None:
    queue = channel.declare(name("queue")).queue
    channel.bind(queue, exchange)
    channel.publish("", b"before", exchange=exchange)
    channel.call(spec.Exchange.Delete(exchange=exchange))
    channel.declare_exchange(exchange, "fanout")
    channel.publish("", b"after", exchange=exchange)
    assert channel.drain(queue) == [b"before"]


def test_a_deleted_name_may_be_used_for_another_type(channel: Channel, exchange: str) -> None:
    channel.call(spec.Exchange.Delete(exchange=exchange))
    channel.declare_exchange(exchange, "topic", durable=True)


def test_deleting_a_destination_ends_its_bindings(
    channel: Channel, name: Callable, exchange: str
) -> None:
    source = name("source")
    channel.declare_exchange(source, "fanout")
    channel.bind_exchange(exchange, source)
    channel.call(spec.Exchange.Delete(exchange=exchange))
    channel.publish("", b"hello", exchange=source, mandatory=True)
    assert channel.expect(spec.Basic.Return).method.reply_code == 312


def test_a_no_wait_deletion_has_no_answer(channel: Channel, exchange: str) -> None:
    channel.send(spec.Exchange.Delete(exchange=exchange, nowait=True))
    channel.sync()
    assert not channel.inbox
    assert channel.refused(spec.Exchange.Declare(exchange=exchange, passive=True)).code == 404


@pytest.mark.parametrize(
    "exchange",
    ["amq.direct", "amq.topic", "amq.none", pytest.param("amq.rabbitmq.trace", id="trace")],
)
def test_system_exchanges_can_not_be_deleted(channel: Channel, exchange: str) -> None:
    refusal = channel.refused(spec.Exchange.Delete(exchange=exchange))
    text = f"ACCESS_REFUSED - deletion of system exchange '{exchange}' in vhost '/' not allowed"
    assert refusal.args == ("channel", 403, text, 40, 20)


def test_an_exchange_outlives_the_connection_that_declared_it(
    connect: Callable[..., Connection], name: Callable
) -> None:
    exchange, first = name("exchange"), connect()
    first.channel().declare_exchange(exchange)
    first.close()
    connect().channel().declare_exchange(exchange)
