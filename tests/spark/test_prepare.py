"""``warren spark prepare``: Java's classes are kept, and the next session has them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from warren.cli.main import main
from warren.spark import prepared
from warren.spark.java import java_home

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


def maps_of(spark: SparkSession) -> str:
    """The files that the session's Java has mapped into its memory."""
    java = spark.sparkContext._jvm
    assert java is not None
    return Path(f"/proc/{java.java.lang.ProcessHandle.current().pid()}/maps").read_text()


def test_a_session_has_the_classes_that_were_kept(spark: SparkSession) -> None:
    found = prepared.find(java_home())
    if found is None and "CI" not in os.environ:
        pytest.skip("nothing is prepared: make prepared")

    assert found is not None
    assert found.archive.stat().st_size > 50_000_000
    assert {each.name for each in found.folder.iterdir()} == {"spark-home", "classes.jsa"}
    assert str(found.archive) in maps_of(spark)


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "my venv"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "my venv"


def test_it_is_told_of_and_removed(environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = prepared.begin(java_home())
    made.archive.write_bytes(b"classes")
    assert made.folder.is_relative_to(environment)

    assert main(["spark", "prepare"]) == 0
    assert capsys.readouterr().out == f"Spark is prepared: {made.archive}, 7 B\n"

    assert main(["spark", "prepare", "--remove"]) == 0
    assert capsys.readouterr().out == f"removed {made.folder}\n"
    assert not made.folder.exists()
    assert main(["spark", "prepare", "--remove"]) == 0
    assert capsys.readouterr().out == "Spark was not prepared\n"


def test_a_java_that_can_not_is_told_of_and_leaves_nothing(
    environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    java = tmp_path / "other-java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f"""#!/bin/sh
        case "$*" in *ArchiveClassesAtExit*) echo "I can't keep classes" >&2; exit 1;; esac
        exec {java_home()}/bin/java "$@"
        """
    )
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))

    assert main(["spark", "prepare"]) == 1

    said = capsys.readouterr().err
    assert "I can't keep classes" in said
    assert said.count("\n") == 1
    assert prepared.find(java_home()) is None
    assert not list(environment.rglob("new-*"))
