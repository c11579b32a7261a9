"""Folders of any file system that Spark reaches: listed and deleted the way Spark does it."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import SparkSession

#: What is a pattern's where paths are read.
_SPECIAL = re.compile(r"[\\{}\[\]*?]")


def literal(path: str) -> str:
    """A path for ``spark.read``, which takes patterns and finds every folder that fits one."""
    return _SPECIAL.sub(r"\\\g<0>", path)


class Folder:
    """One folder, by Hadoop's file systems."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        assert spark._jvm is not None
        self._place = place.rstrip("/")
        self._path: Any = spark._jvm.org.apache.hadoop.fs.Path
        self._system = self._path(self._place).getFileSystem(spark._jsc.hadoopConfiguration())

    def path(self, name: str) -> str:
        return f"{self._place}/{name}"

    def names(self) -> list[str]:
        """The folders in it; none if it is not there."""
        place = self._path(self._place)
        if not self._system.exists(place):
            return []
        found = self._system.listStatus(place)
        return [str(each.getPath().getName()) for each in found if each.isDirectory()]

    def delete(self, name: str) -> None:
        self._system.delete(self._path(self.path(name)), True)
