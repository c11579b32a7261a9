"""Source and sink, as streams and as batches, on each kind of Spark and at each kind of broker."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pika import spec

from tests.spark.drains import publish
from tests.support import spark_cluster, spark_jobs
from tests.support.brokers import RabbitBroker, TestBroker
from tests.support.spark_cluster import Driver
from tests.support.wire import Channel, Connection
from warren.spark.ledger.ledger import Ledger

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]
COUNT = 2_000
QUORUM = {"x-queue-type": "quorum", "x-single-active-consumer": True}

#: Does one of the jobs of ``tests/support/spark_jobs.py``.
Run = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    with spark_cluster.driver(spark_cluster.cluster()) as running:
        yield running


@pytest.fixture(params=["local", "standalone"])
def run(request: pytest.FixtureRequest) -> Run:
    """On two cores of this process's Spark, or on two executors of a master and two workers."""
    if request.param == "standalone":
        running: Driver = request.getfixturevalue("driver")
        return running.run
    spark = request.getfixturevalue("spark")
    return lambda job, **options: spark_jobs.JOBS[job](spark, **options)


@dataclass
class Place:
    """Where queues are: a broker, or several that are one."""

    uri: str
    channel: Channel
    name: Callable[[str], str]
    arguments: dict[str, Any] | None = None

    def queue(self, word: str) -> str:
        queue = self.name(word)
        self.channel.declare(queue, durable=True, arguments=self.arguments)
        return queue

    def counts(self, *queues: str) -> list[int]:
        return [self.channel.count(queue) for queue in queues]


@pytest.fixture
def of_three(rabbitmq_cluster: list[RabbitBroker]) -> Iterator[Place]:
    """Quorum queues of a cluster."""
    made: list[str] = []

    def name(word: str) -> str:
        made.append(f"{word}-{secrets.token_hex(4)}")
        return made[-1]

    connection = Connection.open(rabbitmq_cluster[0].url)
    channel = connection.channel()
    yield Place(",".join(node.url for node in rabbitmq_cluster), channel, name, QUORUM)
    for queue in made:
        channel.call(spec.Queue.Delete(queue=queue))
    connection.close()


def test_what_spark_writes_to_a_broker_it_reads_once(
    run: Run, broker: TestBroker, channel: Channel, name: Callable[[str], str], tmp_path: Path
) -> None:
    place = Place(broker.url, channel, name)

    read_what_a_batch_wrote(run, place, tmp_path / "first", queues=2)
    drain_what_a_stream_sent_on(run, place, tmp_path / "second")


@pytest.mark.slow
@pytest.mark.cluster
def test_what_spark_writes_to_quorum_queues_of_a_cluster_it_reads_once(
    run: Run, of_three: Place, tmp_path: Path
) -> None:
    read_what_a_batch_wrote(run, of_three, tmp_path / "first", queues=1)
    drain_what_a_stream_sent_on(run, of_three, tmp_path / "second")


def read_what_a_batch_wrote(run: Run, place: Place, folder: Path, *, queues: int) -> None:
    """df.write and spark.readStream."""
    names = [place.queue("written") for _ in range(queues)]
    for queue in names:
        run("write_numbers", uri=place.uri, queue=queue, count=COUNT)
    assert place.counts(*names) == [COUNT] * queues

    found = run("read_queues", uri=place.uri, queues=names, folder=str(folder))

    assert found["numbers"].keys() == set(names)
    for numbers in found["numbers"].values():
        assert_once_and_in_order(numbers)
    assert place.counts(*names) == [0] * queues
    assert in_doubt(folder / "ledger") == []


def assert_once_and_in_order(numbers: list[int]) -> None:
    """By offset, all that was written; two tasks wrote it, each its half in order."""
    half = COUNT // 2
    assert [number for number in numbers if number < half] == list(range(half))
    assert [number for number in numbers if number >= half] == list(range(half, COUNT))


def drain_what_a_stream_sent_on(run: Run, place: Place, folder: Path) -> None:
    """df.writeStream and spark.read."""
    queue, to = place.queue("queue"), place.queue("sent-on")
    publish(place.channel, queue, range(COUNT))

    run("send_on", uri=place.uri, queue=queue, to=to, folder=str(folder))
    assert place.counts(queue, to) == [0, COUNT]
    found = run("drain", uri=place.uri, queue=to, folder=str(folder))

    assert found["numbers"] == list(range(COUNT))  # of one queue, by one task
    assert place.counts(to) == [0]
    assert in_doubt(folder / "ledger") + in_doubt(folder / "batch-ledger") == []


def in_doubt(ledger: Path) -> list[int]:
    shelves = Ledger.at(str(ledger)).shelves()
    assert shelves
    return [start for shelf in shelves.values() for start in shelf.in_doubt]
