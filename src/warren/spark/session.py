"""A Spark session that finds Java and the right Python by itself, and keeps quiet."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warren.config import machine_bytes
from warren.errors import ConfigError, SparkMissing
from warren.spark.checkpoints import quick_checkpoints
from warren.spark.connect import EITHER, is_connect, remote_of, said_by, started
from warren.spark.cores import cores_told
from warren.spark.heap import heap_for
from warren.spark.home import quick_home, remove_with_java, spark_home
from warren.spark.interrupt import stop_queries_at_ctrl_c
from warren.spark.java import in_options, java_home
from warren.spark.said import MASTER, MEMORY, java_runs, settings_said

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOGGING = Path(__file__).with_name("log4j2.properties")
#: Which options plans don't show: what Spark hides by itself, and what we have it hide.
_OPTIONS_HIDDEN = "spark.sql.redaction.options.regex"
_SPARKS_OWN, _SECRETS = "(?i)url", "(?i)url|uri|secret|password|token"

#: What a session gets, unless it is told otherwise.
_ALWAYS = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # A Python process may take long to start where much else runs.
    "spark.python.authenticate.socketTimeout": "60s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What is refused where a source is made may stand in a plan before that.
    _OPTIONS_HIDDEN: _SECRETS,
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|uri",
}
#: The same, for one machine: nobody else reaches it, and 200 shuffle tasks are too many.
_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}
#: Where PySpark says each error of a query, with Java's stack in a line, before it raises it.
_SAID_TWICE = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
#: Where it runs if nothing names a master.
_HERE = "local[2]"


def session(app_name: str = "warren", *, master: str | None = None, **conf: Any) -> SparkSession:
    """A Spark session in which ``format("rabbitmq")`` just works.

    Sets the workers' Python to this one, finds Java, logs errors only, and uses Arrow and UTC.
    On ``local`` Java gets a quarter of the machine's memory, 1 to 4 GiB, instead of Spark's 1 GiB.
    ``conf`` are Spark's settings: ``session(**{"spark.driver.memory": "8g"})``; one that is None is
    left to Spark. What neither they nor ``master`` say is as spark-submit, the environment or
    spark-defaults.conf has it; if they name no master, it is ``local[2]``. Ctrl-C ends
    ``awaitTermination``: the queries are stopped when their batch is done, or by the next Ctrl-C
    at once.

    Where ``SPARK_REMOTE`` is set it is a session of Spark Connect.

    A session that runs already is returned as it is, but for what ``conf`` says, and that plans
    show no passwords.

    Raises:
        SparkMissing: PySpark is not installed.
        JavaMissing: there is no Java that Spark can run on.
        ConfigError: a master is named, and Spark Connect asked for.
    """
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkMissing(str(error)) from None
    given: dict[str, Any] = {
        key: None if value is None else _text(value) for key, value in conf.items()
    }
    # Which session is active is known of this thread only; the context is there for all.
    if SparkContext._active_spark_context is not None or SparkSession.getActiveSession():
        return _running(given)
    if master is not None:
        given[MASTER] = given.get(MASTER) or master
    remote = remote_of(given)
    if remote and given.get(MASTER):
        raise ConfigError("master", f"Spark Connect is asked for, by {said_by(given)}: {EITHER}")
    if remote and not _is_local(remote):  # its Java, its Pythons and its logs are others' to set up
        sql = {key: value for key, value in _ALWAYS.items() if key.startswith("spark.sql.")}
        return SparkSession.builder.appName(app_name).config(map=_said(sql | given)).getOrCreate()
    if not java_runs():
        os.environ["JAVA_HOME"] = str(java_home())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = _settings(given, settings_said(), remote)
    builder = SparkSession.builder.appName(app_name).config(map=settings)
    if _is_local(where := remote or settings[MASTER]) and not java_runs():
        spark = _started_here(builder, settings, where)
    else:
        spark = builder.getOrCreate()
    if not is_connect(spark):  # which leaves no way to Java
        stop_queries_at_ctrl_c(spark)
    _say_errors_once()
    return spark


def _running(given: Mapping[str, Any]) -> SparkSession:
    """The session that runs already, in this thread or in another."""
    from pyspark.sql import SparkSession

    running = SparkSession.builder.config(map=_said(given)).getOrCreate()
    # Spark Connect keeps one to itself that names secrets, such as ours.
    if running.conf.get(_OPTIONS_HIDDEN, _SPARKS_OWN) == _SPARKS_OWN:
        running.conf.set(_OPTIONS_HIDDEN, _SECRETS)
    if SparkSession.getActiveSession() is None:
        # A thread of its own. Spark looks a sink written in Python up in the active session
        # alone, and this is its public way to make one active.
        running.createDataFrame([], "nothing INT")
    return running


def _started_here(
    builder: SparkSession.Builder, settings: Mapping[str, str], where: str
) -> SparkSession:
    """A session whose Java is started on this machine, from a home that starts quickly."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    java = Path(os.environ["JAVA_HOME"])
    with cores_told(where), quick_home(java, _local_dir(settings)) as home:
        if home is not None and home.java_options:
            # First: of two options that contradict each other, Java takes the last.
            options = f"{home.java_options} {settings[_JAVA_OPTIONS]}"
            builder = builder.config(_JAVA_OPTIONS, options)
        spark = started(builder)
    if not is_connect(spark):
        remove_with_java(spark, home)
    return spark


def _say_errors_once() -> None:
    from pyspark.logger import PySparkLogger

    for name in _SAID_TWICE:
        # By PySpark's own way: it calls them with what the loggers of Python do not take.
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def _settings(
    given: Mapping[str, Any], said: Mapping[str, str], remote: str = ""
) -> dict[str, Any]:
    """All that a new session is given: what the caller says, then what was said elsewhere.

    No master beside ``remote``, which says where a server of Spark Connect is started.
    """
    master = remote or given.get(MASTER) or said.get(MASTER) or _HERE
    settings = dict(_ALWAYS)
    if _is_local(master):
        settings |= _LOCAL | quick_checkpoints(spark_home(), _said({**said, **given}))
        if not java_runs():
            settings[MEMORY] = heap_for(machine_bytes())
    for key in said:
        settings.pop(key, None)
    settings |= given if remote else {**given, MASTER: master}
    place = _local_dir(settings)
    if place:
        Path(place).mkdir(parents=True, exist_ok=True)
    if not java_runs():
        before = given.get(_JAVA_OPTIONS) or said.get(_JAVA_OPTIONS, "")
        settings[_JAVA_OPTIONS] = _java_options(place, before)
    return _said(settings)


def _said(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Without those that are left to Spark."""
    return {key: value for key, value in settings.items() if value is not None}


def _local_dir(settings: Mapping[str, str]) -> str:
    """Where temporary files go; "": where the system has them."""
    folders = os.environ.get("SPARK_LOCAL_DIRS") or settings.get("spark.local.dir") or ""
    return folders.partition(",")[0]


def _java_options(place: str, before: str) -> str:
    options = [f"-Dlog4j2.configurationFile={in_options(_LOGGING)}"]
    if place:
        # Spark puts folders beside it that it never removes: they go where its others are.
        options.append(f"-Djava.io.tmpdir={in_options(place)}")
    return " ".join([*options, before]).rstrip()


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
