"""What a group decides before it asks any broker."""

from __future__ import annotations

from typing import Any

import pytest

import warren
from warren.client import Delivery
from warren.groups.group import beat_s


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


@pytest.mark.parametrize("heartbeat_s", [2, 2.5, 3, 3.5, 5, 7, 10, 59.9])
def test_rule_5_a_broker_gives_a_hung_member_up_within_two_heartbeats(heartbeat_s: float) -> None:
    """RabbitMQ, and ours as RabbitMQ: after two to three of the heartbeats that were agreed."""
    assert 3 * beat_s(heartbeat_s) < 2 * heartbeat_s


def test_less_than_two_seconds_is_no_faster_than_two() -> None:
    assert [beat_s(each) for each in (0.1, 1, 2)] == [1, 1, 1]
