"""Very many queues and bindings: no more than many small things.

Twenty thousand show whether the work grows faster than their number; ``make soak`` takes a
hundred thousand, with a million bindings.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pika import frame, spec

import warren
from tests.support.wire import Channel, Connection
from warren.amqp.tables import Table

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

QUEUES = int(os.environ.get("WARREN_TEST_MANY_QUEUES", "20000"))
EACH = 10  # bindings a queue
STEP = 1_000
EXCHANGE = "routes"


def memory_bytes() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def name(number: int) -> str:
    return f"many-{number:06}"


def key(number: int) -> str:
    return f"sensor.{number:07}.changed"


def in_steps(broker: warren.Broker, act: Callable[[Any, int], None], looker: Channel) -> None:
    """Do something for every queue inside the broker; between the steps, others are answered."""
    vhost = broker.core.vhosts["/"]

    def step(first: int) -> None:
        for number in range(first, first + STEP):
            act(vhost, number)

    for first in range(0, QUEUES, STEP):
        broker.administer(lambda _, first=first: step(first))
        looker.sync()


def declare(vhost: Any, number: int) -> None:
    queue = vhost.declare_queue(name(number))
    for binding in range(number * EACH, (number + 1) * EACH):
        vhost.bind(EXCHANGE, queue, key(binding), Table())


def delete(vhost: Any, number: int) -> None:
    if number % 100:
        vhost.delete_queue(vhost.queues[name(number)])


def test_very_many_queues_and_ten_bindings_each() -> None:
    before = memory_bytes()
    with warren.Broker.in_thread() as broker:
        channel = Connection.open(broker.url).channel()
        channel.declare_exchange(EXCHANGE, "topic")
        in_steps(broker, declare, channel)
        assert len(broker.core.vhosts["/"].exchanges[EXCHANGE].bindings) == QUEUES * EACH
        assert memory_bytes() - before < QUEUES * 20_000

        wanted = range(7, QUEUES * EACH, 997)
        for number in wanted:
            channel.publish(key(number), str(number).encode(), exchange=EXCHANGE)
        for number in wanted:
            message = channel.get(name(number // EACH))
            assert message is not None
            assert message.body == str(number).encode()

        in_steps(broker, delete, channel)
        left = [name(number) for number in range(0, QUEUES, 100)]
        deletes = [spec.Queue.Delete(queue=queue, nowait=True) for queue in left]
        octets = b"".join(frame.Method(1, method).marshal() for method in deletes)
        channel.connection.wire.send(octets)
        channel.publish(key(0), b"nobody", exchange=EXCHANGE, mandatory=True)
        channel.expect(spec.Basic.Return)
        assert broker.snapshot()["queues"] == []
        channel.declare_exchange(EXCHANGE, "topic", passive=True)
        channel.connection.close()
