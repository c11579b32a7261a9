"""What the sink tells of its work in the log."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from tests.spark.test_sink import Name, save
from tests.support.brokers import TestBroker
from tests.support.wire import Channel
from warren.spark.sink import writer
from warren.spark.sink.writer import BatchWriter

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(180),
    pytest.mark.parametrize("broker", ["warren"], indirect=True),
]

#: What a task logs on its way.
TOLD = re.compile(r"(\d+) rows so far, (\d+)/s, (\d+) unconfirmed")


@pytest.fixture
def gathered(spark: SparkSession) -> Iterator[None]:
    """Spark keeps what its Python processes log."""
    enabled = "spark.sql.pyspark.worker.logging.enabled"
    spark.conf.set(enabled, "true")
    yield
    spark.conf.set(enabled, "false")


def told(spark: SparkSession) -> list[str]:
    """What the sink has logged."""
    logs = spark.tvf.python_worker_logs()
    return [row.msg for row in logs.where("logger = 'warren.spark.sink.writer'").collect()]


@pytest.mark.usefixtures("gathered")
def test_tasks_tell_their_rate_in_the_log_that_spark_gathers(
    spark: SparkSession,
    broker: TestBroker,
    channel: Channel,
    name: Name,
) -> None:
    queue = name("told")
    channel.declare(queue)
    rows = spark.range(50).coalesce(1).selectExpr("CAST(id AS STRING) AS body")

    save(rows, broker, routingKey=queue)

    tasks = [line for line in told(spark) if line.startswith("task ")]
    assert any("50 rows confirmed" in line for line in tasks)


@pytest.mark.usefixtures("gathered")
def test_a_micro_batch_tells_its_sum_without_what_no_queue_took(
    spark: SparkSession,
    broker: TestBroker,
    channel: Channel,
    name: Name,
    tmp_path: Path,
) -> None:
    queue = name("sum")
    channel.declare(queue)
    spark.range(0, 50, 1, 2).selectExpr("CAST(id AS STRING) AS value").write.text(
        str(tmp_path / "in")
    )
    rows = spark.readStream.text(str(tmp_path / "in")).selectExpr(
        "value AS body", f"if(value < 43, '{queue}', 'nowhere') AS routing_key"
    )
    options = {"uri": broker.url, "onUnroutable": "drop", "checkpointLocation": f"{tmp_path}/c"}

    writer = rows.writeStream.format("rabbitmq").options(**options)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()

    own = SparkSession(spark.sparkContext, query._jsq.streamingQuery().sparkSessionForStream())
    (batch,) = [line for line in told(own) if line.startswith("batch 0:")]
    assert batch.startswith("batch 0: 43 rows confirmed in ")
    assert batch.endswith("/s), 7 dropped")


def test_a_task_tells_on_its_way_how_fast_it_is_and_how_much_is_unconfirmed(
    broker: TestBroker,
    channel: Channel,
    name: Name,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue = name("told")
    channel.declare(queue)
    given = {"uri": broker.url, "routingKey": queue}
    sink = BatchWriter(given, StructType([StructField("body", StringType())]), overwrite=False)
    rows = pa.RecordBatch.from_pydict({"body": [str(number) for number in range(6_000)]})
    monkeypatch.setattr(writer, "_TELL_EVERY_S", 0.0)
    caplog.set_level(logging.INFO, writer.__name__)

    done = sink.write(iter([rows]))

    said = [TOLD.fullmatch(line) for line in caplog.messages]
    on_its_way = [tuple(map(int, found.groups())) for found in said if found]
    assert [rows for rows, _, _ in on_its_way] == [2_000, 4_000, 6_000]
    assert all(rate > 0 and 0 <= waits <= rows for rows, rate, waits in on_its_way)
    assert any(waits for _, _, waits in on_its_way)
    assert (done.rows, channel.count(queue)) == (6_000, 6_000)


#: A write and a stream, by which nobody has set up a log.
_WRITES = """
import sys, warren.spark
url, queue, folder = sys.argv[1:]
spark = warren.spark.session()
options = {"uri": url, "routingKey": queue, "progress": "true"}
spark.range(50).selectExpr("CAST(id AS STRING) AS value").write.text(f"{folder}/in")
rows = spark.read.text(f"{folder}/in").withColumnRenamed("value", "body").coalesce(1)
rows.write.format("rabbitmq").options(**options).mode("append").save()
rows = spark.readStream.text(f"{folder}/in").withColumnRenamed("value", "body").coalesce(1)
writer = rows.writeStream.format("rabbitmq").options(**options)
writer = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
writer.start().awaitTermination()
"""


def test_a_write_says_on_stderr_how_it_goes_where_that_is_wanted(
    broker: TestBroker, channel: Channel, name: Name, tmp_path: Path
) -> None:
    queue = name("told")
    channel.declare(queue)

    done = subprocess.run(
        [sys.executable, "-c", _WRITES, broker.url, queue, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    said = re.findall(
        r"^[-\d]+ [:,\d]+ warren.spark.sink.writer: (.*) in ", done.stderr, re.MULTILINE
    )
    written = ["task 0: 50 rows confirmed", "50 rows confirmed"]
    assert said == [*written, "task 0: 50 rows confirmed", "batch 0: 50 rows confirmed"]
    assert channel.count(queue) == 100
