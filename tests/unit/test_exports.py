"""What ``import warren`` gives, and that the reference tells of exactly that."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import warren
from warren import errors

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "api.md"


@pytest.mark.parametrize("name", warren.__all__)
def test_a_public_name_can_be_imported(name: str) -> None:
    assert getattr(warren, name) is not None


def test_a_lazy_name_is_listed_before_it_is_loaded() -> None:
    assert set(warren.__all__) <= set(dir(warren))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Rabbit"):
        warren.Rabbit  # noqa: B018


def test_importing_warren_needs_no_extra() -> None:
    code = "import sys, warren; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split()
    assert not {"pyspark", "pyarrow", "httpx", "google.auth", "pytest", "rich"} & set(loaded)


@pytest.mark.parametrize("name", warren.__all__)
def test_a_public_name_is_in_the_reference(name: str) -> None:
    # As a code term: `Broker`, `warren.Broker`, `Broker(port=0)`
    assert re.search(rf"`(warren\.)?{name}\b[^`]*`", PAGE.read_text())


def test_the_reference_names_nothing_that_is_not_public() -> None:
    told = set(re.findall(r"`warren\.([A-Za-z]\w*)(?![\w.])", PAGE.read_text()))
    packages = {path.stem for path in (ROOT / "src" / "warren").iterdir()}
    assert told - packages <= set(warren.__all__)


# -- warren.spark --------------------------------------------------------------------------------
def spark_names() -> list[str]:
    """Read, not imported: it needs an extra."""
    body = ast.parse((ROOT / "src" / "warren" / "spark" / "__init__.py").read_text()).body
    (found,) = (each for each in body if isinstance(each, ast.Assign))
    names: list[str] = ast.literal_eval(found.value)
    return names


@pytest.mark.parametrize("name", spark_names())
def test_a_public_name_of_spark_is_in_the_reference_as_it_is_called(name: str) -> None:
    spark = pytest.importorskip("warren.spark")
    told = re.search(rf"^`warren\.spark\.{name}\((.*?)\)`$", PAGE.read_text(), re.MULTILINE)
    assert told is not None
    given = inspect.signature(getattr(spark, name)).parameters.values()
    assert re.findall(r"\w+(?==|,|$)", re.sub(r"=[^,]*", "", told[1])) == [p.name for p in given]


def test_the_reference_names_nothing_of_spark_that_is_not_public() -> None:
    told = set(re.findall(r"`warren\.spark\.(\w+)", PAGE.read_text()))
    assert told == set(spark_names())


SPARK_ERRORS = [
    each
    for each in vars(errors.spark).values()
    if isinstance(each, type) and each.__module__ == errors.spark.__name__
]


@pytest.mark.parametrize("error", SPARK_ERRORS, ids=lambda error: error.__name__)
def test_an_error_of_spark_is_in_the_reference_with_its_attributes(
    error: type[warren.WarrenError],
) -> None:
    line = re.search(rf"^\| [^|]*`{error.__name__}`.*$", PAGE.read_text(), re.MULTILINE)
    assert line is not None
    if "__init__" in vars(error):
        for name in list(inspect.signature(error).parameters):
            assert f"`{name}`" in line[0].rpartition("| ")[2]
