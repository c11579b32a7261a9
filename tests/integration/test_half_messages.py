"""Messages of which a part has arrived: they count as held, and nobody is stuck with one."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from pika import frame, spec

import warren
from tests.support.eventually import eventually
from tests.support.wire import Channel, Connection

MIB = 1 << 20
PIECE = bytes(100_000)


@pytest.fixture
def broker() -> Iterator[warren.Broker]:
    with warren.Broker.in_thread(memory_limit_bytes=4 * MIB) as broker:
        yield broker


def begin(channel: Channel, size: int, sent: int, key: str = "orders") -> None:
    """Announce a message and send a part of it."""
    number = channel.number
    octets = [
        frame.Method(number, spec.Basic.Publish(exchange="", routing_key=key)).marshal(),
        frame.Header(number, size, spec.BasicProperties()).marshal(),
        rest(channel, sent),
    ]
    channel.connection.wire.send(b"".join(octets))


def rest(channel: Channel, size: int) -> bytes:
    pieces = [PIECE[: size - at] for at in range(0, size, len(PIECE))]
    return b"".join(frame.Body(channel.number, piece).marshal() for piece in pieces)


def held(broker: warren.Broker) -> int:
    return int(broker.snapshot()["held_bytes"])


def send_in_background(connection: Connection, octets: bytes) -> threading.Thread:
    """Send what the broker may not want to read; ends with the connection."""

    def send() -> None:
        with suppress(OSError):
            connection.wire.sock.sendall(octets)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def test_half_messages_on_many_channels_raise_the_alarm(broker: warren.Broker) -> None:
    # A blocked connection is not read from: by the heartbeats it is sent its end is noticed.
    connection = Connection.open(broker.url, heartbeat=1)
    channels = [connection.channel() for _ in range(200)]
    for channel in channels:
        begin(channel, MIB, 0)
    thread = send_in_background(connection, b"".join(rest(each, 90_000) for each in channels))

    assert connection.expect(spec.Connection.Blocked).reason == "low on memory"
    assert broker.snapshot()["memory_alarm"] is True
    assert 4 * MIB < held(broker) < 6 * MIB  # and not 18 MB

    # Who waits in send keeps the socket open until then, closed or not.
    connection.wire.sock.shutdown(socket.SHUT_RDWR)
    connection.drop()
    thread.join(10)
    eventually(lambda: broker.snapshot()["memory_alarm"] is False)
    assert held(broker) == 0


def test_a_message_larger_than_the_limit_arrives(broker: warren.Broker) -> None:
    connection = Connection.open(broker.url)
    channel = connection.channel()
    channel.declare("orders", exclusive=True)
    channel.publish("orders", bytes(6 * MIB))

    message = eventually(lambda: channel.get("orders"))
    assert len(message.body) == 6 * MIB
    connection.close()


def test_publishers_that_fill_the_memory_with_halves_finish_one_after_the_other(
    broker: warren.Broker,
) -> None:
    looker = Connection.open(broker.url).channel()
    looker.declare("orders")
    publishers = [Connection.open(broker.url).channel() for _ in range(5)]
    for publisher in publishers:
        begin(publisher, MIB, MIB - 50_000)
    eventually(lambda: broker.snapshot()["memory_alarm"])
    for publisher in publishers:
        publisher.connection.wire.send(rest(publisher, 50_000))

    # Four fill the memory; the last may have to wait until one is taken.
    eventually(lambda: looker.count("orders") >= 4)
    for _ in publishers:
        assert len(eventually(lambda: looker.get("orders")).body) == MIB
    for publisher in publishers:
        publisher.sync()
        publisher.connection.close()
    looker.connection.close()


def test_half_messages_are_counted_and_let_go_when_finished(broker: warren.Broker) -> None:
    channel = Connection.open(broker.url).channel()
    begin(channel, MIB, MIB - 1, "nowhere")
    eventually(lambda: held(broker) > MIB - 1)
    channel.connection.wire.send(rest(channel, 1))
    channel.sync()

    assert held(broker) == 0
    channel.connection.close()


def test_half_messages_go_with_their_connection(broker: warren.Broker) -> None:
    channel = Connection.open(broker.url).channel()
    begin(channel, 2 * MIB, MIB)
    eventually(lambda: held(broker) > MIB)

    channel.connection.drop()
    eventually(lambda: held(broker) == 0)


def test_half_messages_go_when_the_connection_is_refused(broker: warren.Broker) -> None:
    channel = Connection.open(broker.url).channel()
    begin(channel, 2 * MIB, MIB)
    channel.send(spec.Basic.Qos())  # where a body frame should be

    assert channel.connection.expect_closed().code == 505
    assert held(broker) == 0
    channel.connection.close()


def test_what_nobody_wants_is_not_kept(broker: warren.Broker) -> None:
    channel = Connection.open(broker.url).channel()
    channel.send(spec.Queue.Declare(queue="missing", passive=True))
    channel.publish("orders", bytes(2 * MIB))  # on a channel that is being closed
    begin(channel, 4 * MIB, 3 * MIB)

    assert channel.expect_closed().code == 404
    other = Connection.open(broker.url).channel()
    other.sync()
    assert held(broker) < 1000
    channel.connection.drop()
    other.connection.close()
