"""How long a publisher tries to reach its broker, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from warren.client import blocking_publisher
from warren.client.blocking_publisher import BlockingPublisher, PublishRules
from warren.client.endpoint import Endpoint
from warren.client.publish_connection import PublishConnection
from warren.errors import HostUnreachable, LoginRefused, VhostRefused, WarrenError


class Clock:
    """Stands for the module ``time``: a pause is over at once."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


class Back(Exception):
    """The broker is there again; what follows is no matter of time."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(blocking_publisher, "time", clock)
    return clock


def down_until(
    at_s: float, clock: Clock, monkeypatch: pytest.MonkeyPatch, error: WarrenError
) -> list[float]:
    """Lets every connection fail until then; says when it was tried."""
    tried: list[float] = []

    def connect(*_: Any, **__: Any) -> None:
        tried.append(clock.now)
        raise error if clock.now < at_s else Back

    monkeypatch.setattr(PublishConnection, "open", connect)
    return tried


UNREACHABLE = HostUnreachable("mq:5672", "Connection refused")
ENDPOINT = Endpoint.from_uri("amqp://mq")


@pytest.mark.parametrize("error", [UNREACHABLE, VhostRefused("mq:5672", "/", "it is down")])
def test_a_broker_that_is_gone_for_most_of_a_minute_is_waited_for(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, error: WarrenError
) -> None:
    tried = down_until(55.0, clock, monkeypatch, error)
    with pytest.raises(Back):
        BlockingPublisher([ENDPOINT], PublishRules(retries=0)).publish([b""])
    assert 55 <= tried[-1] <= 60


@pytest.mark.parametrize("patience_s", [0, 5, 60])
def test_a_broker_that_stays_away_is_given_up_when_the_time_is_over(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, patience_s: int
) -> None:
    tried = down_until(1_000.0, clock, monkeypatch, UNREACHABLE)
    with pytest.raises(HostUnreachable):
        BlockingPublisher([ENDPOINT], PublishRules(reconnect_s=patience_s)).publish([b""])
    assert tried[-1] == pytest.approx(patience_s)


def test_a_wrong_password_is_not_tried_twice(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = down_until(1_000.0, clock, monkeypatch, LoginRefused("mq:5672", "ann"))
    with pytest.raises(LoginRefused):
        BlockingPublisher([ENDPOINT]).publish([b""])
    assert tried == [0.0]
