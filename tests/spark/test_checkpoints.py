"""How a session on this machine writes checkpoints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.spark import tables

pytestmark = [pytest.mark.timeout(180), pytest.mark.spark]
SETTING = "spark.sql.streaming.checkpointFileManagerClass"
SPARKS_OWN = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
)

#: Numbers out of files into a table, as a query that ends when there is nothing more.
_QUERY = """
import sys, warren.spark
folder, conf = sys.argv[1], dict(pair.split("=") for pair in sys.argv[2:])
spark = warren.spark.session(**conf)
rows = spark.readStream.schema("number INT").json(f"{folder}/in")
writer = rows.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
writer.trigger(availableNow=True).start(f"{folder}/out").awaitTermination()
"""
#: Stands before a program on the path, and writes down what it was called with.
_LISTENER = """#!/bin/sh
printf '%s\\n' "$*" >> '{log}'
exec '{program}' "$@"
"""


def _put(folder: Path, number: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / f"{number}.json").write_text(f'{{"number": {number}}}\n')


def _numbers(folder: Path) -> list[int]:
    files = tables.committed_files(folder / "out")
    return sorted(row["number"] for file in files for row in pq.read_table(file).to_pylist())


def _links_asked(tmp_path: Path, **conf: str) -> list[str]:
    """A query, and for which files of its checkpoint ``readlink`` was run."""
    program, log, path = shutil.which("readlink"), tmp_path / "calls", tmp_path / "path"
    assert program is not None
    path.mkdir()
    (path / "readlink").write_text(_LISTENER.format(log=log, program=program))
    (path / "readlink").chmod(0o755)
    log.touch()
    _put(tmp_path, 1)
    done = subprocess.run(
        [sys.executable, "-c", _QUERY, str(tmp_path), *(f"{k}={v}" for k, v in conf.items())],
        env={**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert _numbers(tmp_path) == [1]
    return [line for line in log.read_text().splitlines() if str(tmp_path / "checkpoint") in line]


def test_no_process_is_started_to_look_at_a_checkpoints_files(tmp_path: Path) -> None:
    assert _links_asked(tmp_path) == []


def test_the_callers_own_way_to_write_checkpoints_holds(tmp_path: Path) -> None:
    assert _links_asked(tmp_path, **{SETTING: SPARKS_OWN})


@pytest.mark.parametrize("first_is_sparks_own", [True, False])
def test_a_checkpoint_goes_on_whichever_way_it_was_written(
    spark: SparkSession, tmp_path: Path, first_is_sparks_own: bool
) -> None:
    ours = spark.conf.get(SETTING)
    assert ours not in (None, SPARKS_OWN)
    ways = [SPARKS_OWN, ours] if first_is_sparks_own else [ours, SPARKS_OWN]
    try:
        for number, way in enumerate(ways):
            spark.conf.set(SETTING, str(way))
            _put(tmp_path, number)
            rows = spark.readStream.schema("number INT").json(str(tmp_path / "in"))
            writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    finally:
        spark.conf.set(SETTING, str(ours))

    assert _numbers(tmp_path) == [0, 1]
