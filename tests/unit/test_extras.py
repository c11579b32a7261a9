"""What an extra of the package brings is enough for the code that asks people to install it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Code, and the extra that its page or its error message names.
USERS = [
    ("src/warren/spark", "spark"),
    ("src/pyspark_rabbitmq", "spark"),
    ("src/warren/cli/scenes/shop_job.py", "spark"),
    ("src/warren/pipeline", "run"),
    ("src/warren/content_encoding.py", "run"),
    ("examples/shop-pyspark", "spark"),
    ("examples/shop-file", "run"),
    ("examples/shop-pipeline", "pipelines"),
]
#: Packages whose name on the index is not that of their module; py4j comes with PySpark.
DISTRIBUTIONS = {"yaml": "pyyaml", "google": "protobuf", "py4j": "pyspark"}
#: Methods of PySpark that import a package which PySpark itself does not bring.
NEEDS_PANDAS = {"mapInArrow", "mapInPandas", "applyInArrow", "applyInPandas", "toPandas"}


def brought(extra: str) -> set[str]:
    """Names of the packages that come with ``warren[extra]``, but for what they bring."""
    found: set[str] = set()
    for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"][extra]]:
        name, extras = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", line).groups()  # type: ignore[union-attr]
        if name == PROJECT["name"]:
            found = found.union(*map(brought, extras.split(",")))
        else:
            found.add(name.lower())
    return found


def needed(source: str) -> set[str]:
    """Names of the packages that a module can't do without."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Attribute) and node.attr in NEEDS_PANDAS:
            found.add("pandas")
    foreign = found - sys.stdlib_module_names - {"warren"}
    return {DISTRIBUTIONS.get(name, name) for name in foreign}


@pytest.mark.parametrize(("place", "extra"), USERS)
def test_an_extra_brings_all_that_its_users_import(place: str, extra: str) -> None:
    path = ROOT / place
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    assert files
    missing = {
        f"{file.relative_to(ROOT)} needs {name}"
        for file in files
        for name in needed(file.read_text()) - brought(extra)
    }
    assert not missing


@pytest.mark.parametrize("extra", ["spark", "run", "pipelines"])
def test_every_extra_with_spark_brings_pandas_as_spark_takes_it(extra: str) -> None:
    """A session's users expect ``toPandas`` and ``mapInArrow``; PySpark warns of pandas 3."""
    assert "pandas" in brought(extra)
    assert "pandas>=2.2,<3" in PROJECT["optional-dependencies"]["spark"]


@pytest.mark.parametrize(
    ("source", "package"),
    [
        ("import yaml", "pyyaml"),
        ("def f():\n    from google.protobuf import message", "protobuf"),
        ("rows.mapInArrow(f, 'a INT')", "pandas"),
        ("import os, warren.spark", None),
    ],
)
def test_what_a_module_needs_is_found(source: str, package: str | None) -> None:
    assert needed(source) == ({package} if package else set())
