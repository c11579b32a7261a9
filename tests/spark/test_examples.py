"""The projects in examples/ do what their pages say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import warren
import warren.spark
from tests.support.spark_cluster import QUICK_JAVA
from tests.support.wire import Connection
from warren.spark.java import java_home

EXAMPLES = Path(__file__).parents[2] / "examples"
QUEUES = ["shop.de", "shop.fr", "shop.us", "shop.jp"]
COUNT = 600
#: By the rules of publish_events.py: one in fifty is cut, of the others one in three is packed.
CUT = {number for number in range(COUNT) if number % 50 == 0}
PACKED = {number for number in range(COUNT) if number % 3 == 0} - CUT
pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def publish(url: str) -> None:
    command = [sys.executable, str(EXAMPLES / "publish_events.py"), url, str(COUNT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=60)


def table(folder: Path, name: str, column: str = "message_id") -> list[int]:
    return sorted(map(int, pq.read_table(folder / name).column(column).to_pylist()))


def module(path: Path) -> Any:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_pyspark_project_puts_every_event_into_its_table_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warren.Broker.in_thread() as broker:
        publish(broker.url)
        shop = module(EXAMPLES / "shop-pyspark" / "shop.py")
        monkeypatch.setattr(sys, "argv", ["shop.py", broker.url, str(tmp_path), "--once"])
        shop.main()
        results = _drained(broker.url, "shop.results")

    tables = [table(tmp_path, name) for name in ("orders", "payments", "quarantine")]
    assert sorted([*tables[0], *tables[1], *tables[2]]) == list(range(COUNT))
    assert set(tables[2]) == CUT
    assert len(results) == 4  # a country each


def _drained(url: str, queue: str) -> list[bytes]:
    connection = Connection.open(url)
    try:
        return connection.channel().drain(queue)
    finally:
        connection.close()


@pytest.mark.slow
def test_spark_pipelines_runs_the_declarative_project(
    tmp_path: Path, run_pipeline: Callable[[Path, str], str]
) -> None:
    project = tmp_path / "shop-pipeline"
    shutil.copytree(EXAMPLES / "shop-pipeline", project)
    with warren.Broker.in_thread() as broker:
        publish(broker.url)
        said = run_pipeline(project, broker.url)

    assert "Run is COMPLETED" in said, said[-3000:]
    tables = project / "spark-warehouse"
    assert table(tables, "events") == list(range(COUNT))
    good = table(tables, "orders") + table(tables, "payments")
    assert sorted(good) == sorted(set(range(COUNT)) - CUT - PACKED)
    assert set(table(tables, "quarantine")) == CUT | PACKED
    assert sum(table(tables, "sold", "orders")) == len(table(tables, "orders"))


@pytest.fixture
def run_pipeline(tmp_path: Path) -> Callable[[Path, str], str]:
    def run(project: Path, url: str) -> str:
        spec = project / "spark-pipeline.yml"
        spec.write_text(spec.read_text().replace("/tmp/shop-pipeline", str(tmp_path / "storage")))
        done = subprocess.run(
            [Path(sys.executable).with_name("spark-pipelines"), "run"],
            cwd=project,
            env={
                **os.environ,
                "JAVA_HOME": str(java_home()),
                "JDK_JAVA_OPTIONS": QUICK_JAVA,
                "PYSPARK_PYTHON": sys.executable,
                "SHOP_BROKER": url,
                "SHOP_LEDGER": str(tmp_path / "ledger"),
                "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=280,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:]
        return done.stdout

    return run
