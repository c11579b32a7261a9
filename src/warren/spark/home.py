"""A home of Spark that lets its Python processes start in half the time.

Spark puts the archive ``pyspark.zip`` of its home before everything else on the path of each
Python process, and what is imported from an archive is compiled anew each time: about a second of
work for a process, and a query starts eight. In a home without it they import the package that is
installed, which is the same.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VARIABLE = "SPARK_HOME"
#: What holds the archive in the package, and nothing else that a session needs.
_LEFT_OUT = "python"


def make_home(folder: Path) -> Path:
    """Links to what the installed PySpark has, but for its archive; in a new folder in this one."""
    import pyspark

    home = folder / "spark-home"
    home.mkdir(parents=True)
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != _LEFT_OUT:
            (home / entry.name).symlink_to(entry)
    return home


@contextmanager
def quick_home(place: str) -> Iterator[Path | None]:
    """Have a Java that is started in here take such a home, unless it was told of another.

    Only for a session on this machine: executors elsewhere have homes of their own. It lies in the
    folder ``place``, if one is named, and is gone when this process ends.
    """
    home = _temporary(place) if _is_wanted() else None
    if home is None:
        yield None
        return
    os.environ[_VARIABLE] = str(home)
    try:
        yield home
    finally:
        os.environ.pop(_VARIABLE, None)


def remove_with_java(spark: SparkSession, home: Path | None) -> None:
    """Have Java remove it as well, when it ends: it outlives a Python that is killed."""
    java = spark.sparkContext._jvm
    if home is None or java is None:
        return
    with suppress(Exception):  # of what is Spark's own: it may have another name some day
        hooks = java.org.apache.spark.util.ShutdownHookManager
        hooks.registerShutdownDeleteDir(java.java.io.File(str(home.parent)))


def _is_wanted() -> bool:
    """Nothing was said of homes or Pythons, no Java runs, and Spark's home is the package."""
    import pyspark
    from pyspark import SparkContext
    from pyspark.find_spark_home import _find_spark_home

    told = _VARIABLE in os.environ or "PYSPARK_DRIVER_PYTHON" in os.environ
    if told or os.environ.get("PYSPARK_PYTHON") != sys.executable:
        return False
    if SparkContext._gateway is not None:
        return False
    return Path(_find_spark_home()) == Path(pyspark.__file__).parent


def _temporary(place: str) -> Path | None:
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
    return home
