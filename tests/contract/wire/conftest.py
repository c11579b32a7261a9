"""Fixtures for tests that speak in bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.brokers import TestBroker
from tests.support.wire_frames import Wire


@pytest.fixture
def dial(broker: TestBroker) -> Iterator[Callable[[], Wire]]:
    """Opens bare sockets to the broker: nothing is sent on them yet."""
    opened: list[Wire] = []

    def open_wire() -> Wire:
        opened.append(Wire(broker.host, broker.port))
        return opened[-1]

    yield open_wire
    for wire in opened:
        wire.close()
