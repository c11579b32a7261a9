"""How much memory Java gets on one machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from warren.spark import heap

GIB = 1 << 30


@pytest.mark.parametrize(
    ("machine", "gets"),
    [(1, "1024m"), (8, "2048m"), (10, "2560m"), (16, "4096m"), (256, "4096m")],
)
def test_java_gets_a_quarter_of_the_machine_within_bounds(machine: int, gets: str) -> None:
    assert heap.heap_for(machine * GIB + 5) == gets


@pytest.fixture
def unsaid(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("SPARK_DRIVER_MEMORY", "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_who_has_said_nothing_gets_ours(unsaid: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not heap.is_said()
    (tmp_path / "spark-defaults.conf").write_text("# spark.driver.memory 9g\nspark.ui.port 1\n")
    unsaid.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert not heap.is_said()


def test_the_environment_has_the_word(unsaid: pytest.MonkeyPatch) -> None:
    unsaid.setenv("SPARK_DRIVER_MEMORY", "9g")
    assert heap.is_said()


@pytest.mark.parametrize("line", ["spark.driver.memory 9g", "  spark.driver.memory=9g"])
def test_sparks_own_file_has_the_word(
    unsaid: pytest.MonkeyPatch, tmp_path: Path, line: str
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(f"spark.ui.port 1\n{line}\n")
    unsaid.setenv("SPARK_HOME", str(tmp_path))
    assert heap.is_said()
