from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import types as t

from warren.client.blocking_reader import Deliveries
from warren.errors import ConfigError
from warren.spark.deliveries import to_batch
from warren.spark.selection import Selection


def batch(*bodies: bytes) -> pa.RecordBatch:
    took = Deliveries()
    for body in bodies:
        took.routes.append(b"\0\1q")
        took.properties.append(b"\0\0")
        took.bodies.append(body)
    return to_batch(took, "q", 7, 0)


def schema(*fields: tuple[str, Any, bool]) -> t.StructType:
    return t.StructType([t.StructField(*field) for field in fields])


def test_spark_gets_the_columns_it_named_in_its_order() -> None:
    wanted = schema(("body", t.BinaryType(), True), ("queue", t.StringType(), False))
    (cut,) = Selection(wanted).cut(iter([batch(b"a", b"b")]))
    assert cut.to_pydict() == {"body": [b"a", b"b"], "queue": ["q", "q"]}
    assert [field.nullable for field in cut.schema] == [True, False]


def test_a_column_that_no_message_has_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="'routing_kye'; did you mean 'routing_key'"):
        Selection(schema(("routing_kye", t.StringType(), True)))


def test_a_column_of_another_type_is_refused_with_the_right_one() -> None:
    with pytest.raises(ConfigError, match="column 'body' is BINARY"):
        Selection(schema(("body", t.StringType(), True)))


def test_a_property_may_be_missing_whatever_the_schema_says() -> None:
    with pytest.raises(ConfigError, match="'type' can't be NOT NULL"):
        Selection(schema(("type", t.StringType(), False)))


def test_a_schema_without_columns_is_refused_with_the_remedy() -> None:
    with pytest.raises(
        ConfigError, match=r'names no column: leave it out.*\.schema\("queue STRING'
    ):
        Selection(schema())
