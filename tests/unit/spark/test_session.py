"""A session without Spark: what it says, and what it leaves to others."""

from __future__ import annotations

import signal
import sys

import pytest

import warren.spark
from warren.errors import SparkMissing
from warren.spark.interrupt import Handler


def test_without_pyspark_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(SparkMissing, match=r"pip install 'warren\[spark\]'"):
        warren.spark.session()


def test_ctrl_c_outside_of_a_wait_is_pysparks_to_handle() -> None:
    seen: list[int] = []
    handler = Handler(None, lambda number, _: seen.append(number))  # type: ignore[arg-type]

    handler(signal.SIGINT, sys._getframe())
    handler(signal.SIGINT, None)

    assert seen == [signal.SIGINT, signal.SIGINT]
