"""A broker whose time stands still, and connections to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import warren
from tests.support.wire import Channel, Connection
from warren.testing import FakeClock


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def broker(clock: FakeClock) -> Iterator[warren.Broker]:
    """A broker whose time stands still."""
    with warren.Broker.in_thread(clock=clock) as broker:
        yield broker


@pytest.fixture
def connect(broker: warren.Broker) -> Iterator[Callable[..., Connection]]:
    opened: list[Connection] = []

    def connect(**options: Any) -> Connection:
        opened.append(Connection.open(broker.url, **options))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


@pytest.fixture
def channel(connect: Callable[..., Connection]) -> Channel:
    return connect().channel()
