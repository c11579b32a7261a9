"""``warren.spark.session()`` and ``read_queues()``: what a user gets without set-up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import warren.spark
from tests.support.brokers import TestBroker
from tests.support.wire import Channel

pytestmark = [pytest.mark.timeout(180)]


@pytest.mark.spark
def test_a_session_has_arrow_utc_and_this_python(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    seen = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    assert seen == [sys.executable]


@pytest.mark.spark
def test_a_session_is_the_one_that_runs_already(spark: SparkSession) -> None:
    assert warren.spark.session() is spark


@pytest.mark.spark
def test_spark_shows_no_password_in_a_plan(spark: SparkSession, tmp_path: Path) -> None:
    rows = warren.spark.read_queues(
        spark, "a", uri="amqp://me:hunter2@127.0.0.1/", ledger=str(tmp_path)
    )
    plan = rows._jdf.queryExecution().toString()
    assert "hunter2" not in plan


@pytest.mark.spark
def test_queues_are_read_with_one_call(
    spark: SparkSession,
    broker: TestBroker,
    channel: Channel,
    name: Callable[[str], str],
    tmp_path: Path,
) -> None:
    queue = name("one-call")
    channel.declare(queue)
    for number in range(5):
        channel.publish(queue, b"%d" % number)
    channel.sync()

    rows = warren.spark.read_queues(
        spark,
        [queue],
        uri=broker.url,
        ledger=str(tmp_path),
        stream=False,
        drain_timeout_ms=5_000,
        peek=False,
    )
    assert sorted(bytes(row.body) for row in rows.select("body").collect()) == [
        b"%d" % number for number in range(5)
    ]


def test_importing_it_needs_neither_spark_nor_java() -> None:
    code = "import sys, warren.spark; sys.exit('pyspark' in sys.modules)"
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
    )


@pytest.mark.spark
def test_what_java_puts_aside_is_where_spark_was_told(spark: SparkSession) -> None:
    assert spark._jvm is not None
    told = spark.conf.get("spark.local.dir")
    assert spark._jvm.java.lang.System.getProperty("java.io.tmpdir") == told
