"""The Spark sink beside a raw socket: ``python -m bench.spark_sink``.

raw    prepared bytes on one socket, confirms counted: the same message again and again
ids    the same, but every message with an id of its own, as the sink's have: a broker that
       remembers what it has read of a header gains nothing
task   what a task of the sink does, without Spark around it: Arrow batches to confirmed messages
spark  ``df.write.format("rabbitmq")`` of the same rows by one task, in a session that is warm

All publish the same bodies to a queue that is deleted afterwards. A round is one of each, so what
disturbs the machine disturbs all; medians are shown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import uuid
from collections.abc import Callable
from itertools import repeat

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, StructType

import warren.spark
from bench.brokers import launchers
from bench.load import frames
from bench.load.link import Link
from bench.load.publishing import BATCH, Batch, Publisher
from bench.load.setup import unique
from warren.client.publish_columns import Routes, encode_messages, join_properties, numbered_ids
from warren.spark.writer import BatchWriter

BODY_BYTES = 200
BATCH_ROWS = 10_000


def with_queue(url: str, work: Callable[[str], float]) -> float:
    """Seconds that ``work`` says it took, with a queue of its own."""
    with Link(url) as link:
        queue = unique("sink")
        link.call(frames.declare_queue(queue), (50, 11))
        try:
            return work(queue)
        finally:
            link.call(frames.delete_queue(queue), (50, 41))


def raw(url: str, count: int, *, ids: bool = False) -> float:
    def work(queue: str) -> float:
        batches = _with_ids(queue, count) if ids else _equal(queue, count)
        with Link(url) as link:
            return Publisher(link).run(batches).seconds

    return with_queue(url, work)


def _equal(queue: str, count: int) -> list[Batch]:
    return [(frames.publish("", queue, bytes(BODY_BYTES)) * BATCH, BATCH)] * (count // BATCH)


def _with_ids(queue: str, count: int) -> list[Batch]:
    ids = numbered_ids(f"{uuid.uuid4()}-0-0-", 0, count)
    listed = join_properties({"message_id": ids}, {"delivery_mode": b"\1"}, count)
    publish = Routes(mandatory=True).frame("", queue)
    messages = encode_messages(repeat(publish), listed, [bytes(BODY_BYTES)] * count, 131072)
    return [(b"".join(messages[at : at + BATCH]), BATCH) for at in range(0, count, BATCH)]


def task(url: str, count: int) -> float:
    batch = pa.record_batch([pa.array([bytes(BODY_BYTES)] * BATCH_ROWS)], names=["body"])
    schema = StructType().add("body", BinaryType())

    def work(queue: str) -> float:
        options = {"uri": url, "routingKey": queue, "deliveryMode": "1"}
        writer = BatchWriter(options, schema, overwrite=False)
        before = time.perf_counter()
        writer.write(iter([batch] * (count // BATCH_ROWS)))
        return time.perf_counter() - before

    return with_queue(url, work)


def through_spark(spark: SparkSession, url: str, count: int) -> float:
    rows = spark.range(0, count, 1, 1).selectExpr(f"repeat('x', {BODY_BYTES}) AS body")

    def work(queue: str) -> float:
        before = time.perf_counter()
        rows.write.format("rabbitmq").options(uri=url, routingKey=queue, deliveryMode="1").mode(
            "append"
        ).save()
        return time.perf_counter() - before

    return with_queue(url, work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", default="warren,rabbitmq")
    parser.add_argument("--count", type=int, default=100_000, help="messages a round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    spark = warren.spark.session("bench")
    with launchers(options.brokers.split(",")) as brokers:
        for launcher in brokers:
            running = launcher.start()
            try:
                told = measure(spark, running.url, options.count, options.rounds)
            finally:
                running.stop()
            print(json.dumps({"broker": launcher.name, **told}))
    spark.stop()


def measure(spark: SparkSession, url: str, count: int, rounds: int) -> dict[str, float]:
    through_spark(spark, url, count // 10)  # the first one compiles
    ways: dict[str, Callable[[], float]] = {
        "raw": lambda: raw(url, count),
        "ids": lambda: raw(url, count, ids=True),
        "task": lambda: task(url, count),
        "spark": lambda: through_spark(spark, url, count),
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in ways.items():
            took[name].append(run())
    rates = {name: count / statistics.median(times) for name, times in took.items()}
    told = {f"{name}_per_s": round(rate) for name, rate in rates.items()}
    return {
        **told,
        **{
            f"{ours}_to_{theirs}": round(rates[ours] / rates[theirs], 2)
            for ours in ("task", "spark")
            for theirs in ("raw", "ids")
        },
    }


if __name__ == "__main__":
    main()
