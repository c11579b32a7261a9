"""Which Spark writes checkpoints without child processes."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from warren.spark.checkpoints import quick_checkpoints
from warren.spark.home import spark_home
from warren.spark.session import _settings

pytest.importorskip("pyspark")

SETTING = "spark.sql.streaming.checkpointFileManagerClass"


def test_the_spark_that_is_installed_does() -> None:
    assert list(quick_checkpoints(spark_home())) == [SETTING]


def test_a_spark_without_the_class_is_told_nothing(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    with ZipFile(tmp_path / "jars" / "spark-sql_2.13-9.0.0.jar", "w") as jar:
        jar.writestr("org/apache/spark/sql/Other.class", b"")
    assert quick_checkpoints(tmp_path) == {}


def test_a_jar_that_is_none_is_sparks_to_complain_of(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-sql_2.13-4.3.0.jar").write_bytes(b"cut short")
    assert quick_checkpoints(tmp_path) == {}


def test_only_a_session_on_this_machine_and_only_if_nobody_says_otherwise() -> None:
    assert SETTING in _settings({}, {})
    assert SETTING not in _settings({}, {"spark.master": "spark://far:7077"})
    assert SETTING not in _settings({}, {SETTING: "org.example.Theirs"})
    assert _settings({SETTING: "org.example.Mine"}, {})[SETTING] == "org.example.Mine"
