"""Faults on demand: connections cut, confirms held back or lost, alarms."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pika.frame
import pytest
from pika import spec

import warren
from tests.integration.broker_api.steps import closed_with, queue_of
from tests.support.eventually import eventually
from tests.support.wire import Channel, Connection
from tests.support.wire_frames import Gone
from warren.server.faults import Faults
from warren.testing import FakeClock


def confirmed(channel: Channel) -> list[int]:
    """The tags that the broker has confirmed until now."""
    channel.sync()
    tags: list[int] = []
    while channel.inbox:
        method = channel.inbox.popleft()
        assert isinstance(method, spec.Basic.Ack)
        first = max(tags, default=0) + 1 if method.multiple else method.delivery_tag
        tags += range(first, method.delivery_tag + 1)
    return tags


def publish(channel: Channel, count: int = 1) -> None:
    """Several publishes in one write."""
    data = b""
    for _ in range(count):
        data += pika.frame.Method(
            channel.number, spec.Basic.Publish(exchange="", routing_key="nowhere")
        ).marshal()
        data += pika.frame.Header(channel.number, 1, spec.BasicProperties()).marshal()
        data += pika.frame.Body(channel.number, b"x").marshal()
    channel.connection.wire.send(data)
    channel.sync()


def test_cut_connections_are_gone_without_a_word(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    connections = [connect() for _ in range(3)]

    assert broker.faults.cut_connections() == 3
    for connection in connections:
        with pytest.raises(Gone):
            connection.wire.read(5)
    assert broker.snapshot()["connections"] == 0


def test_a_cut_connection_gives_its_messages_back(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    channel = connect().channel()
    channel.declare("orders")
    channel.publish("orders", b"one")
    channel.consume("orders")
    channel.delivery()
    broker.faults.cut_connections()

    again = connect().channel().get("orders")
    assert again is not None
    assert (again.body, again.method.redelivered) == (b"one", True)


def test_one_connection_is_cut_by_the_name_its_client_gave(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    billing = connect(properties={"connection_name": "billing"})
    others = [connect(properties={"connection_name": "shipping"}), connect()]

    assert broker.faults.cut_connections(name="billing") == 1
    with pytest.raises(Gone):
        billing.wire.read(5)
    for other in others:
        other.channel().sync()
    assert broker.faults.cut_connections(name="billing") == 0


def test_connections_are_cut_by_their_user(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    broker.add_user("ann", "secret")
    broker.set_permissions("ann")
    hers, ours = connect(user="ann", password="secret"), connect()

    assert broker.faults.cut_connections(user="ann", name="billing") == 0
    assert broker.faults.cut_connections(user="ann") == 1
    with pytest.raises(Gone):
        hers.wire.read(5)
    ours.channel().sync()


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda faults: faults.cut_connections(-3), "chance"),
        (lambda faults: faults.cut_connections(name=7), "name"),
        (lambda faults: faults.drop_confirms("x"), "chance"),
        (lambda faults: faults.drop_confirms(7), "chance"),
        (lambda faults: faults.drop_confirms(float("nan")), "chance"),
        (lambda faults: faults.delay_confirms("5"), "delay_s"),
        (lambda faults: faults.delay_confirms(-5), "delay_s"),
        (lambda faults: faults.delay_confirms(float("inf")), "delay_s"),
        (lambda faults: faults.cancel_consumers(7), "queue"),
    ],
)
def test_an_argument_that_can_t_be_meant_is_told_at_once(
    broker: warren.Broker, channel: Channel, call: Callable[[Faults], object], argument: str
) -> None:
    channel.confirm()
    with pytest.raises(warren.ConfigError, match=rf"^{argument} \(\w+\): .* is not a "):
        call(broker.faults)

    publish(channel)
    assert confirmed(channel) == [1]


def test_the_same_seed_cuts_the_same_connections() -> None:
    def left(seed: int) -> list[bool]:
        with warren.Broker.in_thread() as broker:
            connections = [Connection.open(broker.url) for _ in range(12)]
            broker.faults.seed(seed)
            cut = broker.faults.cut_connections(chance=0.5)
            eventually(lambda: broker.snapshot()["connections"] == 12 - cut)
            broker.close_connections("the others")
            told = [_is_told(connection) for connection in connections]
            for connection in connections:
                connection.close()
            assert told.count(False) == cut
            return told

    assert left(1) == left(1)
    assert left(1) != left(2)


def _is_told(connection: Connection) -> bool:
    try:
        return connection.expect_closed(5).code == 320
    except Gone:
        return False


def test_held_confirms_come_when_they_are_let_go(broker: warren.Broker, channel: Channel) -> None:
    channel.confirm()
    broker.faults.hold_confirms()
    publish(channel, 2)
    publish(channel)
    assert confirmed(channel) == []

    broker.faults.hold_confirms(False)
    assert confirmed(channel) == [1, 2, 3]
    publish(channel)
    assert confirmed(channel) == [4]


def test_faults_of_confirms_hold_for_connections_to_come(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    broker.faults.hold_confirms()
    channel = connect().channel()
    channel.confirm()
    publish(channel)
    assert confirmed(channel) == []

    broker.faults.hold_confirms(False)
    assert confirmed(channel) == [1]


def test_delayed_confirms_come_each_at_its_time(
    broker: warren.Broker, clock: FakeClock, channel: Channel
) -> None:
    channel.confirm()
    broker.faults.delay_confirms(1)
    publish(channel)
    clock.advance(0.5)
    publish(channel)
    clock.advance(0.499)
    assert confirmed(channel) == []
    clock.advance(0.001)
    assert confirmed(channel) == [1]
    clock.advance(0.5)
    assert confirmed(channel) == [2]

    publish(channel)
    assert confirmed(channel) == []
    clock.advance(1)
    assert confirmed(channel) == [3]


def test_confirms_are_not_sent_on_a_channel_that_was_closed_meanwhile(
    broker: warren.Broker, clock: FakeClock, channel: Channel
) -> None:
    channel.confirm()
    broker.faults.delay_confirms(1)
    publish(channel)
    channel.close()
    clock.advance(2)

    other = channel.connection.channel()
    other.sync()
    assert not channel.inbox


def test_delays_end_with_what_was_held_back(
    broker: warren.Broker, clock: FakeClock, channel: Channel
) -> None:
    channel.confirm()
    broker.faults.delay_confirms(60)
    publish(channel, 3)
    broker.faults.delay_confirms(0)

    assert confirmed(channel) == [1, 2, 3]
    clock.advance(100)
    assert confirmed(channel) == []


def test_lost_confirms_never_come_not_even_by_a_later_multiple(
    broker: warren.Broker, channel: Channel
) -> None:
    channel.confirm()
    broker.faults.drop_confirms()
    publish(channel)
    broker.faults.drop_confirms(0)
    publish(channel, 3)
    channel.sync()

    tags = [method.delivery_tag for method in channel.inbox]
    assert tags == [2, 3, 4]
    assert not any(method.multiple for method in channel.inbox)


def test_the_same_seed_loses_the_same_confirms(stack: ExitStack) -> None:
    def kept(seed: int) -> list[int]:
        broker = stack.enter_context(warren.Broker.in_thread())
        broker.faults.seed(seed)
        broker.faults.drop_confirms(chance=0.5)
        channel = Connection.open(broker.url).channel()
        stack.callback(channel.connection.close)
        channel.confirm()
        for _ in range(20):
            publish(channel)
        return confirmed(channel)

    first = kept(1)
    assert 0 < len(first) < 20
    assert kept(1) == first
    assert kept(2) != first


@pytest.mark.parametrize("exclusive", [False, True])
def test_consumers_are_cancelled_by_the_broker(
    broker: warren.Broker, channel: Channel, exclusive: bool
) -> None:
    channel.declare("orders", exclusive=exclusive)
    tags = {channel.consume("orders"), channel.consume("orders")}

    assert broker.faults.cancel_consumers("orders") == 2
    assert {channel.expect(spec.Basic.Cancel).consumer_tag for _ in tags} == tags
    assert queue_of(broker, "orders")["consumers"] == 0
    channel.publish("orders", b"kept")
    message = channel.get("orders")
    assert message is not None
    assert message.body == b"kept"


def test_consumers_of_another_vhost_are_cancelled_there_only(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    broker.add_vhost("other")
    here, there = connect().channel(), connect(vhost="other").channel()
    for channel in (here, there):
        channel.declare("orders")
        channel.consume("orders")

    assert broker.faults.cancel_consumers("orders", vhost="other") == 1
    assert there.expect(spec.Basic.Cancel)
    assert here.quiet(0.05)


def test_one_consumer_is_cancelled_by_its_tag(broker: warren.Broker, channel: Channel) -> None:
    channel.declare("orders")
    first, second = channel.consume("orders"), channel.consume("orders")

    assert broker.faults.cancel_consumers("orders", tag=second) == 1
    assert channel.expect(spec.Basic.Cancel).consumer_tag == second
    assert broker.faults.cancel_consumers("orders", tag=second) == 0
    channel.publish("orders", b"for the other")
    assert channel.delivery().method.consumer_tag == first


@pytest.mark.parametrize(
    ("queue", "vhost", "told"),
    [
        ("ordrs", "/", "there is no queue 'ordrs' in virtual host '/'; did you mean 'orders'?"),
        ("zz", "/", "there is no queue 'zz' in virtual host '/'"),
        ("orders", "zz", "there is no virtual host 'zz'"),
    ],
)
def test_consumers_of_what_is_not_there_can_t_be_cancelled(
    broker: warren.Broker, channel: Channel, queue: str, vhost: str, told: str
) -> None:
    channel.declare("orders")
    with pytest.raises(warren.ConfigError) as error:
        broker.faults.cancel_consumers(queue, vhost)
    assert error.value.problem == told


def test_the_memory_alarm_blocks_publishers_until_it_is_cleared(
    broker: warren.Broker, channel: Channel
) -> None:
    channel.declare("orders")
    broker.memory_alarm(True)
    assert broker.snapshot()["memory_alarm"] is True
    channel.publish("orders", b"waits")
    assert channel.connection.expect(spec.Connection.Blocked).reason == "low on memory"
    assert queue_of(broker, "orders")["messages"] == 0

    broker.memory_alarm(False)
    channel.connection.expect(spec.Connection.Unblocked)
    assert channel.count("orders") == 1


def test_connections_are_closed_as_an_operator_does(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    connections = [connect(), connect()]

    assert broker.close_connections("maintenance") == 2
    assert [closed_with(connection) for connection in connections] == [
        (320, "CONNECTION_FORCED - maintenance")
    ] * 2


def test_a_blocked_connection_is_closed_as_quickly_as_any(
    broker: warren.Broker, connect: Callable[..., Connection]
) -> None:
    connection = connect()
    broker.memory_alarm(True)
    connection.channel().publish("nowhere", b"waits")
    connection.expect(spec.Connection.Blocked)
    broker.close_connections("maintenance")

    assert closed_with(connection) == (320, "CONNECTION_FORCED - maintenance")
    assert connection.wire.closed_within()
    broker.memory_alarm(False)
