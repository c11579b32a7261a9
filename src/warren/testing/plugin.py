"""pytest plugin: the fixture ``warren_broker``, a broker of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from warren.server.broker import Broker


@pytest.fixture
def warren_broker() -> Iterator[Broker]:
    """A fresh broker on a free port, gone after the test; safe under xdist."""
    with Broker.in_thread() as broker:
        yield broker
