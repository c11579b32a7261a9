"""What only Spark can tell of a pipeline's file: schemas, queries, columns. Nothing is consumed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, BinaryType, MapType, NullType, StringType, StructType

from warren.errors import ConfigError, PipelineError
from warren.pipeline.decode import KIND, TEXT
from warren.pipeline.formats import Avro, Protobuf
from warren.pipeline.model import TIMES, Pipeline, Publish, Table
from warren.pipeline.rows import parsed
from warren.spark.columns import DDL, WRITABLE
from warren.spark.sink.options import SinkOptions, bind_columns, require_address

#: The column that holds the message itself, for a table's query.
MESSAGE = "_message"
#: The view that a table's own query reads.
MESSAGES = "messages"
#: The column that says which batch wrote a row: the name of a folder.
BATCH = "batch"
_NESTED = (ArrayType, BinaryType, MapType, StructType)


@dataclass(frozen=True)
class Checked:
    """A pipeline that Spark understands."""

    pipeline: Pipeline
    #: Of the tables that take messages.
    schemas: Mapping[str, StructType]


def check(pipeline: Pipeline, spark: SparkSession) -> Checked:
    """Raises PipelineError for the first thing that Spark would not take."""
    try:
        return _Checker(pipeline, spark).check()
    finally:
        # A new session is the active one from then on, and what was registered in this one would
        # not be found any more. Spark changes that when a DataFrame is made of rows.
        spark.createDataFrame([], "nothing INT")


class _Checker:
    def __init__(self, pipeline: Pipeline, spark: SparkSession) -> None:
        self._pipeline = pipeline
        # Views of the same names may be the user's.
        self._spark = spark.newSession()
        self._message = f"{MESSAGE} STRUCT<{_inner()}>"

    def check(self) -> Checked:
        schemas = {
            table.name: self._schema(table)
            for table in self._pipeline.tables
            if table.schema is not None
        }
        for table in self._pipeline.tables:
            if table.schema is not None:
                self._check_body(table, schemas[table.name])
                self._check_parsed(table, schemas[table.name])
        for table in self._pipeline.tables:
            rows = self._rows(table, schemas.get(table.name))
            self._check_rows(table, rows.schema)
            rows.createOrReplaceTempView(table.name)
        for publish in self._pipeline.publish:
            self._check_publish(publish)
        return Checked(self._pipeline, schemas)

    # -- tables --------------------------------------------------------------------------------
    def _schema(self, table: Table) -> StructType:
        assert table.schema is not None
        try:
            schema = StructType.fromDDL(table.schema)
        except (ParseException, AnalysisException) as error:
            raise self._error(table, "schema", f"schema: {_said(error)}") from None
        if not isinstance(schema, StructType):
            raise self._error(table, "schema", "schema must name columns: id BIGINT, name STRING")
        twice = _twice([field.name for field in schema.fields])
        if twice:
            raise self._error(table, "schema", f"schema has the column '{twice}' twice")
        if any(field.name.startswith("_") for field in schema.fields):
            raise self._error(table, "schema", "schema: names that begin with _ are warren's")
        return schema

    def _check_parsed(self, table: Table, schema: StructType) -> None:
        """Has Spark parse a body: not every type and not every option is good for that."""
        body = self._spark.range(1).select(
            f.lit("").alias(TEXT), f.lit("csv" if table.csv else "json").alias(KIND)
        )
        try:
            found = body.select(parsed(table, schema))
        except (ParseException, AnalysisException) as error:
            raise self._error(table, "schema", f"schema: {_said(error)}") from None
        if table.csv:
            try:
                found.collect()
            except Exception as error:  # noqa: BLE001 - Spark's, or its bridge's own
                causes = re.findall(r"Caused by: [\w.$]+: (.+)", str(error))
                problem = causes[-1] if causes else _said(error)
                raise self._error(table, "csv", f"csv: {problem}") from None

    def _check_body(self, table: Table, schema: StructType) -> None:
        if table.body == "text" and [type(field.dataType) for field in schema] != [StringType]:
            raise self._error(table, "schema", "text is one column of type STRING")
        if table.deduplicate is not None:
            names = {field.name for field in schema.fields}
            for key in table.deduplicate.key:
                if key not in names:
                    problem = f"deduplicate: the schema has no column '{key}'"
                    raise self._error(table, "deduplicate", problem)
        for key, converter in (
            ("avro", Avro(table.avro) if table.avro is not None else None),
            ("protobuf", Protobuf(*table.protobuf) if table.protobuf is not None else None),
        ):
            if converter is not None:
                try:
                    converter.check()
                except ValueError as error:
                    raise self._error(table, key, f"{key}: {error}") from None

    def _rows(self, table: Table, schema: StructType | None) -> DataFrame:
        """The table's rows, none of them."""
        if schema is None:
            return self._query(table.sql or "", table, "sql")
        fields = [*schema.fields, *_struct(self._message).fields]
        decoded = self._spark.createDataFrame([], StructType(fields))
        return shaped(decoded, table, lambda sql: self._query(sql, table, "sql"))

    def _query(self, sql: str, table: Table | Publish, key: str) -> DataFrame:
        try:
            return query(self._spark, sql)
        except (ParseException, AnalysisException) as error:
            raise self._error(table, key, f"sql: {_said(error)}") from None

    def _check_rows(self, table: Table, schema: StructType) -> None:
        names = [field.name for field in schema.fields]
        key = "sql" if table.sql else "columns" if table.columns else "schema"
        if twice := _twice(names):
            hint = "; 'sql' can give it another name" if not table.sql else ""
            raise self._error(table, key, f"the column '{twice}' is there twice{hint}")
        if BATCH in (name.lower() for name in names):
            problem = f"the column '{BATCH}' is warren's: it says which batch wrote a row"
            raise self._error(table, key, problem)
        self._check_types(table, key, schema)
        missing = [name for name in table.files.partition_by if name not in names]
        if missing:
            problem = f"partition_by: there is no column '{missing[0]}' among {', '.join(names)}"
            raise self._error(table, "partition_by", problem)
        if len(table.files.partition_by) == len(names):
            raise self._error(table, "partition_by", "partition_by leaves no column in the files")

    def _check_types(self, table: Table, key: str, schema: StructType) -> None:
        for field in schema.fields:
            if isinstance(field.dataType, NullType):
                problem = f"the column '{field.name}' has no type: CAST it to one"
                raise self._error(table, key, problem)
            if table.files.format == "csv" and isinstance(field.dataType, _NESTED):
                kind = field.dataType.simpleString()
                problem = f"CSV can't hold the column '{field.name}', which is {kind}"
                raise self._error(table, "format", problem)

    # -- publish -------------------------------------------------------------------------------
    def _check_publish(self, publish: Publish) -> None:
        rows = self._query(publish.sql, publish, "sql")
        try:
            places = bind_columns(as_messages(rows).schema)
        except ConfigError as error:
            raise self._error(publish, "sql", f"{error.option} {error.problem}") from None
        try:
            options = {**self._pipeline.connection, **publish.options}
            require_address(SinkOptions.parse(options), places)
        except ConfigError:
            problem = (
                "nothing says where the rows go: name an exchange, or a queue as routing_key, "
            )
            problem += "or give the query a column 'exchange' or 'routing_key'"
            raise self._error(publish, "exchange", problem) from None

    def _error(self, part: Table | Publish, key: str, problem: str) -> PipelineError:
        what = "table" if isinstance(part, Table) else "publish"
        line = part.lines.get(key) or part.lines.get("", 0)
        return PipelineError(self._pipeline.file, line, f"{what} '{part.name}': {problem}")


def query(spark: SparkSession, sql: str) -> DataFrame:
    """A query's rows. Whatever else SQL can do, it can't do here: as a part of another query."""
    return spark.sql(f"SELECT * FROM (\n{sql.strip().rstrip(';')}\n)")


def shaped(decoded: DataFrame, table: Table, run: Callable[[str], DataFrame]) -> DataFrame:
    """A table's rows from its decoded messages; ``run`` runs its query."""
    if table.sql is not None:
        decoded.createOrReplaceTempView(MESSAGES)
        return run(table.sql).drop(MESSAGE)  # with SELECT * it comes along
    fields = [name for name in decoded.columns if name != MESSAGE]
    own = [quoted(name) for name in fields]
    return decoded.select(*own, *(f"{MESSAGE}.`{name}`" for name in table.columns))


def as_messages(rows: DataFrame) -> DataFrame:
    """A query's rows as the sink takes them: what is no part of a message makes a JSON body."""
    names = [name.lower() for name in rows.columns]
    others = [f.col(quoted(name)) for name in rows.columns if name.lower() not in WRITABLE]
    if "body" in names or not others:
        return rows
    own = [f.col(quoted(name)) for name in rows.columns if name.lower() in WRITABLE]
    return rows.select(*own, f.to_json(f.struct(*others), dict(TIMES)).alias("body"))


def quoted(name: str) -> str:
    """A column's name for Spark, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def _inner() -> str:
    """The message's columns, as the inside of a STRUCT."""
    return ", ".join(
        f"`{field.name}`: {field.dataType.simpleString()}" for field in _struct(DDL).fields
    )


def _struct(ddl: str) -> StructType:
    parsed = StructType.fromDDL(ddl)
    assert isinstance(parsed, StructType)
    return parsed


def _twice(names: Iterable[str]) -> str | None:
    seen = set()
    for name in names:
        if name.lower() in seen:
            return name
        seen.add(name.lower())
    return None


def _said(error: Exception) -> str:
    """What Spark says of a mistake, without its pictures."""
    text = re.split(r"\n\n==|;\n'|\n== SQL", str(error))[0]
    # Its line is one too far: the query stands inside of another one.
    text = re.sub(r"\.?\s*SQLSTATE: \w+(?:; line \d+,? pos \d+)?", "", text)
    return " ".join(text.split()).rstrip(";. ")
