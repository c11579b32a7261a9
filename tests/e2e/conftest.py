"""What tests of the demo share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.demos import Marked


@pytest.fixture
def marked(tmp_path: Path) -> Iterator[Marked]:
    marked = Marked(tmp_path)
    yield marked
    marked.end()
