"""Which queues a group has, and what the broker says of them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from warren.client.kinds import QueueKind
from warren.errors import AccessRefused
from warren.groups import discovery
from warren.groups.discovery import Discovery


async def test_a_queue_whose_kind_nobody_tells_is_named_once_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def may_not_ask(connection: Any, queue: str) -> QueueKind:
        raise AccessRefused(f"no permission to configure '{queue}'")

    monkeypatch.setattr(discovery, "queue_kind", may_not_ask)
    found = Discovery(["orders"], "amqp://localhost")
    problems = [await found._problem_of(None, "orders") for _ in range(2)]  # type: ignore[arg-type]
    assert problems == [None, None]
    (told,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    for word in ("orders", "management=", "permission to configure"):
        assert word in told.getMessage()
