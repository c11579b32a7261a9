"""What Spark's tasks do, over TLS: the sink publishes, the source drains what it has published."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pika import spec
from pyspark.sql.types import StringType, StructType

import warren
from tests.contract.tls.conftest import Listener, Listening
from tests.spark.drains import Task
from tests.support.certificates import Authority, Certificate
from tests.support.wire import Connection
from warren.client.blocking import BlockingConnection
from warren.errors import HostUnreachable, NotAmqp
from warren.spark.options import SourceOptions
from warren.spark.sink.writer import BatchWriter

MESSAGES = 1_000
BODY = StructType().add("body", StringType())
QUEUE = "spark-over-tls"


@pytest.fixture
def demanding(listening: Listening) -> Iterator[Listener]:
    """A broker that lets nobody in without a certificate, with an empty queue."""
    with listening(verify="required") as listener:
        plain = Connection.open(listener.broker.url)
        try:
            channel = plain.channel()
            channel.declare(QUEUE)
            yield listener
            channel.call(spec.Queue.Delete(queue=QUEUE))
        finally:
            plain.close()


def test_a_thousand_messages_go_out_and_come_in_by_a_certificate(
    demanding: Listener, ours: Authority, ann: Certificate, tmp_path: Path
) -> None:
    url = f"amqps://localhost:{demanding.port}"
    tls = {"tlsCaFile": ours.ca, "tlsCertFile": ann.certificate, "tlsKeyFile": ann.key}
    # Longer than what one read or write takes, and many to a record of TLS' own.
    bodies = [f"{number:0{3_000 if number % 10 else 8}}" for number in range(MESSAGES)]

    sink = BatchWriter({"uri": url, "routingKey": QUEUE, **tls}, BODY, overwrite=False)
    done = sink.write(iter([pa.RecordBatch.from_pydict({"body": bodies})]))
    source = Task(url, tmp_path / "ledger", **tls)
    came = source.run(QUEUE, 0, MESSAGES)

    assert (done.rows, done.nacked, done.reconnects) == (MESSAGES, 0, 0)
    assert came == list(range(MESSAGES))


def test_a_task_that_shows_no_certificate_is_told_to(demanding: Listener, ours: Authority) -> None:
    given = {"uri": f"amqps://localhost:{demanding.port}", "queues": QUEUE, "tlsCaFile": ours.ca}

    with pytest.raises(HostUnreachable, match="client certificate does so: tlsCertFile, tlsKeyF"):
        BlockingConnection.open(SourceOptions.parse(given).endpoints)


async def test_a_program_that_shows_no_certificate_is_told_to(
    demanding: Listener, ours: Authority
) -> None:
    with pytest.raises(NotAmqp, match="client certificate would do that: then certfile=, keyfile="):
        await warren.connect(f"amqps://localhost:{demanding.port}?cacertfile={ours.ca}")
