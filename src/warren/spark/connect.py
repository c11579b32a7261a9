"""Spark Connect: a session that speaks to a server, which may be one that it has started."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


REMOTE = "SPARK_REMOTE"
_SETTING = "spark.remote"
#: What to do where a master is named as well.
EITHER = "leave that out, or name no master"


def remote_of(given: Mapping[str, str]) -> str:
    """The server, as `sc://host:15002`, or as a master where one is to be started; "": none."""
    return given.get(_SETTING) or os.environ.get(REMOTE, "")


def said_by(given: Mapping[str, str]) -> str:
    """Where that was said."""
    return f"the setting {_SETTING}" if given.get(_SETTING) else f"{REMOTE} in the environment"


def is_connect(spark: Any) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def started(builder: SparkSession.Builder) -> SparkSession:
    """A session whose Java, or whose server of Spark Connect, is started now."""
    with warnings.catch_warnings():
        # PySpark gives its server each setting a second time, when it is too late for most.
        warnings.filterwarnings("ignore", "Failed to set spark", UserWarning)
        return builder.getOrCreate()
