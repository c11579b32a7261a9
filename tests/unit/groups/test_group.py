"""What a group decides before it asks any broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
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
        ({"discover_s": 0}, "discover_s .*above 0"),
        ({"drain_s": "30"}, "drain_s .*a number"),
        ({"min_interval_s": -1}, "min_interval_s .*negative"),
        ({"member_name": ""}, "member_name .*a text"),
        ({"coordinator": "amqp://u:secret@other"}, "coordinator .*other:5672.*localhost:5672"),
        ({"coordinator": "amqp://localhost/v"}, "coordinator .*'v'.*Leave it out"),
    ],
)
def test_an_option_that_can_not_be_meant_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(warren.ConfigError, match=told):
        warren.Group("amqp://localhost", "g", ["q"], listener=nothing, **options)


def test_a_broker_that_is_refused_is_told_without_its_password() -> None:
    with pytest.raises(warren.ConfigError) as refused:
        options: Any = {"coordinator": "amqp://u:secret@other"}
        warren.Group("amqp://localhost", "g", ["q"], listener=nothing, **options)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("coordinator", ["amqp", "amqp://u:p@localhost:5672/%2F", "etcd://other"])
def test_a_group_may_meet_at_its_own_broker_or_elsewhere_but_at_no_other_broker(
    coordinator: str,
) -> None:
    warren.Group("amqp://localhost", "g", ["q"], listener=nothing, coordinator=coordinator)


def plain(delivery: Delivery) -> None: ...


async def yields(delivery: Delivery) -> AsyncIterator[int]:
    yield 1


async def with_more(more: int, delivery: Delivery) -> None: ...


class Called:
    async def __call__(self, delivery: Delivery) -> None: ...
    async def method(self, delivery: Delivery) -> None: ...


@pytest.mark.parametrize("listener", [plain, partial(plain), yields, warren.Listener, "nothing"])
def test_what_can_not_be_awaited_is_no_listener(listener: Any) -> None:
    with pytest.raises(warren.ConfigError, match=r"listener .*`async def`\. An App"):
        warren.Group("amqp://localhost", "g", ["q"], listener=listener)


@pytest.mark.parametrize(
    "listener",
    [
        nothing,
        partial(with_more, 1),
        Called(),
        Called().method,
        partial(Called()),
        warren.Listener(),
    ],
)
def test_whatever_is_async_is_a_listener(listener: Any) -> None:
    warren.Group("amqp://localhost", "g", ["q"], listener=listener)


@pytest.mark.parametrize("heartbeat_s", [2, 2.5, 3, 3.5, 5, 7, 10, 59.9])
def test_rule_5_a_broker_gives_a_hung_member_up_within_two_heartbeats(heartbeat_s: float) -> None:
    """RabbitMQ, and ours as RabbitMQ: after two to three of the heartbeats that were agreed."""
    assert 3 * beat_s(heartbeat_s) < 2 * heartbeat_s


def test_less_than_two_seconds_is_no_faster_than_two() -> None:
    assert [beat_s(each) for each in (0.1, 1, 2)] == [1, 1, 1]
