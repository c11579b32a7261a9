"""What a channel or a connection held goes back to its queue when it ends, however it ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.consumers.steps import (
    drain,
    fill,
    take,
    wait_consumers,
    wait_ready,
    word,
)
from tests.support.wire import Channel, Connection

ENDS: dict[str, Callable[[Channel], object]] = {
    "channel close": lambda channel: channel.close(),
    "channel error": lambda channel: channel.refused(spec.Basic.Ack(99)),
    "connection close": lambda channel: channel.connection.close(),
    "connection error": lambda channel: channel.refused(spec.Basic.Qos(prefetch_size=1)),
    "socket closed": lambda channel: channel.connection.wire.close(),
    "socket reset": lambda channel: channel.connection.drop(),
}


@pytest.fixture(params=ENDS)
def end(request: pytest.FixtureRequest) -> Callable[[Channel], object]:
    return ENDS[request.param]


def test_unacked_deliveries_go_back_in_order(
    channel: Channel,
    queue: str,
    connect: Callable[..., Connection],
    end: Callable[[Channel], object],
) -> None:
    worker = connect().channel()
    worker.qos(4)
    worker.consume(queue)
    fill(channel, queue, "abcdef")
    worker.deliveries(4)
    worker.ack(2)
    assert worker.delivery().body == b"e"

    end(worker)

    wait_ready(channel, queue, 5)
    seen = drain(channel, queue)
    assert word(seen) == "acdef"
    assert [message.method.redelivered for message in seen] == [True, True, True, True, False]


def test_its_consumers_are_gone(
    channel: Channel,
    queue: str,
    connect: Callable[..., Connection],
    end: Callable[[Channel], object],
) -> None:
    worker = connect().channel()
    worker.consume(queue)
    worker.consume(queue)
    assert channel.declare(queue, passive=True).consumer_count == 2
    end(worker)
    wait_consumers(channel, queue, 0)


def test_another_consumer_gets_them_at_once(
    channel: Channel,
    queue: str,
    connect: Callable[..., Connection],
    end: Callable[[Channel], object],
) -> None:
    worker = connect().channel()
    worker.consume(queue)
    fill(channel, queue, "abc")
    worker.deliveries(3)
    channel.consume(queue)
    fill(channel, queue, "d")
    assert worker.delivery().body == b"d"

    end(worker)

    seen = channel.deliveries(4)
    assert word(seen) == "abcd"
    assert all(message.method.redelivered for message in seen)


def test_all_channels_of_a_lost_connection_give_back_to_one_order(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    connection = connect()
    channels = [connection.channel() for _ in range(3)]
    fill(channel, queue, "abcdefg")
    for turn in range(6):
        take(channels[turn % 3], queue, 1)

    connection.drop()

    wait_ready(channel, queue, 7)
    assert word(drain(channel, queue)) == "abcdefg"


def test_messages_of_several_queues_go_back_to_their_own(
    channel: Channel,
    queue: str,
    name: Callable[[str], str],
    connect: Callable[..., Connection],
) -> None:
    second = channel.declare(name("second")).queue
    connection = connect()
    worker = connection.channel()
    fill(channel, queue, "ab")
    fill(channel, second, "cd")
    for source in (second, queue, queue, second):
        take(worker, source, 1)

    connection.drop()

    for source, letters in ((queue, "ab"), (second, "cd")):
        wait_ready(channel, source, 2)
        assert word(drain(channel, source)) == letters


def test_an_ack_sent_just_before_an_orderly_close_counts(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    worker = connect().channel()
    fill(channel, queue, "abc")
    take(worker, queue, 3)
    worker.ack(2, multiple=True)
    worker.connection.close()
    wait_ready(channel, queue, 1)
    assert word(drain(channel, queue)) == "c"


def test_other_channels_of_the_connection_keep_what_they_hold(channel: Channel, queue: str) -> None:
    one, two = channel.connection.channel(), channel.connection.channel()
    fill(channel, queue, "abcd")
    take(one, queue, 1)
    take(two, queue, 2)
    one.close()
    wait_ready(channel, queue, 2)
    assert word(drain(channel, queue)) == "ad"
    two.ack(2, multiple=True)
    two.sync()


def test_a_consumer_that_comes_back_goes_on_where_it_stopped(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    done = ""
    fill(channel, queue, "abcdef")
    for turn in range(3):
        connection = connect()
        worker = connection.channel()
        worker.qos(2)
        worker.consume(queue)
        first, second = worker.deliveries(2)
        for message in (first, second):
            worker.ack(message.tag)
        worker.sync()
        done += word([first, second])
        connection.drop()
        wait_ready(channel, queue, 4 - 2 * turn)
    assert done == "abcdef"
