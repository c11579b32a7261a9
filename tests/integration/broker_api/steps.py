"""What the tests of the embedded broker do to it."""

from __future__ import annotations

import socket
from typing import Any

import warren
from tests.support.wire import Connection


def round_trip(url: str) -> bytes:
    """Publish a message and get it."""
    connection = Connection.open(url)
    channel = connection.channel()
    queue = channel.declare(exclusive=True).queue
    channel.publish(queue, b"there and back")
    message = channel.get(queue)
    connection.close()
    assert message is not None
    return message.body


def queue_of(broker: warren.Broker, name: str) -> dict[str, Any]:
    (queue,) = (queue for queue in broker.snapshot()["queues"] if queue["name"] == name)
    return queue


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def closed_with(connection: Connection) -> tuple[int, str]:
    closed = connection.expect_closed()
    return closed.code, closed.text
