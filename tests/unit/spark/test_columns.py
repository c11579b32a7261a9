from __future__ import annotations

from typing import Any

import pytest

from warren.amqp.properties import FIELDS
from warren.spark.columns import ARROW_SCHEMA, COLUMNS, PROPERTIES


def test_spark_and_arrow_agree_on_the_schema() -> None:
    pytest.importorskip("pyspark")
    from pyspark.sql.pandas.types import to_arrow_schema

    assert to_arrow_schema(_struct(), timezone="UTC").equals(ARROW_SCHEMA)


def _struct() -> Any:
    """Spark parses DDL in the JVM only: the same schema, put together by hand."""
    from pyspark.sql import types as t

    kinds = {
        "STRING": t.StringType(),
        "BIGINT": t.LongType(),
        "INT": t.IntegerType(),
        "BOOLEAN": t.BooleanType(),
        "BINARY": t.BinaryType(),
        "TIMESTAMP": t.TimestampType(),
        "MAP<STRING, STRING>": t.MapType(t.StringType(), t.StringType()),
    }
    return t.StructType([t.StructField(c.name, kinds[c.sql], c.nullable) for c in COLUMNS])


def test_every_property_but_cluster_id_is_a_column_in_the_order_of_the_wire() -> None:
    assert [column.name for column in PROPERTIES] == [
        name for name, _, _ in FIELDS if name != "cluster_id"
    ]
