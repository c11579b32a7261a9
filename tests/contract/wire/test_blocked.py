"""The memory alarm: who is told, who is held back, what goes on."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from pika import spec

from tests.support.brokers import TestBroker
from tests.support.wire import Connection, Message

Connect = Callable[..., Connection]
Name = Callable[[str], str]


def silent(connection: Connection) -> bool:
    with pytest.raises(TimeoutError):
        connection.pump(0.1)
    return True


def silent_but_for_heartbeats(connection: Connection, for_s: float) -> bool:
    """Longer than a silent peer is borne: while it is blocked, it is not expected to speak."""
    deadline = time.monotonic() + for_s
    while (left := deadline - time.monotonic()) > 0:
        try:
            kind, _, _ = connection.wire.read_raw(left)
        except TimeoutError:
            break
        assert kind == 8
    return True


def test_a_publisher_is_told_when_it_publishes_and_again_when_the_alarm_is_over(
    broker: TestBroker, connect: Connect, name: Name
) -> None:
    publisher = connect().channel()
    publisher.declare(queue := name("blocked"))
    publisher.publish(queue, b"before")
    publisher.sync()
    broker.memory_alarm(True)
    assert silent(publisher.connection)
    publisher.publish(queue, b"during")
    assert publisher.connection.expect(spec.Connection.Blocked).reason == "low on memory"
    publisher.publish(queue, b"more")
    assert silent(publisher.connection)
    assert connect().channel().count(queue) == 1
    broker.memory_alarm(False)
    publisher.connection.expect(spec.Connection.Unblocked)
    publisher.sync()
    assert publisher.count(queue) == 3


def test_a_blocked_connection_is_not_heard_but_still_sent_to(
    broker: TestBroker, connect: Connect, name: Name
) -> None:
    broker.memory_alarm(True)
    channel = connect(heartbeat=1).channel()
    channel.declare(queue := name("held"))
    channel.consume(queue, no_ack=True)
    channel.publish(queue, b"")  # has no body to wait for, so it still gets through
    channel.send(spec.Basic.Qos(prefetch_count=1))
    channel.connection.expect(spec.Connection.Blocked)
    assert channel.delivery().body == b""
    assert silent_but_for_heartbeats(channel.connection, 3.5)
    broker.memory_alarm(False)
    channel.connection.expect(spec.Connection.Unblocked)
    channel.expect(spec.Basic.QosOk)


def test_those_who_only_consume_notice_nothing(
    broker: TestBroker, connect: Connect, name: Name
) -> None:
    publisher, consumer = connect().channel(), connect().channel()
    publisher.declare(queue := name("drained"))
    for at in range(3):
        publisher.publish(queue, b"%d" % at)
    publisher.sync()
    broker.memory_alarm(True)
    consumer.qos(1)
    consumer.consume(queue)
    for at in range(3):
        message: Message = consumer.delivery()
        assert message.body == b"%d" % at
        consumer.ack(message.tag)
    consumer.sync()
    late = connect().channel()
    assert late.count(queue) == 0
    broker.memory_alarm(False)
    assert silent(consumer.connection)
    assert silent(late.connection)


def test_a_client_that_cannot_be_told_is_held_back_all_the_same(
    broker: TestBroker, connect: Connect, name: Name
) -> None:
    publisher = connect(properties={}).channel()
    publisher.declare(queue := name("untold"))
    broker.memory_alarm(True)
    publisher.publish(queue, b"x")
    publisher.send(spec.Basic.Qos())
    assert silent(publisher.connection)
    broker.memory_alarm(False)
    publisher.expect(spec.Basic.QosOk)
    assert not publisher.connection.inbox
    assert publisher.count(queue) == 1
