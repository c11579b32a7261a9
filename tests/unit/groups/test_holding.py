from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from warren.errors import ConsumerCancelled, WarrenError
from warren.groups.holding import Holding
from warren.groups.listener import Listener


class Channel:
    """Answers consume, and takes the queue away before the answer is read."""

    def __init__(self) -> None:
        self.closed = False

    async def consume(
        self,
        queue: str,
        callback: Any,
        *,
        exclusive: bool,
        on_cancel: Callable[[WarrenError], None],
    ) -> None:
        on_cancel(ConsumerCancelled(queue, "deleted"))

    async def close(self) -> None:
        self.closed = True


def told(holding: Holding, reason: str) -> None: ...


async def test_a_queue_that_is_taken_away_at_once_is_not_claimed() -> None:
    channel = Channel()
    holding = Holding("orders", Listener(), lost=told, failed=told)
    with pytest.raises(ConsumerCancelled):
        await holding.claim(channel, exclusive=True)  # type: ignore[arg-type]
    assert channel.closed
