"""What a user of Spark is told: the reason, in one line, and nothing of how it came there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import warren
from tests.spark.queries import Query
from tests.support.wire import Channel

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]


def told(action: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as error:
        action()
    return str(error.value)


def test_a_slip_in_an_option_is_told_without_a_traceback(spark: SparkSession) -> None:
    words = told(lambda: spark.read.format("rabbitmq").option("queus", "orders").load())

    assert "did you mean 'queues'?" in words
    assert "Traceback" not in words


def test_a_missing_queue_is_told_without_a_traceback(
    spark: SparkSession, embedded: warren.Broker, tmp_path: Path
) -> None:
    query = Query(spark, embedded.url, tmp_path)
    options = {"url": embedded.url, "ledger": str(tmp_path / "batch"), "queues": "nowhere"}
    frame = spark.read.format("rabbitmq").options(**options).load()

    for action in (frame.count, lambda: query.run("nowhere")):
        words = told(action)
        assert "no queue 'nowhere' in vhost '/': declare it" in words
        assert "Traceback" not in words


def test_a_schema_without_columns_takes_nothing(
    spark: SparkSession, embedded: warren.Broker, wire: Channel, tmp_path: Path
) -> None:
    wire.declare("columnless")
    wire.publish("columnless", b"x")
    wire.sync()
    options = {"url": embedded.url, "ledger": str(tmp_path / "ledger"), "queues": "columnless"}
    reader = spark.read.format("rabbitmq").options(**options).schema(StructType([]))

    words = told(lambda: reader.load().count())

    assert "names no column: leave it out" in words
    assert wire.count("columnless") == 1


def test_rows_that_are_not_taken_are_told_without_a_traceback(
    spark: SparkSession, embedded: warren.Broker
) -> None:
    rows = spark.range(1).selectExpr("CAST(id AS STRING) AS body")
    writer = rows.write.format("rabbitmq").options(url=embedded.url, exchange="nowhere")

    words = told(lambda: writer.option("routingKey", "a").mode("append").save())

    assert "no exchange 'nowhere'" in words
    assert "Traceback" not in words


def test_a_function_of_the_users_keeps_its_traceback(spark: SparkSession) -> None:
    words = told(lambda: spark.range(1).rdd.map(lambda _: 1 // 0).collect())

    assert "Traceback" in words
