"""A disk that takes nothing more: publishers wait, and nothing confirmed is lost."""

from __future__ import annotations

import resource
from pathlib import Path

from pika import spec

from tests.integration.durability.steps import (
    PERSISTENT,
    Restart,
    bodies,
    open_channel,
    publish,
)
from tests.support.eventually import eventually
from tests.support.process import BrokerProcess, broker_process


def limit_files(broker: BrokerProcess, size: int) -> None:
    hard = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (size, hard))


def test_a_disk_that_takes_nothing_blocks_publishers_and_loses_nothing(
    broker: BrokerProcess, kill: Restart
) -> None:
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    publish(channel, "q", b"before")
    limit_files(broker, 100_000)
    channel.confirm()
    channel.publish("q", bytes(200_000), delivery_mode=PERSISTENT)
    eventually(lambda: "nothing can be written" in broker.log.read_text())
    channel.publish("q", b"blocked", delivery_mode=PERSISTENT)
    blocked = channel.connection.expect(spec.Connection.Blocked)
    assert blocked.reason == "low on disk"
    assert channel.quiet()  # nothing is confirmed

    limit_files(broker, -1)
    channel.connection.expect(spec.Connection.Unblocked)
    assert channel.wait_confirms(2) == {1: "ack", 2: "ack"}
    kill()
    assert [len(body) for body in bodies(open_channel(broker), "q")] == [6, 200_000, 7]


def test_what_was_not_confirmed_on_a_full_disk_may_be_lost_the_rest_is_not(
    broker: BrokerProcess, kill: Restart
) -> None:
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    publish(channel, "q", *(b"%d" % number for number in range(100)))
    limit_files(broker, 100_000)
    channel.publish("q", bytes(200_000), delivery_mode=PERSISTENT)
    eventually(lambda: "nothing can be written" in broker.log.read_text())
    kill()
    assert bodies(open_channel(broker), "q")[:100] == [b"%d" % number for number in range(100)]


def test_a_broker_whose_disk_is_full_can_be_stopped(broker: BrokerProcess) -> None:
    channel = open_channel(broker)
    channel.declare("q", durable=True)
    limit_files(broker, 100_000)
    channel.publish("q", bytes(200_000), delivery_mode=PERSISTENT)
    eventually(lambda: "nothing can be written" in broker.log.read_text())
    broker.stop()


def test_publishers_are_blocked_below_the_limit_of_free_space(tmp_path: Path) -> None:
    with broker_process(tmp_path / "data", "--disk-free-limit-bytes", str(1 << 60)) as broker:
        channel = open_channel(broker)
        channel.publish("nowhere", b"x")
        assert channel.connection.expect(spec.Connection.Blocked).reason == "low on disk"
