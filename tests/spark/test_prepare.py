"""``warren spark prepare``: Java's classes are kept, and the next session has them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.eventually import eventually
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
    assert {each.name for each in found.folder.iterdir()} == {"spark-home", "classes.jsa", "size"}
    assert str(found.archive) in maps_of(spark)


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "my venv"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return tmp_path / "my venv"


def test_it_is_told_of_and_removed(environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = prepared.begin(java_home())
    with prepared.new_folder(made) as folder:
        archive = Path(folder) / "made.jsa"
        archive.write_bytes(b"classes")
        made.keep(archive)
    assert made.folder.is_relative_to(environment)

    assert main(["spark", "prepare"]) == 0
    assert capsys.readouterr().out == f"Spark is prepared: {made.archive}, 7 B\n"

    assert main(["spark", "prepare", "--remove"]) == 0
    assert capsys.readouterr().out == f"removed {made.folder}\n"
    assert not made.folder.exists()
    assert main(["spark", "prepare", "--remove"]) == 0
    assert capsys.readouterr().out == "Spark was not prepared\n"


def java_that(folder: Path, does: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Java of this test, which does something else when it is to keep classes."""
    java = folder / "other-java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f"""#!/bin/sh
        case "$*" in *ArchiveClassesAtExit*) {does};; esac
        exec {java_home()}/bin/java "$@"
        """
    )
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))


def test_a_java_that_can_not_is_told_of_and_leaves_nothing(
    environment: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    java_that(tmp_path, """echo "I can't keep classes" >&2; exit 1""", monkeypatch)

    assert main(["spark", "prepare"]) == 1

    said = capsys.readouterr().err
    assert "I can't keep classes" in said
    assert said.count("\n") == 1
    assert prepared.find(java_home()) is None
    assert not list(environment.rglob("new-*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_no_java_and_nothing_half_made(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Java, which doesn't hear Ctrl-C, would write its archive when nobody is there any more."""
    begun = tmp_path / "begun"
    java_that(tmp_path, f"trap '' INT TERM; echo $$ > {begun}; exec sleep 300", monkeypatch)
    process = subprocess.Popen(
        [sys.executable, "-c", _PREPARE.format(prefix=str(environment))],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        eventually(lambda: begun.is_file() and begun.read_text().endswith("\n"), within_s=60)
        os.killpg(process.pid, number)
        said, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()

    java = int(begun.read_text())
    eventually(lambda: not is_running(java), within_s=10)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert not list(environment.rglob("new-*"))


_PREPARE = """
import sys
sys.prefix = {prefix!r}
from warren.cli.main import main
sys.exit(main(["spark", "prepare"]))
"""


def is_running(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
