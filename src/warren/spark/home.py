"""A home of Spark that lets its Python processes start in half the time.

Spark puts the archive ``pyspark.zip`` of its home before everything else on the path of each
Python process, and what is imported from an archive is compiled anew each time: about a second of
work for a process, and a query starts eight. In a home without it they import the package that is
installed, which is the same. Where it was prepared, Java starts sooner as well (``prepared.py``);
elsewhere a home is made for one session.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warren.spark import prepared
from warren.spark.prepared import make_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VARIABLE = "SPARK_HOME"


@dataclass(frozen=True)
class Home:
    """Spark's home for the sessions of this process."""

    path: Path
    #: What Java needs to know to start quickly.
    java_options: str = ""
    is_temporary: bool = False


def spark_home() -> Path:
    """Where Spark is that a session of this process would start."""
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


@contextmanager
def quick_home(java_home: Path, place: str) -> Iterator[Home | None]:
    """Have a Java that is started in here take such a home, unless it was told of another.

    Only for a session on this machine: executors elsewhere have homes of their own. Where none was
    prepared, it lies in the folder ``place``, if one is named, and is gone when this process ends.
    """
    home = _prepared(java_home) or _temporary(place) if _is_wanted() else None
    if home is None:
        yield None
        return
    os.environ[_VARIABLE] = str(home.path)
    try:
        yield home
    finally:
        os.environ.pop(_VARIABLE, None)


def remove_with_java(spark: SparkSession, home: Home | None) -> None:
    """Have Java remove it as well, when it ends: it outlives a Python that is killed."""
    java = spark.sparkContext._jvm
    if home is None or not home.is_temporary or java is None:
        return
    with suppress(Exception):  # of what is Spark's own: it may have another name some day
        hooks = java.org.apache.spark.util.ShutdownHookManager
        hooks.registerShutdownDeleteDir(java.java.io.File(str(home.path.parent)))


def _is_wanted() -> bool:
    """Nothing was said of homes or Pythons, no Java runs, and Spark's home is the package."""
    import pyspark
    from pyspark import SparkContext

    told = _VARIABLE in os.environ or "PYSPARK_DRIVER_PYTHON" in os.environ
    if told or os.environ.get("PYSPARK_PYTHON") != sys.executable:
        return False
    if SparkContext._gateway is not None:
        return False
    return spark_home() == Path(pyspark.__file__).parent


def _prepared(java_home: Path) -> Home | None:
    found = prepared.find(java_home)
    return None if found is None else Home(found.home, found.java_options)


def _temporary(place: str) -> Home | None:
    """None where there can't be one: then it takes longer."""
    made, owner = "", os.getpid()
    try:
        made = os.path.abspath(tempfile.mkdtemp(prefix="warren-spark-", dir=place or None))
        if os.pathsep in made:  # Java's list of jars would end there
            raise OSError("not a place for jars")
        home = make_home(Path(made))
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        return None

    def remove() -> None:
        if os.getpid() == owner:  # not in a process that was forked
            shutil.rmtree(made, ignore_errors=True)

    atexit.register(remove)
    return Home(home, is_temporary=True)
