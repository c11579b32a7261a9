"""Passwords in the plans that Spark shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

import warren
import warren.spark
from tests.support.spark_cluster import quick_home, quick_java
from tests.support.wire import Connection
from warren.spark.java import java_home

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
SECRET = "hunter2"
MANAGEMENT = "http://me:hunter2@127.0.0.1:1"
#: What each of a query's plans says of where it reads.
PLANS = ["StreamingRelationV2", "MicroBatchScan", "MicroBatchWrite"]


@contextmanager
def broker() -> Iterator[str]:
    """The address, with a password that is a secret, of a broker with a message in a queue."""
    with warren.Broker.in_thread() as broker:
        connection = Connection.open(broker.url)
        channel = connection.channel()
        for queue in ("in", "out"):
            channel.declare(queue)
        channel.publish("in", b"x")
        channel.sync()
        connection.close()
        broker.administer(lambda admin: admin.put_user("guest", password=SECRET, tags=""))
        yield f"amqp://guest:{SECRET}@127.0.0.1:{broker.port}/"


@pytest.mark.parametrize(
    ("given", "better"),
    [
        ({"uri": "amqp://ann:hunter2@127.0.0.1:1/"}, "'url'"),
        ({"uri": "amqp://guest:guest@127.0.0.1:1,amqp://ann:hun/ter2@127.0.0.1:1/"}, "'url'"),
        ({"managementUri": MANAGEMENT}, "'managementUrl'"),
        ({"ledger": "s3://key:hunter2@bucket/ledger"}, "environment variables"),
    ],
)
def test_a_password_that_spark_would_show_is_refused_before_there_is_a_plan(
    spark: SparkSession,
    tmp_path: Path,
    given: dict[str, str],
    better: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """By load(), save() and a streaming write's first batch, in the same words."""
    rows = spark.range(1).selectExpr("cast(id as string) body")
    stream = spark.readStream.format("rate").load().selectExpr("cast(value as string) body")
    to = {"routingKey": "a", "checkpointLocation": str(tmp_path)}
    writer = stream.writeStream.format("rabbitmq")
    ways: list[Callable[[], Any]] = [
        spark.readStream.format("rabbitmq").options(queues="a", **given).load,
        spark.read.format("rabbitmq").options(queues="a", **given).load,
        rows.write.format("rabbitmq").options(routingKey="a", **given).mode("append").save,
        lambda: writer.options(**to, **given).start().awaitTermination(60),
    ]
    for way in ways:
        with pytest.raises(CapturedException, match=better) as refused:
            way()
        assert "Traceback" not in str(refused.value)
        assert "hun" not in str(refused.value)
    shown = capfd.readouterr()
    assert "hun" not in shown.out + shown.err


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


def test_with_a_schema_of_the_users_it_is_hidden_and_refused_when_the_query_begins(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Spark asks for nothing before that."""
    reader = spark.readStream.format("rabbitmq").schema("body BINARY").option("queues", "a")
    rows = reader.option("uri", f"amqp://ann:{SECRET}@127.0.0.1:1/").load()
    rows.explain(extended=True)
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path))

    with pytest.raises(CapturedException, match="'url'") as refused:
        writer.start().awaitTermination(60)

    shown = capfd.readouterr()
    assert "StreamingRelationV2" in shown.out
    assert SECRET not in shown.out + shown.err + str(refused.value)


def test_a_uri_without_a_secret_is_taken(spark: SparkSession) -> None:
    for uri in ("amqp://mq", "amqp://guest:guest@mq/, amqp://ann@mq/"):
        spark.readStream.format("rabbitmq").options(queues="a", uri=uri, password="x").load()


def shown(kind: str, folder: Path, **given: str) -> str:
    """All that a program shows, with a session of Spark's own or of ours."""
    (folder / "events").mkdir()
    options = [word for pair in given.items() for word in pair]
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.plans", kind, str(folder), *options],
        cwd=ROOT,
        env={
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "JDK_JAVA_OPTIONS": quick_java(),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": quick_home(folder),
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


@dataclass
class Told:
    """What a program has printed, and the files that it has left, by their paths."""

    text: str
    files: dict[str, bytes]


@pytest.fixture(scope="module", params=["plain", "warren"])
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp(request.param)
    with broker() as url:
        text = shown(request.param, folder, url=url, password=SECRET, managementUrl=MANAGEMENT)
    files = [path for path in folder.rglob("*") if path.is_file()]
    return Told(text, {str(path.relative_to(folder)): path.read_bytes() for path in files})


def test_a_password_is_in_no_plan_progress_or_error(told: Told) -> None:
    assert [word for word in [*PLANS, "by a view", "numInputRows"] if word not in told.text] == []
    assert SECRET not in told.text


def test_a_password_in_a_uri_is_refused_before_a_file_could_have_it(told: Told) -> None:
    """Nothing is left of it, either: the next test looks at all files."""
    refused = re.findall(
        r"refused: .*?call the option 'url', which Spark hides", told.text, re.DOTALL
    )
    assert len(refused) == 3
    assert [path for path in told.files if path.startswith("refused/sink/")] != []


def test_a_password_is_in_no_file_that_is_left(told: Told) -> None:
    for place in ("checkpoint/offsets/0", "ledger/ledger.json", "views/ledger.json", "events/"):
        assert [path for path in told.files if path.startswith(place)] != []
    assert [path for path, data in told.files.items() if SECRET.encode() in data] == []


def test_a_table_of_sql_whose_options_spark_has_dropped_says_so(told: Told) -> None:
    for problem in ("CREATE TABLE", "url", "queues"):
        words = rf"{problem} \(format\S+: .*keeps no OPTIONS.*CREATE TEMPORARY VIEW"
        assert len(re.findall(words, told.text)) == 1
