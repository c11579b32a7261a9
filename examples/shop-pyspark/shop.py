"""Reads the shop's queues into a table for each message type, exactly once.

    python shop.py amqp://guest:guest@localhost:5672/ ./shop-data          # until Ctrl-C
    python shop.py amqp://guest:guest@localhost:5672/ ./shop-data --once   # what is there now

Plain PySpark: nothing of warren is imported but the session, and any other session does as well.
"""

import argparse
import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterator
from threading import Event

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import SourceProgress

import warren.spark

#: By message type: its table, and the fields that a row must have.
TABLES = {
    "order": ("orders", "order_id INT, country STRING, cents INT"),
    "payment": ("payments", "order_id INT, country STRING, cents INT, method STRING"),
    "shipment": ("shipments", "order_id INT, country STRING, carrier STRING"),
}
ROWS_A_BATCH = 5_000
#: What the quarantine keeps of a message: enough to publish it again.
KEPT = ("message_id", "queue", "offset", "type", "content_encoding", "body")
UNPACKED = (
    "message_id STRING, queue STRING, offset LONG, type STRING, content_encoding STRING, "
    "body BINARY, text STRING, problem STRING"
)


# -- messages to rows ------------------------------------------------------------------------------
def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Bodies as text, or what is wrong with them."""
    for batch in batches:
        kept = [batch.column(name) for name in KEPT]
        encodings, bodies = (column.to_pylist() for column in kept[-2:])
        texts = [text_of(*each) for each in zip(bodies, encodings, strict=True)]
        columns = [pa.array(column, pa.string()) for column in zip(*texts, strict=True)]
        if texts:
            yield pa.RecordBatch.from_arrays([*kept, *columns], [*KEPT, "text", "problem"])


def text_of(body: bytes, encoding: str | None) -> tuple[str | None, str | None]:
    try:
        return (gzip.decompress(body) if encoding == "gzip" else body).decode(), None
    except (OSError, EOFError, zlib.error):
        return None, "not gzip, as its content encoding says"
    except UnicodeDecodeError:
        return None, "not UTF-8"


def fields(schema: str) -> list[str]:
    return [field.split()[0] for field in schema.split(", ")]


def parsed(rows: DataFrame) -> DataFrame:
    """A column for each table, and the reason why a row belongs in none; null if it has a table.

    Every message must get a reason or a table. What is compared with null is neither true nor
    false, so a type that is not there needs a line of its own.
    """
    kind = f.col("type")
    reasons: list[Column] = [
        f.col("problem"),
        f.when(kind.isNull(), "no type"),
        f.when(~kind.isin(*TABLES), "unknown type"),
        f.when(f.length("body") == 0, "empty"),
    ]
    for name, (table, schema) in TABLES.items():
        row = f.from_json("text", f"{schema}, _bad STRING", {"columnNameOfCorruptRecord": "_bad"})
        rows = rows.withColumn(table, f.when(kind == name, row))
        bad = f.col(table).isNull() | f.col(f"{table}._bad").isNotNull()
        reasons.append(f.when((kind == name) & bad, "not JSON, or of other types"))
        for field in fields(schema):
            lacks = f.col(f"{table}.{field}").isNull()
            reasons.append(f.when((kind == name) & lacks, f"no field '{field}'"))
    return rows.withColumn("reason", f.coalesce(*reasons))


# -- rows to tables --------------------------------------------------------------------------------
class Tables:
    """Writes a micro-batch. A batch that is done again overwrites its own folders: exactly once."""

    def __init__(self, url: str, folder: str) -> None:
        self.url, self.folder = url, folder
        #: Rows that were written to each table.
        self.rows: Counter[str] = Counter()

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        rows = parsed(batch.select(*KEPT).mapInArrow(unpack, UNPACKED)).persist()
        good = f.col("reason").isNull()
        for kind, (table, schema) in TABLES.items():
            mine = rows.where(good & (f.col("type") == kind))
            columns = [f"{table}.{field}" for field in fields(schema)]
            self.save(mine.select("message_id", *columns), table, batch_id)
        self.save(rows.where(~good).select(*KEPT, "reason"), "quarantine", batch_id)
        self.publish(rows.where(good & (f.col("type") == "order")), batch_id)
        rows.unpersist()

    def save(self, rows: DataFrame, table: str, batch_id: int) -> None:
        # With a new checkpoint batches are counted from 0 again: the query's id keeps them from
        # overwriting what the old query wrote.
        query_id = rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
        path = f"{self.folder}/{table}/batch_id={query_id}-{batch_id}"
        seen = Observation()
        rows = rows.coalesce(1).observe(seen, f.count(f.lit(1)).alias("rows"))
        rows.write.mode("overwrite").parquet(path)
        self.rows[table] += seen.get["rows"]

    def publish(self, orders: DataFrame, batch_id: int) -> None:
        """What was sold, by country: at least once, with ids that tell a repetition."""
        sold = orders.groupBy("orders.country").agg(f.sum("orders.cents").alias("cents"))
        # The number of a row is a part of its id: done again, rows must come in the same order.
        sold = sold.coalesce(1).sortWithinPartitions("country")
        body = f.struct(f.lit(batch_id).alias("batch_id"), "country", "cents")
        messages = sold.select(
            f.to_json(body).alias("body"), f.concat(f.lit("sold."), "country").alias("routing_key")
        )
        messages.write.format("rabbitmq").options(
            url=self.url, exchange="shop.results", contentType="application/json"
        ).mode("append").save()


def summary(spark: SparkSession, folder: str) -> DataFrame:
    """By country: how many orders, payments and shipments, and what the orders are worth."""
    tables = [table for table, _ in TABLES.values()]
    first, *others = [
        spark.read.parquet(f"{folder}/{table}").withColumn("table", f.lit(table))
        for table in tables
    ]
    for other in others:
        first = first.unionByName(other, allowMissingColumns=True)
    counts = [f.count_if(f.col("table") == table).alias(table) for table in tables]
    sold = f.sum(f.when(f.col("table") == "orders", f.col("cents"))).alias("sold_cents")
    return first.groupBy("country").agg(*counts, sold).orderBy("country")


# -- the program -----------------------------------------------------------------------------------
class Progress(StreamingQueryListener):
    """Prints a line a batch."""

    def __init__(self) -> None:
        self.ended = Event()

    def onQueryProgress(self, event: object) -> None:
        done = event.progress
        if done.numInputRows:
            seconds = done.durationMs["triggerExecution"] / 1000
            print(
                f"batch {done.batchId}: {done.numInputRows:,} rows in {seconds:.1f} s "
                f"({done.numInputRows / seconds:,.0f} rows/s), backlog {backlog(done.sources[0])}"
            )

    def onQueryTerminated(self, event: object) -> None:
        self.ended.set()

    def onQueryStarted(self, event: object) -> None: ...

    def onQueryIdle(self, event: object) -> None: ...


def backlog(source: SourceProgress) -> str:
    """How many messages a batch has left in the queues."""
    latest, end = position(source.latestOffset), position(source.endOffset)
    return "not asked for" if latest is None or end is None else f"{latest - end:,}"


def position(offset: str) -> int | None:
    """How many messages of all queues are in front of it; None of an offset that is not there: for
    a batch that was cut off, and is done again, Spark asks nobody what there is."""
    found = json.loads(offset) if offset.startswith("{") else None
    return sum(found["queues"].values()) if found else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Reads the shop's queues into a table for each message type, exactly once."
    )
    parser.add_argument("url", help="such as amqp://guest:guest@localhost:5672/")
    parser.add_argument("folder", help="where tables, ledger and checkpoint go")
    parser.add_argument("--once", action="store_true", help="end when the queues are empty")
    options = parser.parse_args()
    spark = warren.spark.session("shop")
    spark.streams.addListener(progress := Progress())
    rows = (
        spark.readStream.format("rabbitmq")
        .option("url", options.url)
        .option("queues", "shop.de,shop.fr,shop.us,shop.jp")
        .option("ledger", f"{options.folder}/ledger")
        .option("maxMessagesPerTrigger", ROWS_A_BATCH)
        .load()
    )
    tables = Tables(options.url, options.folder)
    writer = rows.writeStream.foreachBatch(tables)
    writer = writer.option("checkpointLocation", f"{options.folder}/checkpoint")
    writer = writer.trigger(availableNow=True) if options.once else writer
    writer.start().awaitTermination()  # Ctrl-C ends it when a batch is done
    progress.ended.wait(10)  # its lines come from another thread
    spark.streams.removeListener(progress)
    try:
        found = summary(spark, options.folder)
    except AnalysisException as error:  # no batch has been done yet: the first makes all tables
        if error.getCondition() not in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
            raise
    else:
        found.write.mode("overwrite").parquet(f"{options.folder}/summary")
        spark.read.parquet(f"{options.folder}/summary").orderBy("country").show()
    written = ", ".join(f"{number:,} in {table}" for table, number in tables.rows.items())
    print(f"{tables.rows.total():,} events: {written}" if written else "no events were there")
    if not options.once:
        print("stopped; the next run goes on from here")


if __name__ == "__main__":
    main()
