"""Passwords in the plans that Spark shows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import warren
import warren.spark
from tests.spark.plans import show_plans
from tests.support.wire import Connection
from warren.spark.java import java_home

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
SECRETS = ("guest:guest", "hunter2")
MANAGEMENT = "http://me:hunter2@127.0.0.1:1"
#: What each of a query's plans says of where it reads.
PLANS = ["StreamingRelationV2", "MicroBatchScan", "MicroBatchWrite"]


@pytest.fixture
def url() -> Iterator[str]:
    """A broker with a message in a queue."""
    with warren.Broker.in_thread() as broker:
        connection = Connection.open(broker.url)
        channel = connection.channel()
        for queue in ("in", "out"):
            channel.declare(queue)
        channel.publish("in", b"x")
        channel.sync()
        connection.close()
        yield broker.url


def test_warrens_session_shows_no_password_in_any_plan_of_a_streaming_query(
    spark: SparkSession, url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    show_plans(spark, tmp_path, {"uri": url, "password": "guest", "managementUri": MANAGEMENT})

    shown = capfd.readouterr()
    assert [word for word in PLANS if word not in shown.out] == []
    assert [word for word in SECRETS if word in shown.out + shown.err] == []


@pytest.mark.parametrize("before", ["(?i)url", "(?i)mine"])
def test_a_session_that_runs_already_hides_passwords_unless_it_was_told_what_to_hide(
    spark: SparkSession, before: str
) -> None:
    name = "spark.sql.redaction.options.regex"
    ours = spark.conf.get(name)
    spark.conf.set(name, before)
    try:
        running = warren.spark.session()
        assert running.conf.get(name) == (ours if before == "(?i)url" else before)
    finally:
        spark.conf.set(name, ours)


def plain(folder: Path, **given: str) -> str:
    """All that a program with a session of Spark's own shows."""
    options = [word for pair in given.items() for word in pair]
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.plans", str(folder), *options],
        cwd=ROOT,
        env={
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_a_plain_session_hides_what_is_in_options_named_url(url: str, tmp_path: Path) -> None:
    shown = plain(tmp_path, url=url, password="guest", managementUrl=MANAGEMENT)

    assert [word for word in PLANS if word not in shown] == []
    assert [word for word in SECRETS if word in shown] == []
