"""The shop as a Spark Declarative Pipeline: queues to tables, by message type."""

import os

from pyspark import pipelines as dp
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

spark = SparkSession.active()
BROKER = os.environ.get("SHOP_BROKER", "amqp://guest:guest@localhost:5672/")
#: Beside the ``storage`` of spark-pipeline.yml: the two belong together.
LEDGER = os.environ.get("SHOP_LEDGER", "/tmp/shop-pipeline/ledger")
TYPES = ("order", "payment")
FIELDS = ("order_id", "country", "cents")
SCHEMA = "order_id INT, country STRING, cents INT, _bad STRING"


@dp.table(comment="Every message as it came, once")
def events() -> DataFrame:
    return (
        spark.readStream.format("rabbitmq")
        .option("url", BROKER)  # Spark itself hides what is in an option of this name
        .option("queues", "shop.de,shop.fr,shop.us,shop.jp")
        .option("ledger", LEDGER)
        .load()
    )


def reason() -> Column:
    """Why a row belongs in no table; null if it belongs in one.

    Every message must get a reason or a table. What is compared with null is neither true nor
    false, so a type that is not there needs a line of its own.
    """
    found = f.when(f.col("content_encoding").isNotNull(), "packed")
    found = found.when(f.col("type").isNull(), "no type")
    found = found.when(~f.col("type").isin(*TYPES), "unknown type")
    found = found.when(~f.is_valid_utf8(f.col("body").cast("string")), "not UTF-8")
    found = found.when(f.length("body") == 0, "empty")
    found = found.when(
        f.col("row").isNull() | f.col("row._bad").isNotNull(), "not JSON, or of other types"
    )
    for field in FIELDS:
        found = found.when(f.col(f"row.{field}").isNull(), f"no field '{field}'")
    return found


def parsed() -> DataFrame:
    row = f.from_json(f.col("body").cast("string"), SCHEMA, {"columnNameOfCorruptRecord": "_bad"})
    return spark.readStream.table("events").withColumn("row", row).withColumn("reason", reason())


def typed(kind: str) -> DataFrame:
    rows = parsed().where(f.col("reason").isNull() & (f.col("type") == kind))
    return rows.select("message_id", *(f"row.{field}" for field in FIELDS))


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
