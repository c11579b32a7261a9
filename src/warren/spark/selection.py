"""The columns that Spark gets: all of them, or those that the user's schema names.

Spark's Python sources are not told which columns a query uses, so each of them is sent to Spark and
copied there, row by row. Who needs a few says so: ``.schema("queue STRING, body BINARY")``.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from warren.errors import ConfigError
from warren.spark.columns import ARROW_SCHEMA, BY_NAME
from warren.spark.options import SOURCE


class Selection:
    """Which columns, in which order; pickled to every task."""

    def __init__(self, schema: StructType) -> None:
        """Raises ConfigError for what is no column of a message, and for no column at all."""
        if not schema.fields:  # Arrow has no rows without columns: all would be taken, none given
            raise ConfigError(
                "schema", "names no column: leave it out to get all of them, or name those you "
                'need, as in .schema("queue STRING, body BINARY")', SOURCE,
            )  # fmt: skip
        self._schema = to_arrow_schema(schema, timezone="UTC")
        for field in self._schema:
            _check(field)
        self._whole = self._schema.equals(ARROW_SCHEMA)

    def cut(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same rows with these columns only."""
        return batches if self._whole else map(self._cut, batches)

    def _cut(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [batch.column(name) for name in self._schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _check(field: pa.Field) -> None:
    column = BY_NAME.get(field.name)
    if column is None:
        near = get_close_matches(field.name, BY_NAME, 1)
        meant = f"; did you mean '{near[0]}'?" if near else f": there are {', '.join(BY_NAME)}"
        raise ConfigError("schema", f"a message has no column '{field.name}'{meant}", SOURCE)
    if field.type != column.arrow.type:
        raise ConfigError("schema", f"column '{field.name}' is {column.sql}: cast it later", SOURCE)
    if column.nullable and not field.nullable:
        raise ConfigError(
            "schema", f"column '{field.name}' can't be NOT NULL: a message may have none", SOURCE
        )
