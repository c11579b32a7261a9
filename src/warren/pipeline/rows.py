"""Messages to rows: whose they are, what their bodies say, or what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType

from warren.pipeline.decode import KIND, PROBLEM, TABLE, TEXT, Decoder, Decoding
from warren.pipeline.model import Pipeline, Table
from warren.pipeline.patterns import takes
from warren.spark.columns import BY_NAME, COLUMNS, DDL

#: The columns of a message.
NAMES = tuple(column.name for column in COLUMNS)
#: Why a message is in no table; null if it is in one.
REASON = "_reason"
#: The column with what was parsed for a table is this and the table's name.
PARSED = "_parsed_"
#: Stands for a table with messages that nobody wants.
IGNORED = "_ignored"
_ROW, _END, _BAD = "_row", "_end", "_corrupt"
_MORE = "more than one JSON object"
_CONTROL = r"[\x00-\x1f]"
#: Octets in the name of a folder, on disks and HDFS; and what Spark writes as three of them.
_LONGEST_NAME = 255
_ESCAPED = r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]"
_NESTED = (ArrayType, MapType, StructType, VariantType)


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
    decodings = {table.name: Decoding.of(table) for table in taking}
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
        rows = rows.withColumn(
            f"{PARSED}{table.name}", f.when(mine & f.col(PROBLEM).isNull(), parsed(table, schema))
        )
        reason = reason.when(mine, _problem(table, schema))
    return rows.withColumn(REASON, reason).drop(TEXT, KIND, PROBLEM)


def row_of(table: str) -> Column:
    """What a message's body says: a struct of the columns of its table."""
    return f.col(f"{PARSED}{table}")[_ROW]


def _problem(table: Table, schema: StructType) -> Column:
    """What is wrong with a row of this table; null if nothing is."""
    parsed, row = f.col(f"{PARSED}{table.name}"), row_of(table.name)
    is_csv = f.col(KIND) == "csv"
    is_bad = row.isNull() | parsed[_BAD].isNotNull() | parsed[_END].isNull()
    text = "not CSV, or of other types than its schema's"
    if not _csv_holds(schema):
        text = "its table has columns that CSV can't hold"
    found = f.when(is_bad & is_csv, text)
    more = f.when(f.get_json_object(TEXT, "$").isNull(), "not JSON")
    more = more.when(f.col(TEXT).rlike(_CONTROL), f"{_MORE}, or a bare tab or line break in a text")
    more = more.otherwise(_MORE)
    found = found.when(is_bad & parsed[_END].isNull(), more)
    for each in schema.fields:
        there = f.get_json_object(TEXT, f"$['{each.name}']").isNotNull()
        kind = each.dataType.simpleString().partition("<")[0].upper()
        found = found.when(
            is_bad & row[each.name].isNull() & there, f"field '{each.name}' is not {kind}"
        )
    found = found.when(is_bad, "not a JSON object of its schema")
    for name, is_missing in _missing(row, schema):
        found = found.when(is_missing, f"no field '{name}'")
    for name, is_unfit in _unfit_for_folders(table, row, schema):
        found = found.when(is_unfit, f"field '{name}' can't be the name of a folder")
    return found


def _unfit_for_folders(
    table: Table, row: Column, schema: StructType
) -> Iterator[tuple[str, Column]]:
    """The texts that a table is partitioned by, and whether they are too long or have a NUL."""
    if table.sql is not None:  # it makes the columns
        return
    for name in table.files.partition_by:
        own = name in schema.names
        kind = schema[name].dataType.simpleString() if own else BY_NAME[name].sql.lower()
        if kind not in ("string", "binary"):
            continue
        text = (row[name] if own else f.col(name)).cast("string")
        escaped = f.octet_length(f.regexp_replace(text, f.lit(_ESCAPED), f.lit("%00")))
        most = _LONGEST_NAME - len(f"{name}=".encode())
        is_long = (f.octet_length(text) * 3 > most) & (escaped > most)
        yield name, is_long | (f.instr(text, "\0") > 0)


def _missing(value: Column, kind: DataType, inside: str = "") -> Iterator[tuple[str, Column]]:
    """The fields that must be there, however deep, and whether a value lacks them."""
    if isinstance(kind, StructType):
        for each in kind.fields:
            name, inner = f"{inside}{each.name}", value[each.name]
            if not each.nullable:
                yield name, value.isNotNull() & inner.isNull()
            yield from _missing(inner, each.dataType, f"{name}.")
    elif isinstance(kind, ArrayType | MapType):
        items = value if isinstance(kind, ArrayType) else f.map_values(value)
        item = kind.elementType if isinstance(kind, ArrayType) else kind.valueType
        for index, (name, _) in enumerate(_missing(items[0], item, inside)):
            yield name, f.exists(items, _lacks(item, index))


def _lacks(kind: DataType, index: int) -> Callable[[Column], Column]:
    """The same test, made for each item of a list."""
    return lambda item: list(_missing(item, kind))[index][1]


def parsed(table: Table, schema: StructType) -> Column:
    """A row of the table's columns, whether it had an end, and what could not be parsed."""
    options = {"columnNameOfCorruptRecord": _BAD, "mode": "PERMISSIVE"}
    whole = StructType().add(_ROW, schema).add(_END, "boolean").add(_BAD, "string")
    # from_json() stops after the first value and does not see what follows it: another object,
    # cut text, anything. As a part of a larger object, there can be nothing but its end, or
    # another field of it; as an item of a list, its end, or another item. So it is alone if it is
    # good for both.
    in_list = StructType().add(_END, "boolean").add(_BAD, "string")
    is_alone = f.from_json(_between("[", "]"), in_list, options)[_END]
    json = f.when(is_alone, f.from_json(_between("", ""), whole, options))
    bodies = f.when(f.col(KIND) == "csv", _from_csv(table, schema, options))
    if [field.dataType.simpleString() for field in schema.fields] == ["string"]:
        line = f.struct(f.col(TEXT).alias(schema.names[0]))
        bodies = bodies.when(f.col(KIND) == "text", _whole(line, f.lit(None).cast("string")))
    return bodies.otherwise(json)


def _between(begin: str, end: str) -> Column:
    """The body as the first field of an object that has an end."""
    return f.concat(f.lit(f'{{"{_ROW}":{begin}'), TEXT, f.lit(f'{end},"{_END}":true}}'))


def _from_csv(table: Table, schema: StructType, options: dict[str, str]) -> Column:
    if not _csv_holds(schema):
        return f.lit(None)
    flat = StructType([*schema.fields]).add(_BAD, "string").toDDL().replace(" NOT NULL", "")
    # Quotes in quotes are doubled, as RFC 4180 has it; Spark's own default is a backslash.
    csv = f.from_csv(TEXT, flat, {"escape": '"', **table.csv, **options})

    def put_together(record: Column) -> Column:
        fields = [record[name].alias(name) for name in schema.names]
        return _whole(f.struct(*fields), record[_BAD])

    return f.transform(f.array(csv), put_together)[0]  # parsed once, however many fields


def _whole(row: Column, bad: Column) -> Column:
    return f.struct(row.alias(_ROW), f.lit(True).alias(_END), bad.alias(_BAD))


def _csv_holds(schema: StructType) -> bool:
    return not any(isinstance(field.dataType, _NESTED) for field in schema.fields)


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
