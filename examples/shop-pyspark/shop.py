"""Reads the shop's queues into a table for each message type, exactly once.

    python shop.py amqp://guest:guest@localhost:5672/ ./shop-data          # until Ctrl-C
    python shop.py amqp://guest:guest@localhost:5672/ ./shop-data --once   # what is there now

Plain PySpark: nothing of warren is imported but the session, and any other session does as well.
"""

import argparse
import gzip
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import warren.spark

SCHEMA = "order_id INT, country STRING, cents INT, _bad STRING"
TABLES = {"order": "orders", "payment": "payments"}


def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Bodies as text; None where the content encoding is not what it says."""
    for batch in batches:
        texts = []
        for body, encoding in zip(
            batch.column("body").to_pylist(),
            batch.column("content_encoding").to_pylist(),
            strict=True,
        ):
            try:
                texts.append((gzip.decompress(body) if encoding == "gzip" else body).decode())
            except (OSError, EOFError, UnicodeDecodeError):
                texts.append(None)
        names = ["message_id", "queue", "offset", "type"]
        columns = [batch.column(name) for name in names]
        yield pa.RecordBatch.from_arrays([*columns, pa.array(texts, pa.string())], [*names, "text"])


class Tables:
    """Writes a micro-batch. A batch that is done again overwrites its own folders: exactly once."""

    def __init__(self, uri: str, folder: str) -> None:
        self.uri, self.folder = uri, folder

    def write(self, batch: DataFrame, batch_id: int) -> None:
        columns = ["message_id", "queue", "offset", "type", "content_encoding", "body"]
        schema = "message_id STRING, queue STRING, offset LONG, type STRING, text STRING"
        rows = (
            batch.select(columns)
            .mapInArrow(unpack, schema)
            .withColumn("row", f.from_json("text", SCHEMA, {"columnNameOfCorruptRecord": "_bad"}))
            .withColumn(
                "reason",
                f.when(f.col("text").isNull(), "can't be unpacked")
                .when(f.col("row._bad").isNotNull(), "not JSON")
                .when(~f.col("type").isin(*TABLES), "unknown type"),
            )
            .persist()
        )
        for kind, table in TABLES.items():
            good = rows.where(f.col("reason").isNull() & (f.col("type") == kind))
            self.save(
                good.select("message_id", "row.order_id", "row.country", "row.cents"),
                table,
                batch_id,
            )
        bad = rows.where(f.col("reason").isNotNull())
        self.save(bad.drop("row"), "quarantine", batch_id)
        self.publish(rows.where(f.col("reason").isNull() & (f.col("type") == "order")), batch_id)
        rows.unpersist()

    def save(self, rows: DataFrame, table: str, batch_id: int) -> None:
        path = f"{self.folder}/{table}/batch_id={batch_id}"
        rows.coalesce(1).write.mode("overwrite").parquet(path)

    def publish(self, orders: DataFrame, batch_id: int) -> None:
        """What was sold, by country: at least once, with ids that tell a repetition."""
        sold = orders.groupBy("row.country").agg(f.sum("row.cents").alias("cents"))
        messages = sold.coalesce(1).select(
            f.to_json(f.struct(f.lit(batch_id).alias("batch_id"), "country", "cents")).alias(
                "body"
            ),
            f.concat(f.lit("sold."), "country").alias("routing_key"),
        )
        messages.write.format("rabbitmq").options(
            uri=self.uri, exchange="shop.results", contentType="application/json"
        ).mode("append").save()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("uri")
    parser.add_argument("folder")
    parser.add_argument("--once", action="store_true")
    options = parser.parse_args()
    spark = warren.spark.session("shop")
    rows = (
        spark.readStream.format("rabbitmq")
        .option("uri", options.uri)
        .option("queues", "shop.de,shop.fr,shop.us,shop.jp")
        .option("ledger", f"{options.folder}/ledger")
        .option("maxMessagesPerTrigger", 20_000)
        .load()
    )
    writer = rows.writeStream.foreachBatch(Tables(options.uri, options.folder).write)
    writer = writer.option("checkpointLocation", f"{options.folder}/checkpoint")
    writer = writer.trigger(availableNow=True) if options.once else writer
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()
