"""pytest plugin: the fixture ``warren_broker``, a broker of its own for each test.

Every pytest run of every project that has warren installed loads this module: it imports the
broker only when a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from warren.server.broker import Broker


@pytest.fixture
def warren_broker() -> Iterator[Broker]:
    """A fresh broker on a free port, gone after the test; safe under xdist."""
    from warren.server.broker import Broker

    with Broker.in_thread() as broker:
        yield broker
