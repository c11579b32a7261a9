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
from contextlib import contextmanager
from pathlib import Path

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
def quick_home(place: str) -> Iterator[None]:
    """Have a Java that is started in here take such a home, unless it was told of another.

    Only for a session on this machine: executors elsewhere have homes of their own. It lies in the
    folder ``place``, if one is named, and is gone when this process ends.
    """
    is_told = _VARIABLE in os.environ or os.environ.get("PYSPARK_PYTHON") != sys.executable
    folder = None if is_told or _java_started() else _temporary(place)
    if folder is None:
        yield
        return
    os.environ[_VARIABLE] = str(folder)
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


def _java_started() -> bool:
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def _temporary(place: str) -> Path | None:
    """None where there can't be one: then it takes longer."""
    made, owner = "", os.getpid()
    try:
        made = tempfile.mkdtemp(prefix="warren-spark-", dir=place or None)
        home = make_home(Path(made))
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        return None

    def remove() -> None:
        if os.getpid() == owner:  # not in a process that was forked
            shutil.rmtree(made, ignore_errors=True)

    atexit.register(remove)
    return home
