"""Messages to rows: whose they are, what their bodies say, or what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from warren.pipeline.decode import KIND, PROBLEM, TABLE, TEXT, Decoder, Decoding
from warren.pipeline.model import Pipeline, Table
from warren.pipeline.patterns import takes
from warren.spark.columns import COLUMNS, DDL

#: The columns of a message.
NAMES = tuple(column.name for column in COLUMNS)
#: Why a message is in no table; null if it is in one.
REASON = "_reason"
#: The column that holds a table's row is this and the table's name.
ROW = "_row_"
#: Stands for a table with messages that nobody wants.
IGNORED = "_ignored"
_BAD = "_corrupt"


def decoded(
    messages: DataFrame, pipeline: Pipeline, schemas: Mapping[str, StructType]
) -> DataFrame:
    """The messages, each with its table, its row in that table's column, or what is wrong."""
    taking = [table for table in pipeline.tables if table.schema is not None]
    whose: Column = f.when(f.lit(False), "")
    for take in pipeline.ignore:
        whose = whose.when(takes(take), IGNORED)
    for table in taking:
        whose = whose.when(takes(table.take), table.name)
    decodings = {table.name: Decoding.of(table) for table in taking} | {IGNORED: Decoding()}
    names = [*NAMES, TABLE]
    rows = messages.select(*NAMES, whose.alias(TABLE)).mapInArrow(
        Decoder(decodings, names),
        f"{DDL}, {TABLE} STRING, {TEXT} STRING, {KIND} STRING, {PROBLEM} STRING",
    )
    reason: Column = f.when(f.col(TABLE) == IGNORED, f.lit(None))
    reason = reason.when(f.col(TABLE).isNull(), "no table takes it")
    reason = reason.when(f.col(PROBLEM).isNotNull(), f.col(PROBLEM))
    for table in taking:
        schema = schemas[table.name]
        mine = f.col(TABLE) == table.name
        column = f"{ROW}{table.name}"
        rows = rows.withColumn(
            column, f.when(mine & f.col(PROBLEM).isNull(), _parsed(table, schema))
        )
        reason = reason.when(mine, _problem(column, schema))
    return rows.withColumn(REASON, reason).drop(TEXT, KIND, PROBLEM)


def _problem(column: str, schema: StructType) -> Column:
    """What is wrong with a row of this column; null if nothing is."""
    row, is_json = f.col(column), f.col(KIND) != "csv"
    is_bad = row.isNull() | row[_BAD].isNotNull()
    found = f.when(is_bad & ~is_json, "not CSV, or of other types than its schema's")
    found = found.when(is_bad & f.get_json_object(TEXT, "$").isNull(), "not JSON")
    for each in schema.fields:
        value = row[each.name]
        there = f.get_json_object(TEXT, f"$['{each.name}']").isNotNull()
        kind = each.dataType.simpleString().upper()
        found = found.when(is_bad & value.isNull() & there, f"field '{each.name}' is not {kind}")
    found = found.when(is_bad, "not a JSON object of its schema")
    for each in schema.fields:
        if not each.nullable:
            found = found.when(row[each.name].isNull(), f"no field '{each.name}'")
    return found


def _parsed(table: Table, schema: StructType) -> Column:
    """A row of the table's columns and of what could not be parsed."""
    loose = StructType([*schema.fields]).add(_BAD, "string")
    options = {"columnNameOfCorruptRecord": _BAD, "mode": "PERMISSIVE"}
    ddl = loose.toDDL().replace(" NOT NULL", "")
    json = f.from_json(TEXT, ddl, options)
    csv = f.from_csv(TEXT, ddl, {**table.csv, **options})
    if [field.dataType.simpleString() for field in schema.fields] == ["string"]:
        text = f.struct(f.col(TEXT).alias(schema.names[0]), f.lit(None).cast("string").alias(_BAD))
    else:
        text = json
    return f.when(f.col(KIND) == "csv", csv).when(f.col(KIND) == "text", text).otherwise(json)


def statistics(rows: DataFrame) -> DataFrame:
    """Messages and delay by publisher, type and queue."""
    delay = (f.col("received_at").cast("double") - f.col("timestamp").cast("double")) * 1000
    return rows.groupBy("app_id", "type", "queue").agg(
        f.count(f.lit(1)).alias("messages"),
        f.sum(f.length("body")).alias("octets"),
        f.count(REASON).alias("quarantined"),
        f.min("timestamp").alias("first_sent"),
        f.max("timestamp").alias("last_sent"),
        f.min(delay).alias("delay_min_ms"),
        f.avg(delay).alias("delay_mean_ms"),
        f.max(delay).alias("delay_max_ms"),
        f.max("received_at").alias("received_at"),
    )
