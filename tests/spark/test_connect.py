"""``warren.spark.session()`` where Spark Connect is asked for, and the table on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import warren
from tests.support.servers import missing
from tests.support.wire import Channel

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]


def test_a_session_is_one_of_spark_connect_where_spark_remote_says_so(
    embedded: warren.Broker, wire: Channel, tmp_path: Path
) -> None:
    try:
        import grpc  # noqa: F401
    except ImportError as error:
        missing("Spark Connect", f"{error}: pip install 'pyspark[connect]'")
    wire.declare("in")
    wire.publish("in", b"sent")
    wire.sync()

    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connects", embedded.url, str(tmp_path)],
        cwd=ROOT,
        # SPARK_TESTING: on a free port instead of 15002.
        env={**os.environ, "SPARK_REMOTE": "local[2]", "SPARK_TESTING": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "pyspark.sql.connect.session UTC 4",
        "batch [b'sent']",
        "stream [b'written']",
        "the same True",
        "client UTC false 3",
        "the same True",
    ]
    assert "Failed to set" not in done.stderr
