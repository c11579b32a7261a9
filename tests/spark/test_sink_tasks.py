"""What a task of the sink does, without Spark: rows in, messages out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructType

from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.proxy import Proxy
from tests.support.wire import Channel
from warren.client.blocking_publisher import BlockingPublisher
from warren.errors import RowsNotTaken, Unconfirmed
from warren.spark.sink import writer
from warren.spark.sink.writer import BatchWriter

Name = Callable[[str], str]
ADDRESSED = StructType().add("body", StringType()).add("routing_key", StringType())


def task(**options: str) -> BatchWriter:
    return BatchWriter(options, ADDRESSED, overwrite=False)


def rows(routing_key: str, *bodies: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"body": bodies, "routing_key": [routing_key] * len(bodies)})


@pytest.fixture
def publishers(monkeypatch: pytest.MonkeyPatch) -> list[BlockingPublisher]:
    """Those that tasks have made."""
    made: list[BlockingPublisher] = []

    class Noted(BlockingPublisher):
        def __init__(self, *given: object, **how: object) -> None:
            super().__init__(*given, **how)  # type: ignore[arg-type]
            made.append(self)

    monkeypatch.setattr(writer, "BlockingPublisher", Noted)
    return made


def test_a_last_row_that_comes_back_while_spark_looks_for_more_fails_the_task(
    broker: TestBroker, channel: Channel, name: Name, publishers: list[BlockingPublisher]
) -> None:
    queue = name("taken")
    channel.declare(queue)
    with Proxy(broker.host, broker.port) as proxy:

        def batches() -> Iterator[pa.RecordBatch]:
            yield rows(queue, "a")  # from here on there is a connection
            proxy.stall()
            yield rows("nobody-reads-this", "b")
            proxy.resume()
            (publisher,) = publishers
            eventually(lambda: heard_all(publisher))

        with pytest.raises(RowsNotTaken, match=r"routing key 'nobody-reads-this'.*onUnroutable"):
            task(uri=proxy.url).write(batches())
    assert channel.drain(queue) == [b"a"]


def heard_all(publisher: BlockingPublisher) -> bool:
    """Does what the heart does, and says whether nothing is unconfirmed."""
    publisher._idle.beat(time.monotonic())
    return not publisher.unconfirmed


def test_rows_that_are_not_mandatory_and_that_no_queue_takes_are_published_all_the_same(
    broker: TestBroker, channel: Channel, name: Name
) -> None:
    queue = name("taken")
    channel.declare(queue)

    done = task(uri=broker.url, mandatory="false").write(
        iter([rows("nobody-reads-this", "a", "b"), rows(queue, "c")])
    )

    assert (done.rows, done.dropped, done.dead_lettered) == (3, 0, 0)
    assert channel.drain(queue) == [b"c"]


def test_a_broker_that_confirms_nothing_fails_the_task_and_the_option_is_named(
    broker: TestBroker, channel: Channel, name: Name
) -> None:
    queue = name("frozen")
    channel.declare(queue)
    with Proxy(broker.host, broker.port) as proxy:

        def batches() -> Iterator[pa.RecordBatch]:
            yield rows(queue, "a")
            proxy.freeze()
            yield rows(queue, "b")

        frozen = task(uri=proxy.url, heartbeat="0", confirmTimeoutMs="300")
        with pytest.raises(Unconfirmed, match=r"no confirm in 0.3 s; .* with confirmTimeoutMs$"):
            frozen.write(batches())


def test_a_task_says_how_it_goes_where_that_is_wanted(
    broker: TestBroker,
    channel: Channel,
    name: Name,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    queue = name("told")
    channel.declare(queue)
    monkeypatch.setattr(writer, "_TELL_EVERY_S", 0.0)

    for progress in ("true", "false"):
        sink = task(uri=broker.url, progress=progress)
        sink.commit([sink.write(iter([rows(queue, "a", "b")]))])
        said = capfd.readouterr().err

        ways = [r"2 rows so far, \d+/s, \d unconfirmed", "task 0: 2 rows conf", " 2 rows confirmed"]
        assert [bool(re.search(way, said)) for way in ways] == [progress == "true"] * 3, said
    assert not writer.log.handlers
