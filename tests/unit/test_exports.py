"""What ``import warren`` gives, and that the reference tells of exactly that."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import warren

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
