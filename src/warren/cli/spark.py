"""``warren spark``: have Spark start in two thirds of the time."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warren.cli import output
from warren.cli.interrupts import one_interrupt
from warren.errors import NotPrepared, SparkMissing

if TYPE_CHECKING:
    from warren.spark.prepared import Prepared

#: Long enough for a slow machine; a run takes up to a minute.
_LONGEST_S = 600.0
_LAST_WORDS = 600
#: Settings of other sessions that have no place in this one.
_LEFT_OUT = (
    *("PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "HADOOP_CONF_DIR"),
    *("YARN_CONF_DIR", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_GATEWAY_PORT"),
)


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "spark",
        help="have Spark start in two thirds of the time",
        description="What Spark needs on this machine, for sessions of 'warren.spark.session()' "
        "and 'warren run' on local[…].",
    )
    below = parser.add_subparsers(dest="action", metavar="command", required=True)
    prepare = below.add_parser(
        "prepare",
        help="keep Java's classes, so that Spark starts in two thirds of the time",
        description="Run Spark once on an embedded broker and keep the classes that Java has "
        "loaded, about 200 MB, with the Python environment or else in the user's caches. Sessions "
        "on local[…] then start in two thirds of the time. Once for each Java and each PySpark.",
    )
    prepare.add_argument("--again", action="store_true", help="also if it was done before")
    prepare.add_argument(
        "--remove", action="store_true", help="remove what was kept, for other versions as well"
    )
    prepare.set_defaults(run=_prepare)


def _prepare(options: argparse.Namespace) -> int:
    if find_spec("pyspark") is None:
        raise SparkMissing("there is no module pyspark")
    from warren.spark import prepared
    from warren.spark.java import java_home

    if options.remove:
        return _remove()
    java = java_home()
    found = prepared.find(java)
    if found is not None and not options.again:
        output.say(f"Spark is prepared: {_told(found)}")
        return 0
    output.say("running Spark once, to keep the classes that Java loads: up to a minute", "dim")
    began = time.monotonic()
    made = prepared.begin(java)
    with one_interrupt():
        _make(made, java)
    output.say(f"Spark is prepared, in {time.monotonic() - began:.0f} s: {_told(made)}")
    if home := os.environ.get("SPARK_HOME"):
        output.say(f"SPARK_HOME is set: sessions take Spark from {home}, and start as before")
    return 0


def _remove() -> int:
    from warren.spark import prepared

    removed = prepared.remove()
    for folder in removed:
        output.say(f"removed {folder}")
    if not removed:
        output.say("Spark was not prepared")
    return 0


def _told(prepared: Prepared) -> str:
    return f"{prepared.archive}, {output.size(prepared.archive.stat().st_size)}"


def _make(made: Prepared, java: Path) -> None:
    from warren.spark.prepared import new_folder

    with new_folder(made) as folder:
        archive = Path(folder) / made.archive.name
        said = _rehearse(folder, made, java, made.making_options(archive))
        if not archive.is_file():
            raise NotPrepared("Java has made no archive of its classes", _last_words(said))
        made.keep(archive)


def _rehearse(folder: str, made: Prepared, java: Path, java_options: str) -> str:
    """Run Spark once; returns what was said."""
    ours = {key: value for key, value in os.environ.items() if key not in _LEFT_OUT}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "warren.cli.spark_rehearsal", folder, java_options],
        env={**ours, "JAVA_HOME": str(java), "SPARK_HOME": str(made.home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # Java as well, which does not hear Ctrl-C
    )
    try:
        said, _ = process.communicate(timeout=_LONGEST_S)
    except subprocess.TimeoutExpired:
        raise NotPrepared(f"Spark was not done within {_LONGEST_S:.0f} s") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    if process.returncode:
        raise NotPrepared("Spark has failed", _last_words(said))
    return said


def _last_words(said: str) -> str:
    return " ".join(said[-_LAST_WORDS:].split())
