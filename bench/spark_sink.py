"""The Spark sink beside a raw socket: ``python -m bench.spark_sink``.

raw    prepared bytes on one socket, confirms counted: the same message again and again
ids    the same, but every message with an id of its own: the messages that the sink sends, so
       this is what its share is taken of. Of equal ones a broker may read less than all
task   what a task of the sink does, without Spark around it: Arrow batches to confirmed messages
spark  ``df.write.format("rabbitmq")`` of the same rows by one task, in a session that is warm

All publish bodies of 200 octets to a queue that is deleted afterwards. A round is one of each, so
what disturbs the machine disturbs all; medians are shown. Exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
import uuid
from collections.abc import Callable
from functools import partial
from itertools import repeat

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import BinaryType, StructType

import warren.spark
from bench.brokers import launchers
from bench.load import frames
from bench.load.link import Link
from bench.load.publishing import Batch, Publisher
from bench.load.setup import unique
from bench.spark_report import Bar, Line, Report
from warren.client.publish_columns import Routes, encode_messages, join_properties, numbered_ids
from warren.spark.sink.writer import BatchWriter

BODY_BYTES = 200
BATCH_ROWS = 10_000
FIRST = 50_000
#: The raw socket has as many messages under way as the sink, and writes as many at a time.
WINDOW = 5_000
BATCH = 800


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
            return Publisher(link, WINDOW).run(batches).seconds

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


def measure(
    spark: SparkSession, url: str, options: argparse.Namespace, say: Callable[[str], None]
) -> dict[str, float]:
    through_spark(spark, url, 50_000)  # the first one compiles
    # So many that starting a task doesn't count: brokers differ by a factor of ten.
    count = _whole_batches(options.seconds * FIRST / raw(url, FIRST))
    say(f"{count:,} messages a round")
    ways: dict[str, Callable[[], float]] = {
        "raw": lambda: raw(url, count),
        "ids": lambda: raw(url, count, ids=True),
        "task": lambda: task(url, count),
        "spark": lambda: through_spark(spark, url, count),
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(options.rounds):
        say(f"round {number + 1} of {options.rounds}")
        for name, run in ways.items():
            took[name].append(run())
    rates = {name: count / statistics.median(times) for name, times in took.items()}
    return rates | {
        f"{ours} of {theirs}": rates[ours] / rates[theirs]
        for ours in ("task", "spark")
        for theirs in ("raw", "ids")
    }


def _whole_batches(messages: float) -> int:
    step = math.lcm(BATCH, BATCH_ROWS)
    return max(step, round(messages / step) * step)


#: Title, name, unit and bar of every line.
LINES = (
    ("raw socket, equal messages, confirmed", "raw", "rate", Bar()),
    ("raw socket, an id each, confirmed", "ids", "rate", Bar()),
    ("a task of the sink", "task", "rate", Bar()),
    ("df.write through Spark", "spark", "rate", Bar()),
    ("a task, share of raw, equal messages", "task of raw", "ratio", Bar()),
    ("through Spark, share of raw, equal messages", "spark of raw", "ratio", Bar()),
    ("a task, share of raw", "task of ids", "ratio", Bar()),
    ("through Spark, share of raw", "spark of ids", "ratio", Bar(at_least=0.70)),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.spark_sink",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--broker", action="append", choices=("warren", "rabbitmq"))
    parser.add_argument("--seconds", type=float, default=4.0, help="how long a raw round takes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="keep the result in bench/results")
    options = parser.parse_args()
    report = Report("sink", seconds_a_round=options.seconds, rounds=options.rounds)
    report.say("Spark starts")
    spark = warren.spark.session("bench")
    found: dict[str, dict[str, float]] = {}
    with launchers(options.broker or ("warren", "rabbitmq")) as brokers:
        for launcher in brokers:
            running = launcher.start()
            report.versions[launcher.name] = running.version
            try:
                say = partial(_say_on, report, launcher.name)
                found[launcher.name] = measure(spark, running.url, options, say)
            finally:
                running.stop()
    spark.stop()
    told = [
        Line(title, unit, {broker: each[name] for broker, each in found.items()}, bar)
        for title, name, unit, bar in LINES
    ]
    return report.end(told, keep=options.keep)


def _say_on(report: Report, broker: str, words: str) -> None:
    report.say(f"{broker}: {words}")


if __name__ == "__main__":
    sys.exit(main())
