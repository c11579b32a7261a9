"""pytest plugin: the fixture ``warren_broker``, a broker of its own for each test.

Every pytest run of every project that has warren installed loads this module: it imports the
broker only when a test asks for it, and then before the first test is set up, whose time it is not.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from warren.server.broker import Broker


def pytest_collection_finish(session: pytest.Session) -> None:
    """Import the broker now, if a test that was collected wants one."""
    if any("warren_broker" in getattr(item, "fixturenames", ()) for item in session.items):
        importlib.import_module("warren.server.broker")


@pytest.fixture
def warren_broker() -> Iterator[Broker]:
    """A fresh broker on a free port, gone after the test; safe under xdist."""
    from warren.server.broker import Broker

    with Broker.in_thread() as broker:
        yield broker
