"""What a session says where Spark is not installed."""

from __future__ import annotations

import sys

import pytest

import warren.spark
from warren.errors import SparkMissing


def test_without_pyspark_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(SparkMissing, match=r"pip install 'warren\[spark\]'"):
        warren.spark.session()
