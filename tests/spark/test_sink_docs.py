"""The programs on Spark's start page do what the page says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import warren
import warren.spark
from tests.spark.drains import publish
from tests.spark.queries import is_too_slow
from tests.support.wire import Connection
from warren.spark.options import CONNECTION
from warren.spark.sink.options import SINK

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def programs() -> list[str]:
    page = (GUIDE / "spark.md").read_text()
    return re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.mark.spark
@pytest.mark.timeout(180)
def test_the_first_program_prints_what_its_page_says(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    program = programs()[0]
    exec(compile(program, "spark.md", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out.splitlines()
    assert printed == re.findall(r"^# -> (.*)$", program, re.MULTILINE)


@pytest.mark.spark
@pytest.mark.timeout(240)
def test_tables_of_the_recipe_keep_their_rows_when_the_checkpoint_is_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    with warren.Broker.in_thread() as broker:
        connection = Connection.open(broker.url)
        channel = connection.channel()
        channel.declare("orders")
        for start in (0, 30):
            publish(channel, "orders", range(start, start + 30), type="order")
            rows = warren.spark.read_queues(
                *(spark, "orders"),
                uri=broker.url,
                ledger=str(ledger),
                max_messages_per_trigger=10,
                ledger_retention="0s",
            )
            follow_the_recipe(rows, tmp_path)
            shutil.rmtree(tmp_path / "checkpoint")
            (ledger / "owner.json").unlink()
        connection.close()

    # What the ledger still had is there twice, as its page says; its first rows it had no more.
    found = sorted(pq.read_table(tmp_path / "order").column("offset").to_pylist())
    assert sorted(set(found)) == list(range(60))
    assert found[:10] == list(range(10))


def follow_the_recipe(rows: DataFrame, folder: Path) -> None:
    """Until all is read that is there."""
    (recipe,) = (each for each in programs() if "foreachBatch" in each)
    recipe = recipe.replace("/data", str(folder)).replace("\nrows.", "\nquery = rows.")
    for _ in range(6):
        names: dict[str, Any] = {"rows": rows, "DataFrame": DataFrame}
        exec(compile(recipe, "spark.md", "exec"), names)
        try:
            names["query"].processAllAvailable()
            return
        except StreamingQueryException as error:
            if not is_too_slow(error):
                raise
        finally:
            names["query"].stop()
    raise AssertionError("Spark's Python was too slow six times")


def test_the_sink_s_page_has_every_option() -> None:
    page = (GUIDE / "spark-sink.md").read_text()
    told = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert {option.name for option in SINK} <= told
    assert not {option.name for option in CONNECTION} & told  # those are the source's page's
