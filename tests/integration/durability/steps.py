"""What the tests of a broker with a data folder do again and again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from pika import spec

from tests.support.process import BrokerProcess
from tests.support.wire import Channel, Closed, Message

PERSISTENT = 2
Restart = Callable[[], None]


def open_channel(broker: BrokerProcess) -> Channel:
    return broker.connect().channel()


def publish(channel: Channel, queue: str, *bodies: bytes, **properties: Any) -> None:
    """Persistent messages, confirmed; with ``exchange`` they go there."""
    exchange = properties.pop("exchange", "")
    properties.setdefault("delivery_mode", PERSISTENT)
    confirming = channel.connection.channel()
    confirming.confirm()
    for body in bodies:
        confirming.publish(queue, body, exchange=exchange, **properties)
    assert set(confirming.wait_confirms(len(bodies)).values()) == {"ack"}
    confirming.close()


def get(channel: Channel, queue: str, *, no_ack: bool = True) -> Message | None:
    answer = channel.call(spec.Basic.Get(queue=queue, no_ack=no_ack))
    return answer if isinstance(answer, Message) else None


def drain(channel: Channel, queue: str) -> list[Message]:
    found = []
    while message := get(channel, queue):
        found.append(message)
    return found


def bodies(channel: Channel, queue: str) -> list[bytes]:
    return [message.body for message in drain(channel, queue)]


def flags(channel: Channel, queue: str) -> list[tuple[bytes, bool]]:
    return [(message.body, message.method.redelivered) for message in drain(channel, queue)]


def exists(broker: Any, kind: str, name: str) -> bool:
    channel = broker.connect().channel()
    try:
        if kind == "queue":
            channel.declare(name, passive=True)
        else:
            channel.declare_exchange(name, passive=True)
    except Closed as refusal:
        assert refusal.code == 404
        return False
    return True


@contextmanager
def database(broker: BrokerProcess) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"file:{broker.file}?mode=ro", uri=True)) as connection:
        yield connection


def rows(broker: BrokerProcess, table: str) -> int:
    with database(broker) as connection:
        count: int = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        return count
