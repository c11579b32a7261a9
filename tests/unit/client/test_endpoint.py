"""Addresses of the blocking client."""

from __future__ import annotations

import pytest

from warren.client.endpoint import Endpoint
from warren.errors import ConfigError


def test_a_uri_says_where_and_who() -> None:
    endpoint = Endpoint.from_uri("amqps://ann:s%2Fecret@broker/shop%2Feu?heartbeat=7")
    assert (endpoint.address, endpoint.vhost) == (("broker", 5671), "shop/eu")
    assert (endpoint.user, endpoint.password, endpoint.heartbeat_s) == ("ann", "s/ecret", 7)


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("ampq://ann:secret@broker", "must begin with amqp://"),
        ("amqp://ann:secret@broker:port", "Port"),
        ("amqp://ann:secret@broker?heartbeat=soon", "heartbeat=soon is not a whole number"),
        ("amqp://ann:secret@broker?heartbeat=-1", "heartbeat=-1 is not a whole number"),
    ],
)
def test_a_slip_in_a_uri_is_named_without_the_password(uri: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        Endpoint.from_uri(uri)
    assert "secret" not in str(caught.value)


def test_a_password_is_not_shown() -> None:
    endpoint = Endpoint.from_uri("amqp://ann:secret@broker")
    assert "secret" not in f"{endpoint!r} {endpoint.shown}"
