"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from warren.errors import JavaMissing
from warren.spark.java import java_home


def java(folder: Path, version: str) -> Path:
    """A home with a Java that says it is of this version."""
    home = folder / f"java-{version}"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026' >&2\n")
    program.chmod(0o755)
    return home


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java, until a test puts one somewhere."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_without_java_the_error_says_how_to_get_it(no_java: Path) -> None:
    with pytest.raises(JavaMissing, match=r"needs Java 17 or newer.* openjdk-17-jre-headless"):
        java_home(no_java / "jvm")


def test_an_old_java_is_passed_over_and_named(
    no_java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = java(no_java / "jvm", "1.8.0_392")
    monkeypatch.setenv("JAVA_HOME", str(old))
    with pytest.raises(JavaMissing, match="has Java 8, which is too old"):
        java_home(no_java / "jvm")


def test_a_java_that_spark_is_tested_with_is_taken_before_others(no_java: Path) -> None:
    for version in ("11.0.2", "25.0.1", "21.0.2", "17.0.9"):
        java(no_java / "jvm", version)
    assert java_home(no_java / "jvm").name == "java-17.0.9"


def test_java_home_wins(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java(no_java / "jvm", "17.0.9")
    named = java(no_java, "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(named))
    assert java_home(no_java / "jvm") == named
