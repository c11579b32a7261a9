"""Spark takes its time over the rows that it has: the broker is not kept waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.spark.drains import Task, numbers, publish
from tests.support.brokers import TestBroker
from tests.support.proxy import Proxy
from tests.support.wire import Channel, Connection
from tests.support.wire_frames import Gone
from warren.spark import portions
from warren.spark.ahead import ahead
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range


@pytest.fixture
def proxy(broker: TestBroker) -> Iterator[Proxy]:
    with Proxy(broker.host, broker.port) as proxy:
        yield proxy


def test_the_broker_does_not_hang_up_while_spark_is_busy(
    broker: TestBroker, channel: Channel, name: Callable[..., str], tmp_path: Path, proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(portions, "_SMALL_BYTES", 0)  # each segment's rows at once
    queue = name("drained")
    channel.declare(queue, durable=True)
    publish(channel, queue, range(60))
    task = Task(proxy.url + "?heartbeat=1", tmp_path / "ledger", prefetch="5")
    drain = Drain(task.options, task.ledger)
    batches = ahead(drain.rows([Range(queue, 0, 60)]), 1, drain.keep_alive)

    first = next(batches)
    silent = Connection.open(broker.url, heartbeat=1)
    with pytest.raises(Gone):  # so long does the broker wait for a heartbeat
        while True:
            silent.pump()
    silent.close()

    assert numbers([first, *batches]) == [*range(60)]
    assert proxy.accepted == 1
