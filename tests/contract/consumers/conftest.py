"""A queue for each test of this folder."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.wire import Channel


@pytest.fixture
def queue(channel: Channel, name: Callable[[str], str]) -> str:
    """An empty queue that any connection may use."""
    return channel.declare(name("queue")).queue
