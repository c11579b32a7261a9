"""Auto-delete queues: gone with the last of their consumers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.contract.queues.steps import exists, fill, wait_gone
from tests.support.wire import Channel, Connection


@pytest.fixture
def fleeting(queue_with: Callable[..., str]) -> str:
    return queue_with(auto_delete=True)


def test_it_goes_when_the_last_consumer_is_cancelled(channel: Channel, fleeting: str) -> None:
    first, second = channel.consume(fleeting), channel.consume(fleeting)
    channel.cancel(first)
    assert exists(channel, fleeting)
    channel.cancel(second)
    wait_gone(channel, fleeting)


def test_it_goes_when_the_last_consumers_channel_closes(channel: Channel, fleeting: str) -> None:
    other = channel.connection.channel()
    other.consume(fleeting)
    other.close()
    wait_gone(channel, fleeting)


@pytest.mark.parametrize("end", [Connection.close, Connection.drop], ids=["closed", "cut"])
def test_it_goes_with_the_last_consumers_connection(
    channel: Channel,
    fleeting: str,
    connect: Callable[..., Connection],
    end: Callable[[Connection], None],
) -> None:
    other = connect()
    other.channel().consume(fleeting)
    end(other)
    wait_gone(channel, fleeting)


def test_it_stays_while_it_never_had_a_consumer(
    channel: Channel, fleeting: str, connect: Callable[..., Connection]
) -> None:
    fill(channel, fleeting, "a")
    channel.get(fleeting)
    channel.connection.close()
    assert exists(connect().channel(), fleeting)


def test_it_goes_with_all_its_messages(channel: Channel, queue_with: Callable[..., str]) -> None:
    queue = queue_with(auto_delete=True, durable=True)
    channel.qos(1)
    fill(channel, queue, "abc", delivery_mode=2)
    tag = channel.consume(queue)
    held = channel.delivery()
    channel.cancel(tag)
    wait_gone(channel, queue)
    channel.ack(held.tag)
    assert channel.declare(queue, auto_delete=True, durable=True).message_count == 0
