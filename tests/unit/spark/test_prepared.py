"""What was prepared for Spark's Java: where it is looked for, and for whom it is good."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

import pyspark
import pytest
from pyspark import SparkContext

from warren.errors import NotPrepared
from warren.spark import prepared
from warren.spark.home import quick_home
from warren.spark.prepared import Prepared


@pytest.fixture
def java(tmp_path: Path) -> Path:
    java = tmp_path / "java"
    java.mkdir()
    (java / "release").write_text('JAVA_VERSION="17.0.1"')
    return java


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python environment and caches of this test's own."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "my venv"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    return tmp_path / "my venv"


def prepare(java: Path) -> Prepared:
    made = prepared.begin(java)
    with prepared.new_folder(made) as folder:
        archive = Path(folder) / "made.jsa"
        archive.write_bytes(b"classes")
        made.keep(archive)
    return made


def test_what_is_prepared_lies_with_the_environment_and_is_found(
    environment: Path, java: Path
) -> None:
    assert prepared.find(java) is None

    made = prepare(java)

    assert made.folder.is_relative_to(environment)
    assert prepared.find(java) == made
    assert (made.home / "jars").samefile(Path(pyspark.__file__).parent / "jars")
    assert not (made.home / "python").exists()


def test_without_the_archive_it_is_not_found(environment: Path, java: Path) -> None:
    prepared.begin(java)

    assert prepared.find(java) is None


def test_another_java_is_not_the_one_it_is_good_for(environment: Path, java: Path) -> None:
    prepare(java)
    (java / "release").write_text('JAVA_VERSION="17.0.2"')

    assert prepared.find(java) is None


def test_another_pyspark_is_not_the_one_it_is_good_for(
    environment: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(java)
    monkeypatch.setattr(pyspark, "__version__", "9.9.9")

    assert prepared.find(java) is None


def test_where_the_environment_can_t_be_written_it_goes_to_the_caches(
    environment: Path, java: Path, tmp_path: Path
) -> None:
    environment.write_text("no folder")

    made = prepare(java)

    assert made.folder.is_relative_to(tmp_path / "caches")
    assert prepared.find(java) == made


def test_where_nothing_can_be_written_the_error_names_the_places(
    environment: Path, java: Path, tmp_path: Path
) -> None:
    environment.write_text("no folder")
    (tmp_path / "caches").write_text("no folder either")

    with pytest.raises(NotPrepared) as refused:
        prepared.begin(java)

    assert str(environment) in str(refused.value)
    assert str(tmp_path / "caches") in str(refused.value)


def test_a_session_takes_the_home_and_tells_java_of_the_archive(
    environment: Path, java: Path, tmp_path: Path
) -> None:
    made = prepare(java)
    (tmp_path / "local").mkdir()

    with quick_home(java, str(tmp_path / "local")) as home:
        assert home is not None
        assert os.environ["SPARK_HOME"] == str(made.home)
        # The environment's name has a space in it.
        assert shlex.split(home.java_options)[0] == f"-XX:SharedArchiveFile={made.archive}"
        assert not home.is_temporary

    assert "SPARK_HOME" not in os.environ
    assert list((tmp_path / "local").iterdir()) == []


def test_beginning_twice_leaves_one_whole_home_and_nothing_else(
    environment: Path, java: Path
) -> None:
    first = prepare(java)

    assert prepared.begin(java) == first

    assert {each.name for each in first.folder.iterdir()} == {"spark-home", "classes.jsa", "size"}
    assert (first.home / "jars").is_dir()


def test_an_archive_that_was_cut_short_is_not_found(environment: Path, java: Path) -> None:
    """Java would crash with it."""
    made = prepare(java)
    made.archive.write_bytes(b"class")

    assert prepared.find(java) is None
    assert prepare(java) == prepared.find(java)


@pytest.mark.parametrize("change", ["jar", "conf"])
def test_a_pyspark_that_was_installed_again_is_not_the_one_it_is_good_for(
    environment: Path, java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    package = tmp_path / "pyspark"
    (package / "jars").mkdir(parents=True)
    (package / "jars" / "spark.jar").write_bytes(b"classes")
    monkeypatch.setattr(pyspark, "__file__", str(package / "__init__.py"))
    made = prepare(java)
    assert prepared.find(java) == made

    if change == "jar":
        os.utime(package / "jars" / "spark.jar", (1, 1))
    else:
        (package / "conf").mkdir()
        (package / "conf" / "spark-defaults.conf").write_text("spark.ui.enabled true")

    assert prepared.find(java) is None


def test_caches_that_can_t_be_looked_at_have_nothing(
    environment: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may look everywhere, but not where a name is too long."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/" + 300 * "x")

    assert prepared.find(java) is None


def test_a_user_without_a_home_has_what_lies_with_the_environment(
    environment: Path, java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    made = prepare(java)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)

    assert prepared.find(java) == made


def test_what_somebody_left_who_was_killed_is_swept(environment: Path, java: Path) -> None:
    made = prepare(java)
    for name, age_s in (("new-old", 7200), ("new-young", 60)):
        (made.folder / name).mkdir()
        then = time.time() - age_s
        os.utime(made.folder / name, (then, then))

    prepared.begin(java)

    assert [each.name for each in made.folder.glob("new-*")] == ["new-young"]


def test_all_of_it_is_removed_for_other_javas_as_well(environment: Path, java: Path) -> None:
    first = prepare(java)
    (java / "release").write_text('JAVA_VERSION="17.0.2"')
    second = prepare(java)

    assert set(prepared.remove()) == {first.folder, second.folder}

    assert prepared.find(java) is None
    assert not first.folder.exists()
    assert not second.folder.exists()
    assert prepared.remove() == []
