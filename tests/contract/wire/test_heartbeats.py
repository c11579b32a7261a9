"""Heartbeats in both directions."""

from __future__ import annotations

import time
from collections.abc import Callable

from pika import frame, spec

from tests.contract.wire.raw import HEARTBEAT, raw
from tests.support.wire import Connection
from tests.support.wire_frames import Gone

Connect = Callable[..., Connection]


def drained(connection: Connection) -> list[object]:
    """All frames that have come until now."""
    frames = []
    try:
        while True:
            frames.append(connection.wire.read(0.01))
    except TimeoutError:
        return frames


def test_an_idle_broker_sends_heartbeats_twice_an_interval(connect: Connect) -> None:
    wire = connect(heartbeat=1).wire

    def waited_for_the_next() -> float:
        begin = time.monotonic()
        assert isinstance(wire.read(), frame.Heartbeat)
        return time.monotonic() - begin

    begin = time.monotonic()
    waits = [waited_for_the_next() for _ in range(3)]
    assert time.monotonic() - begin > 0.9
    # A busy machine makes one late, or two, but not all of them.
    assert min(waits) < 0.9 or any(waited_for_the_next() < 0.9 for _ in range(10))


def test_a_silent_peer_is_dropped_after_two_intervals_and_a_live_one_is_not(
    connect: Connect,
) -> None:
    silent, beating, talking = (connect(heartbeat=1) for _ in range(3))
    without = connect(heartbeat=0)
    channel = talking.channel()
    begin = time.monotonic()
    lost_after = None
    while time.monotonic() - begin < 10 and lost_after is None:
        beating.wire.send(raw(HEARTBEAT, 0))
        channel.send(spec.Basic.Ack(delivery_tag=0, multiple=True))  # any bytes do
        try:
            assert isinstance(silent.wire.read(0.3), frame.Heartbeat)
        except TimeoutError:
            continue
        except Gone:
            lost_after = time.monotonic() - begin
    assert lost_after is not None
    assert lost_after > 1.9
    assert all(isinstance(value, frame.Heartbeat) for value in drained(beating))
    beating.channel().sync()
    channel.sync()
    assert drained(without) == []
    without.channel().sync()
