"""The programs on the pages of source, sink and ledger do something; Spark's start page has its own
tests (``test_sink_docs``).

They are written for a broker on this machine and folders in ``/data``: both are replaced here, and
what a page takes for granted is made before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark import inheritable_thread_target
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import warren
import warren.spark
from tests.spark.drains import publish
from tests.spark.queries import is_too_slow
from tests.support.wire import Channel

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def programs(page: str) -> list[str]:
    return re.findall(
        r"^```python\n(.*?)^```$", (GUIDE / page).read_text(), re.MULTILINE | re.DOTALL
    )


class Programs:
    """Runs programs one after another, as in a notebook: each sees what those before it made."""

    def __init__(self, spark: SparkSession, broker: warren.Broker, folder: Path) -> None:
        self.names: dict[str, Any] = {
            "DataFrame": DataFrame,
            "ThreadPoolExecutor": ThreadPoolExecutor,
            "inheritable_thread_target": inheritable_thread_target,
            "json": json,
            "spark": spark,
            "warren": warren,
        }
        self.spark, self.folder = spark, folder
        self._instead = {
            "amqp://guest:guest@localhost/": broker.url,
            '"orders, returns.*"': '"orders"',  # a pattern needs the management API
            '"/data/': f'"{folder}/',
            '"ledger/': f'"{folder}/ledgers/shop/',
        }

    def run(self, program: str) -> None:
        for words, instead in self._instead.items():
            program = program.replace(words, instead)
        exec(compile(program, "page", "exec"), self.names)

    def run_query(self, program: str) -> Any:
        """Until it has read all that is there; it goes on."""
        for _ in range(6):
            self.run(program)
            (query,) = self.spark.streams.active
            try:
                query.processAllAvailable()
                return query
            except StreamingQueryException as error:
                query.stop()
                if not is_too_slow(error):
                    raise
        raise AssertionError("Spark's Python was too slow six times")


@pytest.fixture
def page(
    spark: SparkSession, embedded: warren.Broker, wire: Channel, tmp_path: Path
) -> Iterator[Programs]:
    for queue in ("orders", "results"):
        wire.declare(queue)
    for exchange in ("shop", "shop.results"):
        wire.declare_exchange(exchange, "topic")
        wire.bind("results", exchange, "#")
    publish(wire, "orders", range(3))
    yield Programs(spark, embedded, tmp_path)
    for query in spark.streams.active:
        query.stop()


def test_programs_of_source_and_ledger(page: Programs, capsys: pytest.CaptureFixture[str]) -> None:
    first, columns, backlog = programs("spark-source.md")
    (ledger,) = programs("ledger.md")

    page.names["query"] = page.run_query(first)
    page.run(columns)
    page.run(backlog)
    page.run(ledger)

    table = pq.read_table(page.folder / "tables" / "shop").to_pylist()
    assert [(row["queue"], row["offset"]) for row in table] == [
        ("orders", 0),
        ("orders", 1),
        ("orders", 2),
    ]
    assert page.names.get("backlog", 0) == 0
    assert page.names["rows"].column("offset").to_pylist() == [0, 1, 2]
    assert "pyarrow.Table" in capsys.readouterr().out


def test_programs_of_the_sink(page: Programs, wire: Channel) -> None:
    stream, once, several, threads = programs("spark-sink.md")
    events = (
        page.spark.readStream.format("rate")
        .load()
        .selectExpr("timestamp AS received_at", "string(value) AS message_id")
    )
    orders = page.spark.createDataFrame([("de", 1), ("fr", 2)], "country STRING, cents INT")
    orders.write.parquet(str(page.folder / "orders"))
    stream_of = page.spark.readStream.schema(orders.schema).parquet(str(page.folder / "orders"))
    page.names |= {"events": events, "orders": stream_of}
    page.names |= {"paid": lambda batch: batch, "refunded": lambda batch: batch}

    page.run_query(stream)
    assert sorted(wire.drain("results")) == [
        b'{"country":"de","cents":1}', b'{"country":"fr","cents":2}',
    ]  # fmt: skip
    page.run(once)
    for program in (several, threads):
        page.run(program)
        page.names["publish"](orders, 0)
        assert len(wire.drain("results")) == 4
