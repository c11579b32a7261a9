"""The end of a connection, from either side."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.wire.raw import method, raw, refusal
from tests.support.brokers import TestBroker
from tests.support.wire import Closed, Connection
from tests.support.wire_frames import Gone

Connect = Callable[..., Connection]
Name = Callable[[str], str]

CLOSE = method(spec.Connection.Close(200, "bye", 0, 0), 0)
CLOSE_OK = method(spec.Connection.CloseOk(), 0)
MISPLACED = method(spec.Basic.Qos(), 0)
IGNORED = raw(9, 0) + raw(9, 1) + raw(1, 0) + method(spec.Channel.Open()) + MISPLACED


def closing(connection: Connection) -> None:
    """Make the broker close the connection, and leave its close unanswered."""
    connection.wire.send(MISPLACED)
    assert isinstance(connection.wire.read().method, spec.Connection.Close)


def test_close_is_answered_with_close_ok(connect: Connect) -> None:
    connection = connect()
    connection.channel()
    connection.wire.send(CLOSE)
    assert isinstance(connection.wire.read().method, spec.Connection.CloseOk)


def test_a_client_that_does_not_hang_up_after_its_close_is_dropped(connect: Connect) -> None:
    connection = connect(heartbeat=1)
    connection.wire.send(CLOSE)
    assert connection.wire.closed_within(5)


def test_what_follows_a_clients_close_is_ignored(connect: Connect) -> None:
    connection = connect()
    connection.wire.send(CLOSE + IGNORED + CLOSE_OK)
    assert isinstance(connection.wire.read().method, spec.Connection.CloseOk)
    with pytest.raises(Gone):
        connection.wire.read()


def test_what_was_sent_before_close_is_done(connect: Connect, name: Name) -> None:
    connection = connect()
    channel = connection.channel()
    channel.declare(queue := name("last-words"))
    for _ in range(100):
        channel.publish(queue, b"word")
    connection.close()
    assert connect().channel().count(queue) == 100


def test_exclusive_queues_are_gone_when_close_ok_comes(connect: Connect, name: Name) -> None:
    connection = connect()
    connection.channel().declare(queue := name("exclusive"), exclusive=True)
    connection.close()
    with pytest.raises(Closed) as refused:
        connect().channel().count(queue)
    assert refused.value.code == 404


def test_exclusive_queues_are_gone_when_the_broker_closes(connect: Connect, name: Name) -> None:
    connection = connect()
    connection.channel().declare(queue := name("exclusive"), exclusive=True)
    closing(connection)
    with pytest.raises(Closed) as refused:
        connect().channel().count(queue)
    assert refused.value.code == 404


def test_what_follows_the_brokers_close_is_ignored_until_it_is_answered(connect: Connect) -> None:
    connection = connect()
    closing(connection)
    connection.wire.send(IGNORED)
    with pytest.raises(TimeoutError):
        connection.wire.read(0.1)
    connection.wire.send(CLOSE_OK)
    with pytest.raises(Gone):
        connection.wire.read()


def test_a_close_that_crosses_the_brokers_is_answered(connect: Connect) -> None:
    connection = connect()
    closing(connection)
    connection.wire.send(CLOSE)
    assert isinstance(connection.wire.read().method, spec.Connection.CloseOk)


def test_a_client_that_does_not_answer_the_brokers_close_is_dropped(connect: Connect) -> None:
    connection = connect(heartbeat=1)
    closing(connection)
    assert connection.wire.closed_within(5)


def test_a_hard_error_ends_all_channels_of_the_connection(connect: Connect, name: Name) -> None:
    connection = connect()
    connection.channel(1).declare(queue := name("held"))
    connection.channel(2).publish(queue, b"x")
    connection.channels[2].sync()
    assert connection.channels[1].get(queue, no_ack=False) is not None
    assert refusal(connection, MISPLACED)[0] == "connection"
    message = connect().channel().get(queue)
    assert message is not None
    assert message.method.redelivered


def test_connections_closed_by_the_administrator_hear_320_and_the_reason(
    broker: TestBroker, connect: Connect
) -> None:
    connections = [connect(), connect()]
    broker.close_connections("maintenance at noon")
    words = ("connection", 320, "CONNECTION_FORCED - maintenance at noon", 0, 0)
    assert [connection.expect_closed().args for connection in connections] == [words, words]
    with pytest.raises(Gone):
        connections[0].wire.read()
