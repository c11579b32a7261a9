"""The Spark job of the shop, as a process of its own: queues to typed tables, exactly once.

Reads the queues as one stream. Each micro-batch is unpacked, read as JSON by its message type and
written to the table of that type; what can't be read goes to the quarantine, with the reason. Every
batch overwrites its own folder of a table, so a batch that is done again changes nothing: with a
source that gives the same rows again, that is exactly once.

Told by the command line: broker, folder, rows a batch. It ends when its stdin says ``finish`` and
everything is read; when stdin closes, at once. Tells on stdout what happens, a JSON object a line.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

import warren.spark
from warren.cli.scenes.shop_events import QUARANTINE, QUEUES, RESULTS

#: Message type to table and schema. The first field must be there.
SCHEMAS = {
    "order": ("orders", "order_id INT, country STRING, customer STRING, items INT, cents INT"),
    "payment": ("payments", "order_id INT, country STRING, method STRING, cents INT"),
    "shipment": ("shipments", "order_id INT, country STRING, carrier STRING, parcels INT"),
}
#: What the quarantine keeps of a message as it came.
_KEPT = ("queue", "offset", "type", "content_encoding", "body")
_UNPACKED = (
    "event LONG, queue STRING, offset LONG, type STRING, content_encoding STRING, body BINARY, "
    "text STRING, problem STRING"
)


# -- the pipeline --------------------------------------------------------------------------------
def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Bodies as text, or the problem with them."""
    for batch in batches:
        encodings = batch.column("content_encoding").to_pylist()
        bodies = batch.column("body").to_pylist()
        unpacked = [_text(*each) for each in zip(bodies, encodings, strict=True)]
        yield pa.RecordBatch.from_arrays(
            [
                batch.column("message_id").cast(pa.int64()),
                *(batch.column(name) for name in _KEPT),
                pa.array([text for text, _ in unpacked], pa.string()),
                pa.array([problem for _, problem in unpacked], pa.string()),
            ],
            names=["event", *_KEPT, "text", "problem"],
        )


def _text(body: bytes, encoding: str | None) -> tuple[str | None, str | None]:
    try:
        return (gzip.decompress(body) if encoding == "gzip" else body).decode(), None
    except (OSError, EOFError, zlib.error):
        return None, "not gzip, as its content-encoding says"
    except UnicodeDecodeError:
        return None, "not UTF-8"


def parsed(rows: DataFrame) -> DataFrame:
    """A column for each type, and what is wrong with rows that fit none."""
    problem: Column = f.col("problem")
    for kind, (table, schema) in SCHEMAS.items():
        mine = f.col("type") == kind
        read = f.from_json("text", f"{schema}, _bad STRING", {"columnNameOfCorruptRecord": "_bad"})
        rows = rows.withColumn(table, f.when(mine & f.col("problem").isNull(), read))
        problem = f.coalesce(
            problem,
            f.when(mine & f.col(f"{table}._bad").isNotNull(), f.lit("not JSON")),
            f.when(mine & f.col(f"{table}.order_id").isNull(), f.lit("no field 'order_id'")),
        )
    known = f.col("type").isin(*SCHEMAS)
    unknown = f.concat(f.lit("unknown type '"), f.col("type"), f.lit("'"))
    # What is compared with null is neither true nor false: a missing type is judged by itself.
    untyped = f.when(f.col("type").isNull(), f.lit("no type"))
    return rows.withColumn("reason", f.coalesce(problem, untyped, f.when(~known, unknown)))


class Tables:
    """What one micro-batch does."""

    def __init__(self, uri: str, folder: str) -> None:
        self._uri, self._folder = uri, folder

    def write(self, batch: DataFrame, batch_id: int) -> None:
        columns = batch.select("message_id", *_KEPT)
        rows = parsed(columns.mapInArrow(unpack, _UNPACKED)).persist()
        good = f.col("reason").isNull()
        for kind, (table, schema) in SCHEMAS.items():
            names = [field.split()[0] for field in schema.split(", ")]
            mine = rows.where(good & (f.col("type") == kind))
            self._save(
                mine.select("event", *(f"{table}.{name}" for name in names)), table, batch_id
            )
        bad = rows.where(~good).select("event", *_KEPT, "reason")
        self._save(bad, QUARANTINE, batch_id)
        self._publish(rows.where(good & (f.col("type") == "order")), batch_id)
        rows.unpersist()

    def _save(self, rows: DataFrame, table: str, batch_id: int) -> None:
        # With a new checkpoint batches are counted from 0 again: the query's id keeps them from
        # overwriting what the old query wrote.
        query_id = rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        path = f"{self._folder}/{table}/batch_id={query_id}-{batch_id}"
        rows.coalesce(1).write.mode("overwrite").parquet(path)

    def _publish(self, orders: DataFrame, batch_id: int) -> None:
        """What was sold, by country, as messages."""
        sold = orders.groupBy("orders.country").agg(
            f.count("*").alias("orders"), f.sum("orders.cents").alias("cents")
        )
        fields = (f.lit(batch_id).alias("batch_id"), "country", "orders", "cents")
        # The number of a row is a part of its id: done again, rows must come in the same order.
        sold = sold.coalesce(1).sortWithinPartitions("country")
        messages = sold.select(
            f.to_json(f.struct(*fields)).alias("body"),
            f.concat(f.lit("sold."), f.col("country")).alias("routing_key"),
        )
        messages.write.format("rabbitmq").options(
            url=self._uri, exchange=RESULTS, contentType="application/json", type="sold"
        ).mode("append").save()


def summary(spark: SparkSession, folder: str) -> DataFrame:
    """By country: what was ordered, paid and shipped, and what the orders are worth."""
    rows = [
        spark.read.parquet(f"{folder}/{table}").select(
            "country",
            f.lit(table).alias("table"),
            (f.col("cents") if kind == "order" else f.lit(0)).alias("cents"),
        )
        for kind, (table, _) in SCHEMAS.items()
    ]
    counts = [f.count_if(f.col("table") == table).alias(table) for table, _ in SCHEMAS.values()]
    every = rows[0].unionByName(rows[1]).unionByName(rows[2])
    return every.groupBy("country").agg(*counts, f.sum("cents").alias("cents"))


# -- the process ---------------------------------------------------------------------------------
def say(event: str, **facts: Any) -> None:
    print(json.dumps({"event": event, **facts}), flush=True)


def _obey(query: StreamingQuery, finished: threading.Event) -> None:
    """Do what stdin says; without a word more, there is nobody left to work for."""
    for line in sys.stdin:
        if line.strip() == "finish":
            query.processAllAvailable()
            finished.set()
    os._exit(1)


def _watch(query: StreamingQuery, finished: threading.Event) -> None:
    told, known = -1, 0
    while True:
        ended = finished.wait(0.1)
        for progress in query.recentProgress:
            if progress["batchId"] > told and (rows := _position(progress) - known):
                told, known = progress["batchId"], known + rows
                say("batch", id=told, rows=rows, ms=progress["durationMs"]["triggerExecution"])
        if ended:
            return
        if not query.isActive:
            raise RuntimeError(f"the query ended: {query.exception()}")


def _position(progress: Any) -> int:
    """How many messages have been read. Spark's own count leaves out tasks that were lost."""
    offset = json.loads(progress["sources"][0]["endOffset"])
    return sum(offset["queues"].values())


def main(uri: str, folder: str, rows_a_batch: str) -> None:
    before = time.monotonic()
    spark = warren.spark.session(
        "shop",
        master="local[2,4]",  # two cores; a task may fail three times
        **{
            "spark.local.dir": f"{folder}/spark",
            "spark.sql.shuffle.partitions": 2,
            # For a minute, it does not pay to compile twice and to collect garbage in parallel.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.streaming.stopTimeout": "20s",
            # Every batch makes its columns anew; nobody has to know on which line.
            "spark.python.sql.dataFrameDebugging.enabled": "false",
        },
    )
    say("session", seconds=time.monotonic() - before)
    rows = warren.spark.read_queues(
        *(spark, QUEUES),
        uri=uri,
        ledger=f"{folder}/ledger",
        max_messages_per_trigger=rows_a_batch,
    )
    query = (
        rows.writeStream.foreachBatch(Tables(uri, folder).write)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .start()
    )
    finished = threading.Event()
    threading.Thread(target=_obey, args=(query, finished), daemon=True, name="stdin").start()
    _watch(query, finished)
    query.stop()
    _report(spark, folder)
    spark.stop()


def _report(spark: SparkSession, folder: str) -> None:
    """Make the summary table, and tell what is in it and which events are in the others."""
    summary(spark, folder).write.mode("overwrite").parquet(f"{folder}/summary")
    written = spark.read.parquet(f"{folder}/summary").orderBy("country")
    say("summary", rows=[row.asDict() for row in written.collect()])
    for table, columns in (
        *((table, ["event"]) for table, _ in SCHEMAS.values()),
        (QUARANTINE, ["event", "reason"]),
    ):
        rows = spark.read.parquet(f"{folder}/{table}").select(*columns).toArrow().to_pylist()
        found = "".join(f"{json.dumps([row[name] for name in columns])}\n" for row in rows)
        Path(folder, f"{table}.events").write_text(found)
    say("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
