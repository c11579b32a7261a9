"""What Spark was told outside of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from warren.spark.said import MASTER, MEMORY, settings_said


@pytest.fixture(autouse=True)
def unsaid(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (
        *("MASTER", "SPARK_DRIVER_MEMORY", "SPARK_CONF_DIR", "SPARK_HOME"),
        *("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"),
    ):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_where_nobody_says_anything_nothing_is_said(
    unsaid: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert settings_said() == {}
    (tmp_path / "spark-defaults.conf").write_text("# spark.driver.memory 9g\n\n! spark.master x\n")
    unsaid.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert settings_said() == {}


def test_the_environment_has_the_word(unsaid: pytest.MonkeyPatch) -> None:
    unsaid.setenv("SPARK_DRIVER_MEMORY", "9g")
    unsaid.setenv("MASTER", "spark://a:7077")
    assert settings_said() == {MEMORY: "9g", MASTER: "spark://a:7077"}


@pytest.mark.parametrize(
    "line",
    [
        "spark.master spark://a:7077",
        "  spark.master=spark://a:7077 ",
        "spark.master : spark://a:7077",
    ],
)
def test_sparks_own_file_has_the_word_before_the_environment(
    unsaid: pytest.MonkeyPatch, tmp_path: Path, line: str
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(f"spark.ui.port\t1\n{line}\n")
    unsaid.setenv("SPARK_HOME", str(tmp_path))
    unsaid.setenv("MASTER", "local")
    assert settings_said() == {"spark.ui.port": "1", MASTER: "spark://a:7077"}


def test_arguments_for_spark_submit_come_first(unsaid: pytest.MonkeyPatch) -> None:
    unsaid.setenv("MASTER", "local")
    unsaid.setenv(
        "PYSPARK_SUBMIT_ARGS",
        "--master yarn --driver-memory=9g --conf spark.a='b = c' -c spark.d=e pyspark-shell",
    )
    assert settings_said() == {
        MASTER: "yarn",
        MEMORY: "9g",
        "spark.a": "b = c",
        "spark.d": "e",
    }
