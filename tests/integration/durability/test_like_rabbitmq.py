"""The same survives a restart as on a private RabbitMQ node, which takes a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.integration.durability.steps import (
    bodies,
    drain,
    exists,
    flags,
    get,
    publish,
)
from tests.support import rabbitmq
from tests.support.eventually import eventually
from tests.support.process import BrokerProcess
from tests.support.wire import Closed, Connection, Message


class RabbitNode:
    """A RabbitMQ node of its own that can be restarted."""

    def __init__(self) -> None:
        self._node = rabbitmq.restartable()
        self._connections: list[Connection] = []

    def connect(self) -> Connection:
        self._connections.append(Connection.open(self._node.url))
        return self._connections[-1]

    def restart(self) -> None:
        self.close()
        assert self._node.evaluate("rabbit:stop()") == "ok"
        eventually(self._started, 90, every_s=1)
        self._node.wait_ready()

    def _started(self) -> bool:
        """A start while the last one is not quite over is answered with ok, and is none."""
        answer = self._node.evaluate("rabbit:start()")
        assert answer == "ok", answer
        return self._node.evaluate("rabbit:is_running()") == "true"

    def close(self) -> None:
        for connection in self._connections:
            connection.wire.close()
        self._connections.clear()


class WarrenNode:
    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self.connect = broker.connect

    def restart(self) -> None:
        self._broker.stop()
        self._broker.start()

    def close(self) -> None:
        """The process is ended by its fixture."""


@pytest.fixture(params=["warren", pytest.param("rabbitmq", marks=pytest.mark.slow)])
def node(request: pytest.FixtureRequest) -> Iterator[Any]:
    with closing(
        RabbitNode()
        if request.param == "rabbitmq"
        else WarrenNode(request.getfixturevalue("broker"))
    ) as node:
        yield node


def read_stream(node: Any) -> list[Message]:
    channel = node.connect().channel()
    channel.qos(10)
    try:
        channel.consume("stream", arguments={"x-stream-offset": "first"})
    except Closed as refusal:  # RabbitMQ's streams take a moment longer than its other queues
        assert "is down or inaccessible" in refusal.text
        return []
    return [channel.delivery() for _ in range(2)]


@pytest.mark.timeout(240)
def test_the_same_survives_a_restart_as_on_rabbitmq(node: Any) -> None:
    channel = node.connect().channel()
    channel.declare("durable", durable=True)
    channel.declare("passing", durable=False)
    channel.declare("priority", durable=True, arguments={"x-max-priority": 5})
    channel.declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    channel.declare("stream", durable=True, arguments={"x-queue-type": "stream"})
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channel.declare("dying", durable=True, arguments=to_dead)
    channel.declare("dead", durable=True)
    for exchange, durable in (("ex-durable", True), ("ex-passing", False)):
        channel.declare_exchange(exchange, "direct", durable=durable)
        channel.bind("durable", exchange, "key")
    publish(channel, "durable", b"1", b"2", b"3", b"4")
    publish(channel, "durable", b"transient", delivery_mode=1)
    publish(channel, "key", b"5", exchange="ex-durable")
    publish(channel, "durable", b"gone", expiration="10")
    publish(channel, "quorum", b"kept although transient", delivery_mode=1)
    publish(channel, "stream", b"s1", b"s2", delivery_mode=1)
    for priority in (1, 4, 0, 4):
        publish(channel, "priority", b"%d" % priority, priority=priority)
    publish(channel, "dying", b"rejected")
    channel.reject(get(channel, "dying", no_ack=False).tag, requeue=False)  # type: ignore[union-attr]
    held = node.connect().channel()
    assert [get(held, "durable", no_ack=False).body for _ in range(2)] == [b"1", b"2"]  # type: ignore[union-attr]
    channel.sync()

    node.restart()

    channel = node.connect().channel()
    assert not exists(node, "queue", "passing")
    assert exists(node, "exchange", "ex-durable")
    assert not exists(node, "exchange", "ex-passing")
    publish(channel, "key", b"6", exchange="ex-durable")
    assert flags(channel, "durable") == [
        (b"1", True),
        (b"2", True),
        (b"3", False),
        (b"4", False),
        (b"5", False),
        (b"6", False),
    ]
    assert flags(channel, "priority") == [(b"%d" % each, False) for each in (4, 4, 1, 0)]
    assert bodies(channel, "quorum") == [b"kept although transient"]
    (dead,) = drain(channel, "dead")
    (death,) = dead.properties.headers["x-death"]
    assert (death["queue"], death["reason"], death["count"]) == ("dying", "rejected", 1)
    read = eventually(lambda: read_stream(node), within_s=30)
    assert [(each.body, each.properties.headers["x-stream-offset"]) for each in read] == [
        (b"s1", 0),
        (b"s2", 1),
    ]
