"""The redelivered flag: set on every message that somebody may have seen before."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.consumers.steps import drain, fill, take, wait_ready, word
from tests.support.wire import Channel, Connection, Message


def flags(messages: list[Message]) -> dict[str, bool]:
    return {word([message]): message.method.redelivered for message in messages}


def give_back(channel: Channel, how: str) -> None:
    """Give the one unacked message of this channel back."""
    ways = {
        "reject": lambda: channel.reject(1),
        "nack": lambda: channel.nack(1),
        "recover": lambda: channel.call(spec.Basic.Recover(requeue=True)),
        "recover-async": lambda: channel.send(spec.Basic.RecoverAsync(requeue=True)),
        "channel close": channel.close,
        "channel error": lambda: channel.refused(spec.Basic.Ack(99)),
        "connection close": channel.connection.close,
        "connection loss": channel.connection.drop,
    }
    ways[how]()


WAYS = [
    "reject",
    "nack",
    "recover",
    "recover-async",
    "channel close",
    "channel error",
    "connection close",
    "connection loss",
]


def test_a_first_delivery_is_not_flagged(channel: Channel, queue: str) -> None:
    channel.consume(queue)
    fill(channel, queue, "ab")
    assert flags(channel.deliveries(2)) == {"a": False, "b": False}


@pytest.mark.parametrize("how", WAYS)
def test_a_got_message_is_flagged_after(
    channel: Channel, queue: str, connect: Callable[..., Connection], how: str
) -> None:
    holder = connect().channel()
    fill(channel, queue, "ab")
    take(holder, queue, 1)
    give_back(holder, how)
    wait_ready(channel, queue, 2)
    assert flags(drain(channel, queue)) == {"a": True, "b": False}


@pytest.mark.parametrize("how", WAYS[4:])
def test_a_consumed_message_is_flagged_after(
    channel: Channel, queue: str, connect: Callable[..., Connection], how: str
) -> None:
    holder = connect().channel()
    holder.qos(1)
    holder.consume(queue)
    fill(channel, queue, "ab")
    holder.delivery()
    give_back(holder, how)
    wait_ready(channel, queue, 2)
    channel.consume(queue)
    assert flags(channel.deliveries(2)) == {"a": True, "b": False}


def test_what_was_sent_but_never_read_by_the_client_is_flagged(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    blind = connect()
    blind.channel().consume(queue)
    fill(channel, queue, "abc")
    wait_ready(channel, queue, 0)
    blind.drop()
    wait_ready(channel, queue, 3)
    assert flags(drain(channel, queue)) == {"a": True, "b": True, "c": True}


def test_the_flag_stays(channel: Channel, queue: str) -> None:
    fill(channel, queue, "a")
    for tag in (1, 2, 3):
        assert flags(take(channel, queue, 1)) == {"a": tag > 1}
        channel.nack(tag)


def test_a_copy_in_another_queue_is_not_flagged(
    channel: Channel, queue: str, name: Callable[[str], str]
) -> None:
    second = channel.declare(name("second")).queue
    for target in (queue, second):
        channel.bind(target, "amq.fanout")
    channel.publish(exchange="amq.fanout", body=b"a")
    take(channel, queue, 1)
    channel.nack(1)
    assert flags(drain(channel, queue)) == {"a": True}
    assert flags(drain(channel, second)) == {"a": False}
