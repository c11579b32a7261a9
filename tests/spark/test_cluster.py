"""What only a cluster has: executors that are processes elsewhere, nodes that go down."""

from __future__ import annotations

import gzip
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from pika import spec

from tests.contract.ledger.test_files import reached
from tests.spark.drains import Task, publish
from tests.support import spark_cluster
from tests.support.brokers import RabbitBroker, TestBroker
from tests.support.eventually import eventually
from tests.support.spark_cluster import Driver
from tests.support.wire import Channel, Connection
from warren.client.blocking import BlockingConnection
from warren.errors import QueueUnavailable
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.places import open_files
from warren.spark.queues import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]
#: Where drivers are started.
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    with spark_cluster.driver(spark_cluster.cluster()) as running:
        yield running


def test_the_cluster_has_two_executors(driver: Driver) -> None:
    eventually(lambda: driver.run("executors")["count"] == 2, within_s=60)


@pytest.mark.parametrize("broker", ["warren"], indirect=True)
def test_a_relative_ledger_is_the_driver_s_for_executors_that_run_in_other_folders(
    driver: Driver,
    broker: TestBroker,
    channel: Channel,
    name: Callable[[str], str],
    tmp_path: Path,
) -> None:
    queue = name("cluster")
    channel.declare(queue, durable=True)
    publish(channel, queue, range(100))

    found = driver.run(
        "read_queues",
        uri=broker.url,
        queues=[queue],
        folder=str(tmp_path),
        ledger=os.path.relpath(tmp_path / "ledger", ROOT),
    )

    assert found["numbers"] == {queue: list(range(100))}
    assert Ledger.at(str(tmp_path / "ledger")).shelves().of(queue).starts != []


@pytest.mark.parametrize("broker", ["warren"], indirect=True)
def test_a_ledger_in_an_object_store_serves_driver_and_executors(
    broker: TestBroker,
    channel: Channel,
    name: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = reached("s3", monkeypatch)
    queue, place = name("cluster"), store.new_place()
    channel.declare(queue, durable=True)
    publish(channel, queue, range(100))
    Task(broker.url, open_files(place)).crash(queue, 0, 100, "before ack")  # an earlier attempt
    eventually(lambda: channel.count(queue) == 100)

    with spark_cluster.driver(spark_cluster.cluster(), **store.env) as driver:
        found = driver.run(
            "read_queues", uri=broker.url, queues=[queue], folder=str(tmp_path), ledger=place
        )

    assert found["numbers"] == {queue: list(range(100))}
    assert channel.count(queue) == 0
    assert Ledger.at(place).shelves().of(queue).in_doubt == []


def test_a_pipeline_runs_on_the_cluster(
    driver: Driver,
    broker: TestBroker,
    channel: Channel,
    name: Callable[[str], str],
    tmp_path: Path,
) -> None:
    queues = [name("events"), name("events")]
    for queue in queues:
        channel.declare(queue, durable=True)
        for number in range(100):
            channel.publish(queue, gzip.compress(b'{"id": %d}' % number), content_encoding="gzip")
        channel.publish(queue, b"broken")
    channel.sync()
    file = tmp_path / "events.yaml"
    file.write_text(
        f"queues: [{', '.join(queues)}]\n"
        "tables: {events: {schema: id INT, columns: [queue, offset]}}\n"
    )

    total = driver.run("run_pipeline", file=str(file), uri=broker.url)

    assert (total["drained"], total["written"], total["quarantined"]) == (202, 200, 2)
    rows = ds.dataset(tmp_path / "events-data" / "events", partitioning="hive").to_table()
    assert sorted((row["queue"], row["offset"], row["id"]) for row in rows.to_pylist()) == sorted(
        (queue, number, number) for queue in queues for number in range(100)
    )


@pytest.mark.slow
@pytest.mark.cluster
def test_a_queue_whose_node_is_down_is_not_taken_for_deleted(
    rabbitmq_cluster: list[RabbitBroker], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, _, third = rabbitmq_cluster
    queue = f"home-{secrets.token_hex(4)}"
    task = Task(first.url, tmp_path, queues=queue)
    catalog = Catalog(task.options)
    there = Connection.open(third.url)
    there.channel().declare(queue, durable=True)  # a classic queue lives where it was declared
    publish(there.channel(), queue, range(5), delivery_mode=2)
    task.crash(queue, 0, 5, "after segment")
    there.close()
    third.evaluate("rabbit:stop()")
    try:
        with BlockingConnection.open(task.options.endpoints) as link:
            for _ in range(2):
                catalog.queues(link)
                assert catalog.ready(link) == {queue: 0}
        assert sum(queue in told for told in caplog.messages) == 1
        with pytest.raises(QueueUnavailable, match="down or inaccessible"):
            task.run(queue, 0, 10, reconnect_s=0.5)
        assert task.in_doubt(queue) == [0]
    finally:
        third.evaluate("rabbit:start()")

    with BlockingConnection.open(task.options.endpoints) as link:
        eventually(lambda: catalog.ready(link) == {queue: 5}, within_s=60)
    assert task.run(queue, 0, 10) == list(range(5))
    assert task.in_doubt(queue) == []
    _delete(Connection.open(first.url), queue)


def _delete(connection: Connection, queue: str) -> None:
    connection.channel().call(spec.Queue.Delete(queue=queue))
    connection.close()
