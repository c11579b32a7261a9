"""Queues made to order for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.wire import Channel


@pytest.fixture
def queue_with(channel: Channel, name: Callable[[str], str]) -> Callable[..., str]:
    """Declares a queue with these arguments (and options of queue.declare); returns its name."""

    def declare(arguments: dict[str, Any] | None = None, **options: Any) -> str:
        return channel.declare(name("queue"), arguments=arguments, **options).queue

    return declare


@pytest.fixture
def queue(queue_with: Callable[..., str]) -> str:
    """A plain queue."""
    return queue_with()
