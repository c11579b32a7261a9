"""Reads the shop's queues into a table for each message type, exactly once.

    python shop.py amqp://guest:guest@localhost:5672/ ./shop-data          # until Ctrl-C
    python shop.py amqp://guest:guest@localhost:5672/ ./shop-data --once   # what is there now

Plain PySpark: nothing of warren is imported but the session, and any other session does as well.
"""

import argparse
import gzip
import zlib
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as f

import warren.spark

FIELDS = ("order_id", "country", "cents")
SCHEMA = "order_id INT, country STRING, cents INT, _bad STRING"
TABLES = {"order": "orders", "payment": "payments"}
#: What the quarantine keeps of a message: enough to publish it again.
KEPT = ("message_id", "queue", "offset", "type", "content_encoding", "body")
UNPACKED = (
    "message_id STRING, queue STRING, offset LONG, type STRING, content_encoding STRING, "
    "body BINARY, text STRING, problem STRING"
)


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


def reason() -> Column:
    """Why a row belongs in no table; null if it belongs in one.

    Every message must get a reason or a table. What is compared with null is neither true nor
    false, so a type that is not there needs a line of its own.
    """
    found = f.when(f.col("problem").isNotNull(), f.col("problem"))
    found = found.when(f.col("type").isNull(), "no type")
    found = found.when(~f.col("type").isin(*TABLES), "unknown type")
    found = found.when(f.length("body") == 0, "empty")
    found = found.when(
        f.col("row").isNull() | f.col("row._bad").isNotNull(), "not JSON, or of other types"
    )
    for field in FIELDS:
        found = found.when(f.col(f"row.{field}").isNull(), f"no field '{field}'")
    return found


class Tables:
    """Writes a micro-batch. A batch that is done again overwrites its own folders: exactly once."""

    def __init__(self, url: str, folder: str) -> None:
        self.url, self.folder = url, folder
        #: Rows that were written to each table.
        self.rows: Counter[str] = Counter()

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        rows = (
            batch.select(*KEPT)
            .mapInArrow(unpack, UNPACKED)
            .withColumn("row", f.from_json("text", SCHEMA, {"columnNameOfCorruptRecord": "_bad"}))
            .withColumn("reason", reason())
            .persist()
        )
        good = f.col("reason").isNull()
        for kind, table in TABLES.items():
            mine = rows.where(good & (f.col("type") == kind))
            fields = [f"row.{field}" for field in FIELDS]
            self.save(mine.select("message_id", *fields), table, batch_id)
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
        sold = orders.groupBy("row.country").agg(f.sum("row.cents").alias("cents"))
        # The number of a row is a part of its id: done again, rows must come in the same order.
        sold = sold.coalesce(1).sortWithinPartitions("country")
        messages = sold.select(
            f.to_json(f.struct(f.lit(batch_id).alias("batch_id"), "country", "cents")).alias(
                "body"
            ),
            f.concat(f.lit("sold."), "country").alias("routing_key"),
        )
        messages.write.format("rabbitmq").options(
            url=self.url, exchange="shop.results", contentType="application/json"
        ).mode("append").save()


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Reads the shop's queues into a table for each message type, exactly once."
    )
    parser.add_argument("url", help="such as amqp://guest:guest@localhost:5672/")
    parser.add_argument("folder", help="where tables, ledger and checkpoint go")
    parser.add_argument("--once", action="store_true", help="end when the queues are empty")
    options = parser.parse_args()
    spark = warren.spark.session("shop")
    rows = (
        spark.readStream.format("rabbitmq")
        .option("url", options.url)
        .option("queues", "shop.de,shop.fr,shop.us,shop.jp")
        .option("ledger", f"{options.folder}/ledger")
        .option("maxMessagesPerTrigger", 20_000)
        .load()
    )
    tables = Tables(options.url, options.folder)
    writer = rows.writeStream.foreachBatch(tables)
    writer = writer.option("checkpointLocation", f"{options.folder}/checkpoint")
    writer = writer.trigger(availableNow=True) if options.once else writer
    writer.start().awaitTermination()  # Ctrl-C ends it when a batch is done
    written = ", ".join(f"{number:,} in {table}" for table, number in tables.rows.items())
    print(f"{tables.rows.total():,} events: {written}" if written else "no events were there")
    if not options.once:
        print("stopped; the next run goes on from here")


if __name__ == "__main__":
    main()
