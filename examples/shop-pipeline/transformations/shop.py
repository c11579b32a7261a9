"""The shop as a Spark Declarative Pipeline: queues to tables, by message type."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()
BROKER = os.environ.get("SHOP_BROKER", "amqp://guest:guest@localhost:5672/")
LEDGER = os.environ.get("SHOP_LEDGER", "/tmp/shop-pipeline/ledger")
SCHEMA = "order_id INT, country STRING, cents INT, _bad STRING"


@dp.table(comment="Every message as it came, once")
def events() -> DataFrame:
    return (
        spark.readStream.format("rabbitmq")
        .option("uri", BROKER)
        .option("queues", "shop.de,shop.fr,shop.us,shop.jp")
        .option("ledger", LEDGER)
        .load()
    )


def parsed() -> DataFrame:
    row = f.from_json(f.col("body").cast("string"), SCHEMA, {"columnNameOfCorruptRecord": "_bad"})
    plain = f.col("content_encoding").isNull()
    return (
        spark.readStream.table("events")
        .withColumn("row", row)
        .withColumn(
            "reason",
            f.when(~plain, "packed").when(f.col("row._bad").isNotNull(), "not JSON"),
        )
    )


def typed(kind: str) -> DataFrame:
    rows = parsed().where(f.col("reason").isNull() & (f.col("type") == kind))
    return rows.select("message_id", "row.order_id", "row.country", "row.cents")


@dp.table
def orders() -> DataFrame:
    return typed("order")


@dp.table
def payments() -> DataFrame:
    return typed("payment")


@dp.table(comment="What could not be read, and why")
def quarantine() -> DataFrame:
    columns = ["queue", "offset", "message_id", "type", "content_encoding", "body", "reason"]
    return parsed().where(f.col("reason").isNotNull()).select(columns)


@dp.materialized_view
def sold() -> DataFrame:
    totals = (f.count("*").alias("orders"), f.sum("cents").alias("cents"))
    return spark.read.table("orders").groupBy("country").agg(*totals)
