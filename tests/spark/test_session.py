"""``warren.spark.session()`` and ``read_queues()``: what a user gets without set-up."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyspark
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import warren
import warren.spark
from tests.spark import tables
from tests.spark.queries import is_too_slow
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.wire import Channel, Connection
from warren.spark.interrupt import Handler, is_waiting
from warren.spark.java import java_home

pytestmark = [pytest.mark.timeout(180)]
README = Path(__file__).parents[2] / "README.md"


@pytest.mark.spark
def test_a_session_has_arrow_utc_and_this_python(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    workers = spark.sparkContext.parallelize([0], 1)
    assert workers.map(lambda _: sys.executable).collect() == [sys.executable]


@pytest.mark.spark
def test_the_workers_import_the_pyspark_that_is_installed(spark: SparkSession) -> None:
    """Not the one in Spark's archive: each process would compile it anew."""
    workers = spark.sparkContext.parallelize([0], 1)
    assert workers.map(lambda _: pyspark.__file__).collect() == [pyspark.__file__]


@pytest.mark.spark
def test_a_session_is_the_one_that_runs_already(spark: SparkSession) -> None:
    assert warren.spark.session() is spark


@pytest.mark.spark
def test_a_session_that_runs_already_keeps_its_settings(spark: SparkSession) -> None:
    theirs = {
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.shuffle.partitions": "3",
    }
    before = {key: spark.conf.get(key) for key in [*theirs, "spark.sql.ansi.enabled"]}
    try:
        for key, value in theirs.items():
            spark.conf.set(key, value)
        assert warren.spark.session(**{"spark.sql.ansi.enabled": False}) is spark
        assert {key: spark.conf.get(key) for key in theirs} == theirs
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
    finally:
        for key, was in before.items():
            assert was is not None
            spark.conf.set(key, was)


@pytest.mark.spark
def test_a_thread_of_ones_own_may_write_once_it_has_asked_for_the_session(
    spark: SparkSession, broker: TestBroker, channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("threads")
    channel.declare(queue)

    def write() -> None:
        rows = warren.spark.session().sql(f"SELECT 'hello' AS body, '{queue}' AS routing_key")
        rows.write.format("rabbitmq").option("uri", broker.url).mode("append").save()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(write).result()

    assert channel.count(queue) == 1


_PROGRAM = """
import warren.spark
spark = warren.spark.session("shop")
for key in ("spark.master", "spark.sql.session.timeZone", "spark.ui.enabled"):
    print(key, spark.sparkContext.getConf().get(key))
print("rows", spark.range(3).count())
"""


@pytest.mark.spark
def test_what_spark_submit_was_told_holds(tmp_path: Path) -> None:
    program = tmp_path / "shop.py"
    program.write_text(_PROGRAM)
    command = [
        *(Path(sys.executable).with_name("spark-submit"), "--master", "local[3]"),
        *("--conf", "spark.sql.session.timeZone=Asia/Tokyo", program),
    ]
    done = subprocess.run(
        command,
        env={**os.environ, "JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "spark.master local[3]",
        "spark.sql.session.timeZone Asia/Tokyo",
        "spark.ui.enabled false",
        "rows 3",
    ]


_SPREAD = """
import sys, warren.spark
spark = warren.spark.session(master="local[7]")
queues = [f"spread-{number}" for number in range(9)]
rows = warren.spark.read_queues(spark, queues, uri=sys.argv[1], stream=False, peek=True)
print(rows.rdd.getNumPartitions())
"""


@pytest.mark.spark
def test_queues_are_spread_over_the_cores_that_the_session_has(
    embedded: warren.Broker, wire: Channel
) -> None:
    for number in range(9):
        wire.declare(f"spread-{number}")
        wire.publish(f"spread-{number}", b"x")
    wire.sync()

    done = subprocess.run(
        [sys.executable, "-c", _SPREAD, embedded.url],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )

    assert done.stdout.splitlines() == ["7"], done.stderr


@pytest.mark.spark
def test_spark_shows_no_password_in_a_plan(spark: SparkSession, tmp_path: Path) -> None:
    rows = warren.spark.read_queues(
        spark, "a", uri="amqp://me:hunter2@127.0.0.1/", ledger=str(tmp_path)
    )
    plan = rows._jdf.queryExecution().toString()
    assert "hunter2" not in plan


@pytest.mark.spark
def test_queues_are_read_with_one_call(
    spark: SparkSession,
    broker: TestBroker,
    channel: Channel,
    name: Callable[[str], str],
    tmp_path: Path,
) -> None:
    queue = name("one-call")
    channel.declare(queue)
    for number in range(5):
        channel.publish(queue, b"%d" % number)
    channel.sync()

    rows = warren.spark.read_queues(
        spark,
        [queue],
        uri=broker.url,
        ledger=str(tmp_path),
        stream=False,
        drain_timeout_ms=5_000,
        peek=False,
    )
    assert sorted(bytes(row.body) for row in rows.select("body").collect()) == [
        b"%d" % number for number in range(5)
    ]


def test_importing_it_needs_neither_spark_nor_java() -> None:
    code = "import sys, warren.spark; sys.exit('pyspark' in sys.modules)"
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
    )


@pytest.mark.spark
def test_what_java_puts_aside_is_where_spark_was_told(spark: SparkSession) -> None:
    assert spark._jvm is not None
    told = spark.conf.get("spark.local.dir")
    assert spark._jvm.java.lang.System.getProperty("java.io.tmpdir") == told


@pytest.fixture
def ctrl_c(spark: SparkSession) -> Iterator[Callable[[Callable[[], bool]], None]]:
    """Presses it once something is so and the program waits for its query."""
    before = signal.signal(signal.SIGINT, Handler(spark, signal.default_int_handler))
    main = threading.main_thread().ident
    assert main is not None

    def press(check: Callable[[], bool]) -> None:
        try:
            eventually(
                lambda: check() and is_waiting(sys._current_frames()[main]),
                within_s=120,
                every_s=0.1,
            )
        except AssertionError:  # then the test must not wait for ever
            for query in spark.streams.active:
                query.stop()
        else:
            os.kill(os.getpid(), signal.SIGINT)

    yield lambda check: threading.Thread(target=press, args=(check,), daemon=True).start()
    signal.signal(signal.SIGINT, before)


@pytest.mark.spark
def test_the_ten_lines_of_the_readme_fill_a_table_until_ctrl_c(
    spark: SparkSession,
    ctrl_c: Callable[[Callable[[], bool]], None],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    program = re.findall(r"(?ms)^```python\n(import warren\.spark\n.*?)^```$", README.read_text())[
        0
    ]
    with warren.Broker.in_thread() as broker:
        connection = Connection.open(broker.url)
        channel = connection.channel()
        for queue in ("orders.de", "orders.fr"):
            channel.declare(queue, durable=True)
            channel.publish(queue, b"5")
        channel.sync()
        connection.close()
        program = program.replace("amqp://guest:guest@localhost/", broker.url)
        program = program.replace('"data/', f'"{tmp_path}/')
        ctrl_c(lambda: tables.numbers(tmp_path / "orders") == [5, 5])
        until_it_ends(program)

    assert tables.numbers(tmp_path / "orders") == [5, 5]
    assert spark.streams.active == []
    assert "Traceback" not in capfd.readouterr().err


def until_it_ends(program: str) -> None:
    for _ in range(5):
        try:
            exec(compile(program, "README.md", "exec"), {"__name__": "__main__"})
        except StreamingQueryException as error:
            if not is_too_slow(error):
                raise
        else:
            return
