"""Which Spark writes checkpoints without child processes."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from warren.spark.checkpoints import SETTING, is_here, quick_checkpoints
from warren.spark.home import spark_home
from warren.spark.session import _settings

pytest.importorskip("pyspark")


@pytest.fixture(autouse=True)
def nothing_of_other_file_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)


def _home(folder: Path, *others: str) -> Path:
    """One of a Spark that has the class, and other files besides."""
    (folder / "jars").mkdir()
    (folder / "conf").mkdir()
    for other in others:
        (folder / other).write_bytes(b"")
    with ZipFile(folder / "jars" / "spark-sql_2.13-4.3.0.jar", "w") as jar:
        name = quick_checkpoints(spark_home(), {})[SETTING].replace(".", "/")
        jar.writestr(f"{name}.class", b"")
    return folder


def test_the_spark_that_is_installed_does() -> None:
    assert list(quick_checkpoints(spark_home(), {})) == [SETTING]


def test_one_that_was_taught_nothing_of_other_file_systems_does(tmp_path: Path) -> None:
    settings = {"spark.jars": "", "spark.hadoop.parquet.x": "1", "spark.executor.cores": "2"}
    assert quick_checkpoints(_home(tmp_path), settings)


@pytest.mark.parametrize(
    "setting",
    [
        "spark.jars",
        "spark.jars.packages",
        "spark.driver.extraClassPath",
        "spark.hadoop.fs.defaultFS",
        "spark.hadoop.fs.s3a.endpoint",
    ],
)
def test_one_that_may_write_checkpoints_elsewhere_is_told_nothing(
    tmp_path: Path, setting: str
) -> None:
    assert quick_checkpoints(_home(tmp_path), {setting: "something"}) == {}
    assert SETTING not in _settings({setting: "something"}, {})
    assert SETTING not in _settings({}, {setting: "something"})


@pytest.mark.parametrize("other", ["jars/hadoop-aws-3.5.0.jar", "conf/core-site.xml"])
def test_nor_is_one_whose_home_knows_other_file_systems(tmp_path: Path, other: str) -> None:
    assert quick_checkpoints(_home(tmp_path, other), {}) == {}


@pytest.mark.parametrize("name", ["HADOOP_CONF_DIR", "YARN_CONF_DIR"])
def test_nor_one_with_hadoops_settings_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    home = _home(tmp_path)
    monkeypatch.setenv(name, "somewhere")
    assert quick_checkpoints(home, {}) == {}


@pytest.mark.parametrize(
    ("folder", "here"),
    [
        ("/data/checkpoint", True),
        ("data/a:b", True),
        ("file:/data", True),
        ("FILE:///data", True),
        ("hdfs://name/data", False),
        ("s3a://bucket/data", False),
        ("hdfs:/data", False),
    ],
)
def test_what_a_folders_name_says_of_where_it_is(folder: str, here: bool) -> None:
    assert is_here(folder) is here


def test_a_spark_without_the_class_is_told_nothing(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    with ZipFile(tmp_path / "jars" / "spark-sql_2.13-9.0.0.jar", "w") as jar:
        jar.writestr("org/apache/spark/sql/Other.class", b"")
    assert quick_checkpoints(tmp_path, {}) == {}


def test_a_jar_that_is_none_is_sparks_to_complain_of(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-sql_2.13-4.3.0.jar").write_bytes(b"cut short")
    assert quick_checkpoints(tmp_path, {}) == {}


def test_only_a_session_on_this_machine_and_only_if_nobody_says_otherwise() -> None:
    assert SETTING in _settings({}, {})
    assert SETTING not in _settings({}, {"spark.master": "spark://far:7077"})
    assert SETTING not in _settings({}, {SETTING: "org.example.Theirs"})
    assert _settings({SETTING: "org.example.Mine"}, {})[SETTING] == "org.example.Mine"
    assert SETTING not in _settings({SETTING: None}, {})
