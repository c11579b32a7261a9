"""A broker whose clock is moved by the test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack

import pika.frame
import pytest

import warren
from tests.integration.broker_api.steps import queue_of
from tests.support.eventually import eventually
from tests.support.wire import Channel, Connection
from warren.testing import FakeClock


def test_a_message_lives_as_long_as_the_clock_says(clock: FakeClock, channel: Channel) -> None:
    channel.declare("orders", arguments={"x-message-ttl": 3_600_000})
    channel.publish("orders", b"an hour")
    channel.publish("orders", b"a minute", expiration="60000")
    channel.sync()

    clock.advance(3599.999)
    assert channel.count("orders") == 2  # the second waits behind the first
    clock.advance(0.001)
    assert channel.count("orders") == 0


def test_a_day_passes_at_once_through_a_chain_of_queues(clock: FakeClock, channel: Channel) -> None:
    for hours in (1, 2, 4, 8):
        channel.declare(
            f"wait-{hours}",
            arguments={
                "x-message-ttl": hours * 3_600_000,
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": f"wait-{hours * 2}" if hours < 8 else "due",
            },
        )
    channel.declare("due")
    channel.publish("wait-1", b"late")
    channel.sync()

    clock.advance(15 * 3600 - 1)
    assert channel.count("due") == 0
    clock.advance(1)
    message = channel.get("due")
    assert message is not None
    times = {death["time"].timestamp() for death in message.properties.headers["x-death"]}
    begin = clock.wall_ms() // 1000 - 15 * 3600
    assert times == {begin + hours * 3600 for hours in (1, 3, 7, 15)}


def test_an_unused_queue_goes_when_the_clock_says(
    broker: warren.Broker, clock: FakeClock, channel: Channel
) -> None:
    channel.declare("idle", arguments={"x-expires": 60_000})
    clock.advance(59)
    channel.declare("idle", arguments={"x-expires": 60_000})  # used: begins anew
    clock.advance(59.999)
    assert queue_of(broker, "idle")

    clock.advance(0.001)
    assert broker.snapshot()["queues"] == []


def test_a_peer_that_is_silent_for_two_intervals_is_cut(
    broker: warren.Broker, clock: FakeClock, connect: Callable[..., Connection]
) -> None:
    connection = connect(heartbeat=10)
    connection.channel().sync()
    clock.advance(5)
    assert isinstance(connection.wire.read(), pika.frame.Heartbeat)
    clock.advance(30)

    assert connection.wire.closed_within()
    eventually(lambda: broker.snapshot()["connections"] == 0)


def test_a_peer_that_beats_lives_as_long_as_it_does(
    broker: warren.Broker, clock: FakeClock, connect: Callable[..., Connection]
) -> None:
    channel = connect(heartbeat=10).channel()
    for _ in range(20):
        clock.advance(9)
        channel.connection.wire.send(pika.frame.Heartbeat().marshal())
        channel.sync()

    assert broker.snapshot()["connections"] == 1


def test_a_peer_that_does_not_say_who_it_is_is_cut_after_ten_seconds(
    broker: warren.Broker, clock: FakeClock
) -> None:
    with socket.create_connection((broker.host, broker.port), timeout=30) as sock:
        sock.sendall(b"AMQP\x00\x00\x09\x01")
        assert sock.recv(4096)
        clock.advance(9.9)
        sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            sock.recv(1)

        clock.advance(0.1)
        sock.settimeout(30)
        assert _end_of(sock)


def _end_of(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


async def test_time_is_moved_inside_the_loop_too(clock: FakeClock) -> None:
    def prepare(url: str) -> Channel:
        channel = Connection.open(url).channel()
        channel.declare("orders", arguments={"x-message-ttl": 1000})
        channel.publish("orders", b"late")
        channel.sync()
        return channel

    async with warren.Broker(port=0, clock=clock) as broker:
        channel = await asyncio.to_thread(prepare, broker.url)
        clock.advance(0.5)
        assert queue_of(broker, "orders")["messages"] == 1
        clock.advance(0.5)
        assert queue_of(broker, "orders")["messages"] == 0
        channel.connection.wire.close()


def test_one_clock_serves_several_brokers_and_outlives_them(
    clock: FakeClock, stack: ExitStack
) -> None:
    with warren.Broker.in_thread(clock=clock):
        clock.advance(1)
    brokers = [stack.enter_context(warren.Broker.in_thread(clock=clock)) for _ in range(2)]
    for broker in brokers:
        connection = Connection.open(broker.url)
        connection.channel().declare("idle", arguments={"x-expires": 1000})
        connection.close()
    clock.advance(1)

    assert [broker.snapshot()["queues"] for broker in brokers] == [[], []]
