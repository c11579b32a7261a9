"""A Spark session that finds Java and the right Python by itself, and keeps quiet."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warren.config import machine_bytes
from warren.errors import SparkMissing
from warren.spark import heap
from warren.spark.interrupt import stop_queries_at_ctrl_c
from warren.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOGGING = Path(__file__).with_name("log4j2.properties")

#: What a session gets, unless it is told otherwise.
_ALWAYS = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # A Python process may take long to start where much else runs.
    "spark.python.authenticate.socketTimeout": "60s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A query's options hold passwords: Spark must not show them in plans and logs.
    "spark.sql.redaction.options.regex": "(?i)url|uri|secret|password|token",
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|uri",
}
#: The same, for one machine: nobody else reaches it, and 200 shuffle tasks are too many.
_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}


def session(app_name: str = "warren", *, master: str = "local[2]", **conf: Any) -> SparkSession:
    """A Spark session in which ``format("rabbitmq")`` just works.

    Sets the workers' Python to this one, finds Java, logs errors only, and uses Arrow and UTC.
    On ``local`` Java gets a quarter of the machine's memory, 1 to 4 GiB, instead of Spark's 1 GiB.
    ``conf`` are Spark's settings: ``session(**{"spark.driver.memory": "8g"})``. With a session
    already running, that one is returned, as Spark does. Ctrl-C ends ``awaitTermination``: the
    queries are stopped when their batch is done, or by the next Ctrl-C at once.

    Raises:
        SparkMissing: PySpark is not installed.
        JavaMissing: there is no Java that Spark can run on.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkMissing(str(error)) from None
    is_new = SparkSession.getActiveSession() is None
    if is_new:
        os.environ["JAVA_HOME"] = str(java_home())
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(app_name).master(master)
    for key, value in _settings(master, conf).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if is_new:
        stop_queries_at_ctrl_c(spark)
    return spark


def _settings(master: str, conf: dict[str, Any]) -> dict[str, str]:
    settings = dict(_ALWAYS)
    if master.startswith("local"):
        settings |= _LOCAL
        if not heap.is_said():
            settings[heap.KEY] = heap.heap_for(machine_bytes())
    for key, value in conf.items():
        settings[key] = str(value).lower() if isinstance(value, bool) else str(value)
    options = [f"-Dlog4j2.configurationFile={_LOGGING}"]
    if place := settings.get("spark.local.dir", "").partition(",")[0]:
        # Spark puts folders beside it that it never removes: they go where its others are.
        Path(place).mkdir(parents=True, exist_ok=True)
        options.append(f"-Djava.io.tmpdir={place}")
    settings[_JAVA_OPTIONS] = " ".join([*options, settings.get(_JAVA_OPTIONS, "")]).rstrip()
    return settings
