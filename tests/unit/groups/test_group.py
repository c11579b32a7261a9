"""What a group refuses before it asks any broker."""

from __future__ import annotations

from typing import Any

import pytest

import warren
from warren.client import Delivery


async def nothing(delivery: Delivery) -> None: ...


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"heartbeat_s": 0}, "heartbeat_s .*above 0"),
        ({"heartbeat_s": -1}, "heartbeat_s .*above 0"),
        ({"weight": -1}, "weight .*negative"),
        ({"balance": "luck"}, "balance .*count or load"),
    ],
)
def test_an_option_that_can_not_be_meant_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(warren.ConfigError, match=told):
        warren.Group("amqp://localhost", "g", ["q"], listener=nothing, **options)
