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
#: By message type: its table, and the fields that a row must have.
TABLES = {
    "order": ("orders", "order_id INT, country STRING, cents INT"),
    "payment": ("payments", "order_id INT, country STRING, cents INT, method STRING"),
    "shipment": ("shipments", "order_id INT, country STRING, carrier STRING"),
}
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


def fields(schema: str) -> list[str]:
    return [field.split()[0] for field in schema.split(", ")]


def parsed() -> DataFrame:
    """A column for each table, and the reason why a row belongs in none; null if it has a table.

    Every message must get a reason or a table. What is compared with null is neither true nor
    false, so a type that is not there needs a line of its own.
    """
    unpacks = unpacked("body", "content_encoding").alias("unpacked")
    rows = spark.readStream.table("events").select(*KEPT, unpacks).select(*KEPT, "unpacked.*")
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


def typed(kind: str) -> DataFrame:
    table, schema = TABLES[kind]
    rows = parsed().where(f.col("reason").isNull() & (f.col("type") == kind))
    return rows.select("message_id", *(f"{table}.{field}" for field in fields(schema)))


@dp.table
def orders() -> DataFrame:
    return typed("order")


@dp.table
def payments() -> DataFrame:
    return typed("payment")


@dp.table
def shipments() -> DataFrame:
    return typed("shipment")


@dp.table(comment="What could not be read, and why")
def quarantine() -> DataFrame:
    return parsed().where(f.col("reason").isNotNull()).select(*KEPT, "reason")


@dp.materialized_view(comment="By country: how many of each, and what the orders are worth")
def summary() -> DataFrame:
    tables = [table for table, _ in TABLES.values()]
    first, *others = [spark.read.table(name).withColumn("table", f.lit(name)) for name in tables]
    for other in others:
        first = first.unionByName(other, allowMissingColumns=True)
    counts = [f.count_if(f.col("table") == table).alias(table) for table in tables]
    sold = f.sum(f.when(f.col("table") == "orders", f.col("cents"))).alias("sold_cents")
    return first.groupBy("country").agg(*counts, sold)


dp.create_sink(
    "results",
    "rabbitmq",
    {"url": BROKER, "exchange": "shop.results", "contentType": "application/json", "type": "sold"},
)


@dp.append_flow(target="results")
def publish() -> DataFrame:
    """Each order that is good: at least once, with its own id, which tells a repetition."""
    rows = spark.readStream.table("orders")
    body = f.to_json(f.struct("order_id", "country", "cents")).alias("body")
    key = f.concat(f.lit("sold."), "country").alias("routing_key")
    return rows.select(body, key, "message_id")
