"""What Spark was told outside of the program: by spark-submit, the environment or its own file."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

MASTER = "spark.master"
MEMORY = "spark.driver.memory"
#: Spark's settings in the environment, and in what spark-submit is called with.
_VARIABLES = {"MASTER": MASTER, "SPARK_DRIVER_MEMORY": MEMORY}
_ARGUMENTS = {"--master": MASTER, "--driver-memory": MEMORY}
_LINE = re.compile(r"\s*([^#!\s=:][^\s=:]*)[\s=:]\s*[=:]?\s*(.*?)\s*")


def java_runs() -> bool:
    """True in a program of spark-submit: Java was started first, and is as it was told to be."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def settings_said() -> dict[str, str]:
    """Spark's settings from outside of the program; of two that say the same, Spark's choice."""
    if java_runs():
        return _of_java()
    found = {key: os.environ[name] for name, key in _VARIABLES.items() if os.environ.get(name)}
    found |= dict(_of_file())
    return found | dict(_of_arguments(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))


def _of_java() -> dict[str, str]:
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # connects: the settings are known to Java alone
    return dict(SparkConf().getAll())


def _of_file() -> Iterator[tuple[str, str]]:
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else "")
    try:
        lines = Path(folder, "spark-defaults.conf").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        if found := _LINE.fullmatch(line):
            yield found[1], found[2]


def _of_arguments(line: str) -> Iterator[tuple[str, str]]:
    words = iter(shlex.split(line))
    for word in words:
        name, _, value = word.partition("=")
        if name in _ARGUMENTS:
            yield _ARGUMENTS[name], value or next(words, "")
        elif name in ("--conf", "-c"):
            key, _, value = (value or next(words, "")).partition("=")
            yield key, value
