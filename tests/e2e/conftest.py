"""What tests of the demo share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.demos import Marked


@pytest.fixture
def marked() -> Iterator[Marked]:
    marked = Marked()
    yield marked
    marked.end()
