"""The Spark job of the demo: what becomes of messages that belong in no table."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import warren
from tests.support.wire import Connection
from warren.cli.scenes.shop_events import RESULTS
from warren.cli.scenes.shop_job import Tables

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]
ORDER = b'{"order_id": 1, "country": "de", "customer": "c", "items": 1, "cents": 5}'
#: Type, content encoding, body, and the reason that is told; None for what belongs in a table.
MESSAGES: list[tuple[str | None, str | None, bytes, str | None]] = [
    ("order", None, ORDER, None),
    (None, None, ORDER, "no type"),
    ("refund", None, ORDER, "unknown type 'refund'"),
    ("order", None, b"{}", "no field 'order_id'"),
    ("payment", None, b"", "no field 'order_id'"),
    ("order", None, b"[]", "not JSON"),
    ("order", None, b"\xff", "not UTF-8"),
    ("order", "gzip", ORDER, "not gzip, as its content-encoding says"),
    ("order", "gzip", gzip.compress(ORDER)[:14], "not gzip, as its content-encoding says"),
]


def test_every_message_is_in_a_table_or_in_the_quarantine_with_its_body(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = "message_id STRING, queue STRING, offset LONG, type STRING, content_encoding STRING"
    rows = [
        (str(number), "shop.de", number, kind, encoding, bytearray(body))
        for number, (kind, encoding, body, _) in enumerate(MESSAGES)
    ]
    batch = spark.createDataFrame(rows, f"{columns}, body BINARY")
    with warren.Broker.in_thread() as broker:
        _declare(broker.url)
        Tables(broker.url, str(tmp_path)).write(batch, 0)

    assert [row["event"] for row in _table(tmp_path, "orders")] == [0]
    assert _table(tmp_path, "payments") == []
    assert {
        row["event"]: (row["body"], row["reason"]) for row in _table(tmp_path, "quarantine")
    } == {
        number: (body, reason)
        for number, (_, _, body, reason) in enumerate(MESSAGES)
        if reason is not None
    }


def _declare(url: str) -> None:
    connection = Connection.open(url)
    channel = connection.channel()
    channel.declare_exchange(RESULTS, "topic")
    channel.declare(RESULTS)
    channel.bind(RESULTS, RESULTS, "#")
    connection.close()


def _table(folder: Path, name: str) -> list[dict[str, Any]]:
    return pq.read_table(folder / name).to_pylist()
