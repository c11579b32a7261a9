"""The home that Java is given, so that Python starts quickly."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark import SparkContext, find_spark_home

from warren.spark.home import quick_home

INSTALLED = Path(pyspark.__file__).parent
JAVA = Path("/nowhere/java")


@pytest.fixture
def unsaid(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nobody has said anything of Spark's home, and no Java runs."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr("warren.spark.prepared.find", lambda java_home: None)
    return monkeypatch


def home() -> str | None:
    return os.environ.get("SPARK_HOME")


def test_java_gets_all_of_pyspark_but_its_archive(
    unsaid: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with quick_home(JAVA, str(tmp_path)):
        given = Path(home() or "")
        assert given.is_relative_to(tmp_path)
        assert (given / "bin" / "spark-submit").samefile(INSTALLED / "bin" / "spark-submit")
        assert (given / "jars").samefile(INSTALLED / "jars")
        assert not list(given.glob("python/lib/pyspark.zip"))
    assert home() is None


@pytest.mark.parametrize("name", ["SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"])
def test_what_was_said_holds(unsaid: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    unsaid.setenv(name, "/elsewhere")
    before = home()

    with quick_home(JAVA, str(tmp_path)):
        assert home() == before

    assert list(tmp_path.iterdir()) == []


def test_a_java_that_runs_already_needs_none(unsaid: pytest.MonkeyPatch, tmp_path: Path) -> None:
    unsaid.setattr(SparkContext, "_gateway", object())

    with quick_home(JAVA, str(tmp_path)):
        assert home() is None

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", ["nowhere", "at 10:00"])
def test_where_nothing_can_be_made_it_does_without(
    unsaid: pytest.MonkeyPatch, tmp_path: Path, folder: str
) -> None:
    (tmp_path / "at 10:00").mkdir()

    with quick_home(JAVA, str(tmp_path / folder)):
        assert home() is None

    assert list(tmp_path.rglob("*")) == [tmp_path / "at 10:00"]


def test_a_home_that_is_not_the_package_is_left_alone(
    unsaid: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As Spark's own distribution, whose Python has nothing but Python in it."""
    unsaid.setattr(find_spark_home, "_find_spark_home", lambda: "/opt/spark")

    with quick_home(JAVA, str(tmp_path)):
        assert home() is None


_FORKS = """
import os
from pathlib import Path
from warren.spark.home import quick_home
with quick_home(Path("/nowhere/java"), "."):
    home = os.environ["SPARK_HOME"]
child = os.fork()
if child:
    os.waitpid(child, 0)
    print("jars" in os.listdir(home))
"""


def test_it_is_gone_when_the_process_ends_and_not_when_a_child_does(
    unsaid: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", _FORKS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == "True\n"
    assert list(tmp_path.iterdir()) == []
