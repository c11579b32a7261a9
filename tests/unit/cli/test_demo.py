"""``warren demo`` where Spark can't run says so, and what to do."""

from __future__ import annotations

import importlib.util
import io

import pytest

from warren.cli import demo
from warren.cli.main import main
from warren.cli.scenes.stage import Stage
from warren.errors import JavaMissing
from warren.spark import java

INSTALL = "pip install '.[spark]' in the clone of warren"


@pytest.fixture
def no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pyspark" else found(name)
    )


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise JavaMissing(17)

    monkeypatch.setattr(java, "java_home", none)


@pytest.mark.parametrize(
    ("missing", "said"),
    [("no_pyspark", INSTALL), ("no_java", "apt-get install openjdk-17-jre-headless")],
)
def test_the_shop_is_not_begun_where_spark_cannot_run(
    missing: str, said: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    request.getfixturevalue(missing)

    assert main(["demo", "--scene", "shop", "--plain"]) == 1

    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("the demo broke off: ")
    assert said in lines[0]


def test_without_spark_the_broker_is_shown_and_it_is_said_why(no_pyspark: None) -> None:
    said = io.StringIO()

    assert demo._default(Stage.open(plain=True, fast=True, file=said)) == "broker"

    first, second = said.getvalue().strip().splitlines()
    assert first == "Spark can't run here: this is what the broker can do without it."
    assert INSTALL in second
