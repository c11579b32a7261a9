"""Publishes that are refused: what closes, with what words, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import frame, spec

from tests.support.wire import Channel, Connection


@pytest.fixture
def queue(channel: Channel, name: Callable) -> str:
    return channel.declare(name("queue")).queue


# -- the exchange ----------------------------------------------------------------------------
@pytest.mark.parametrize("mandatory", [False, True])
def test_a_missing_exchange_closes_the_channel(
    channel: Channel, name: Callable, mandatory: bool
) -> None:
    exchange = name("missing")
    channel.publish("key", b"hello", exchange=exchange, mandatory=mandatory)
    text = f"NOT_FOUND - no exchange '{exchange}' in vhost '/'"
    assert channel.expect_closed().args == ("channel", 404, text, 60, 40)


def test_a_publish_to_an_internal_exchange_closes_the_channel(
    channel: Channel, name: Callable
) -> None:
    exchange = name("internal")
    channel.declare_exchange(exchange, "fanout", internal=True)
    channel.publish("key", b"hello", exchange=exchange)
    text = f"ACCESS_REFUSED - cannot publish to internal exchange '{exchange}' in vhost '/'"
    assert channel.expect_closed().args == ("channel", 403, text, 60, 40)


def test_line_ends_are_not_taken_out_of_a_published_exchange_name(
    channel: Channel, name: Callable
) -> None:
    exchange = name("exchange")
    channel.declare_exchange(exchange + "\n", "fanout")  # here they are
    channel.publish("key", b"hello", exchange=exchange)
    channel.publish("key", b"hello", exchange=exchange + "\n")
    text = f"NOT_FOUND - no exchange '{exchange}\n' in vhost '/'"
    assert channel.expect_closed().args == ("channel", 404, text, 60, 40)


def test_immediate_closes_the_connection(channel: Channel, queue: str) -> None:
    channel.publish(queue, b"hello", immediate=True)
    text = "NOT_IMPLEMENTED - immediate=true"
    assert channel.connection.expect_closed().args == ("connection", 540, text, 60, 40)


def test_immediate_is_looked_at_before_the_exchange(channel: Channel, name: Callable) -> None:
    channel.publish("key", b"hello", exchange=name("missing"), immediate=True)
    assert channel.connection.expect_closed().code == 540


def test_what_is_wrong_is_looked_at_in_a_fixed_order(channel: Channel, name: Callable) -> None:
    internal, plain = name("internal"), name("plain")
    channel.declare_exchange(internal, "fanout", internal=True)
    channel.declare_exchange(plain, "fanout")
    wrong = {
        "reply_to": "amq.rabbitmq.reply-to",
        "user_id": "bob",
        "expiration": "soon",
        "headers": {"CC": 1},
        "delivery_mode": 9,
    }
    channel.publish("key", exchange=internal, **wrong)
    said = [channel.expect_closed().text]
    while wrong:
        channel = channel.connection.channel()
        channel.publish("key", exchange=plain, **wrong)
        said.append(channel.expect_closed().text)
        del wrong[next(iter(wrong))]
    words = ["internal", "fast reply", "user_id", "expiration", '"CC"', "delivery_mode"]
    for text, word in zip(said, words, strict=True):
        assert word in text


# -- the rest of the pipeline ----------------------------------------------------------------
def test_what_was_published_before_the_refused_message_is_kept(
    channel: Channel, queue: str, name: Callable
) -> None:
    for number in range(10):
        channel.publish(queue, str(number).encode())
    channel.publish("key", b"refused", exchange=name("missing"))
    assert channel.expect_closed().code == 404
    again = channel.connection.channel()
    assert again.drain(queue) == [str(number).encode() for number in range(10)]


def test_what_comes_after_the_refused_message_is_ignored(
    channel: Channel, queue: str, name: Callable
) -> None:
    channel.publish("key", b"refused", exchange=name("missing"))
    for _ in range(10):
        channel.publish(queue, b"ignored")
    channel.send(spec.Queue.Purge(queue="no-such-queue"))
    assert channel.expect_closed().code == 404  # one close, for the first reason
    again = channel.connection.channel(channel.number)
    again.publish(queue, b"after")
    assert again.drain(queue) == [b"after"]


def test_the_body_of_a_refused_message_is_swallowed(
    channel: Channel, queue: str, name: Callable
) -> None:
    channel.publish("key", b"x" * 500_000, exchange=name("missing"))
    assert channel.expect_closed().code == 404
    again = channel.connection.channel(channel.number)
    again.publish(queue, b"after")
    assert again.drain(queue) == [b"after"]


def test_the_message_is_judged_when_it_is_whole(channel: Channel, name: Callable) -> None:
    exchange = name("late")
    method = spec.Basic.Publish(exchange=exchange, routing_key="key")
    header = frame.Header(channel.number, 4, spec.BasicProperties())
    channel.connection.wire.send(frame.Method(channel.number, method).marshal() + header.marshal())
    channel.connection.wire.send(frame.Body(channel.number, b"ha").marshal())
    other = channel.connection.channel()
    other.declare_exchange(exchange, "fanout")
    channel.connection.wire.send(frame.Body(channel.number, b"lf").marshal())
    channel.sync()  # the exchange was there in time


def test_the_other_channels_of_the_connection_go_on(
    connect: Callable[..., Connection], queue: str, name: Callable
) -> None:
    connection = connect()
    bad, good = connection.channel(), connection.channel()
    good.consume(queue, no_ack=True)
    bad.publish("key", b"refused", exchange=name("missing"))
    good.publish(queue, b"hello")
    assert bad.expect_closed().code == 404
    assert good.delivery().body == b"hello"


def test_a_channel_closed_by_the_broker_gives_its_messages_back(
    channel: Channel, connect: Callable[..., Connection], queue: str, name: Callable
) -> None:
    channel.consume(queue)
    channel.publish(queue, b"hello")
    assert channel.delivery().method.redelivered is False
    channel.publish("key", b"refused", exchange=name("missing"))
    channel.expect_closed()
    other = connect().channel()
    other.consume(queue, no_ack=True)
    message = other.delivery()
    assert (message.body, message.method.redelivered) == (b"hello", True)


def test_publishing_on_a_channel_that_was_never_opened_closes_the_connection(
    connect: Callable[..., Connection],
) -> None:
    connection = connect()
    Channel(connection, 7).publish("key", b"hello")
    text = "CHANNEL_ERROR - expected 'channel.open'"
    assert connection.expect_closed().args == ("connection", 504, text, 60, 40)


def test_a_refusal_is_seen_by_the_client_that_publishes_and_no_other(
    channel: Channel, connect: Callable[..., Connection], name: Callable
) -> None:
    bystander = connect().channel()
    channel.publish("key", b"refused", immediate=True)
    assert channel.connection.expect_closed().code == 540
    bystander.sync()


# -- nothing wrong ---------------------------------------------------------------------------
def test_a_message_for_nobody_is_dropped_and_the_channel_goes_on(
    channel: Channel, queue: str
) -> None:
    for exchange in ("", "amq.direct", "amq.topic", "amq.headers"):
        channel.publish("nowhere", b"lost", exchange=exchange)
    channel.publish(queue, b"hello")
    assert channel.drain(queue) == [b"hello"]


def test_a_message_that_two_bindings_bring_to_a_queue_comes_once(
    channel: Channel, queue: str, name: Callable
) -> None:
    exchange = name("topic")
    channel.declare_exchange(exchange, "topic")
    channel.bind(queue, exchange, "a.*")
    channel.bind(queue, exchange, "*.b")
    channel.publish("a.b", b"once", exchange=exchange)
    assert channel.drain(queue) == [b"once"]
