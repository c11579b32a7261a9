"""The shop as a Spark Declarative Pipeline: queues to tables, by message type, and results back."""

import gzip
import os
import zlib

import pyarrow as pa
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
#: What the quarantine keeps of a message: enough to publish it again.
KEPT = ("message_id", "queue", "offset", "type", "content_encoding", "body")


@dp.table(comment="Every message as it came, once")
def events() -> DataFrame:
    return (
        spark.readStream.format("rabbitmq")
        .option("url", BROKER)  # Spark itself hides what is in an option of this name
        .option("queues", "shop.de,shop.fr,shop.us,shop.jp")
        .option("ledger", LEDGER)
        .load()
    )


def text_of(body: bytes, encoding: str | None) -> tuple[str | None, str | None]:
    try:
        return (gzip.decompress(body) if encoding == "gzip" else body).decode(), None
    except (OSError, EOFError, zlib.error):
        return None, "not gzip, as its content encoding says"
    except UnicodeDecodeError:
        return None, "not UTF-8"


@f.arrow_udf("text STRING, problem STRING")
def unpacked(bodies: pa.Array, encodings: pa.Array) -> pa.Array:
    """Bodies as text, or what is wrong with them."""
    pairs = zip(bodies.to_pylist(), encodings.to_pylist(), strict=True)
    found = [dict(zip(("text", "problem"), text_of(*pair), strict=True)) for pair in pairs]
    return pa.array(found, pa.struct([("text", pa.string()), ("problem", pa.string())]))


def reason() -> Column:
    """Why a row belongs in no table; null if it belongs in one.

    Every message must get a reason or a table. What is compared with null is neither true nor
    false, so a type that is not there needs a line of its own.
    """
    found = f.when(f.col("problem").isNotNull(), f.col("problem"))
    found = found.when(f.col("type").isNull(), "no type")
    found = found.when(~f.col("type").isin(*TYPES), "unknown type")
    found = found.when(f.length("body") == 0, "empty")
    found = found.when(
        f.col("row").isNull() | f.col("row._bad").isNotNull(), "not JSON, or of other types"
    )
    for field in FIELDS:
        found = found.when(f.col(f"row.{field}").isNull(), f"no field '{field}'")
    return found


def parsed() -> DataFrame:
    unpacks = unpacked("body", "content_encoding").alias("unpacked")
    rows = spark.readStream.table("events").select(*KEPT, unpacks).select(*KEPT, "unpacked.*")
    row = f.from_json("text", SCHEMA, {"columnNameOfCorruptRecord": "_bad"})
    return rows.withColumn("row", row).withColumn("reason", reason())


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
    return parsed().where(f.col("reason").isNotNull()).select(*KEPT, "reason")


@dp.materialized_view
def sold() -> DataFrame:
    totals = (f.count("*").alias("orders"), f.sum("cents").alias("cents"))
    return spark.read.table("orders").groupBy("country").agg(*totals)


dp.create_sink(
    "results",
    "rabbitmq",
    {"url": BROKER, "exchange": "shop.results", "contentType": "application/json", "type": "sold"},
)


@dp.append_flow(target="results")
def publish() -> DataFrame:
    """Each order that is good: at least once, with its own id, which tells a repetition."""
    rows = spark.readStream.table("orders")
    body = f.to_json(f.struct(*FIELDS)).alias("body")
    key = f.concat(f.lit("sold."), "country").alias("routing_key")
    return rows.select(body, key, "message_id")
