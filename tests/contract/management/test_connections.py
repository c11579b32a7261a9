"""Closing connections, and seeing channels come and go."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import partial

import pytest

from tests.contract.management.http import Answer, Api, at
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.wire import Connection


@pytest.fixture
def connection(connect: Callable[..., Connection]) -> Connection:
    return connect()


@pytest.fixture
def path(api: Api, broker: TestBroker, connection: Connection) -> str:
    """Of the connection, once the API knows it."""
    host, port = connection.wire.sock.getsockname()[:2]
    path = at("connections", f"{host}:{port} -> {broker.host}:{broker.port}")
    eventually(lambda: api.ask("GET", path).status == 200, every_s=0.1)
    return path


@pytest.mark.parametrize(
    ("headers", "reason"),
    [({}, "Closed via management plugin"), ({"x_reason": "Time to go"}, "Time to go")],
)
def test_a_connection_is_closed_with_a_reason(
    api: Api, connection: Connection, path: str, headers: dict[str, str], reason: str
) -> None:
    assert api.ask("DELETE", path, **headers).said == (204, None)
    closed = connection.expect_closed()
    assert (closed.code, closed.text) == (320, f"CONNECTION_FORCED - {reason}")
    gone: Callable[[], Answer] = partial(api.ask, "GET", path)
    eventually(lambda: gone().status == 404, every_s=0.1)


def test_a_connection_has_its_channels(api: Api, connection: Connection, path: str) -> None:
    connection.channel()
    connection.channel()

    def numbers() -> bool:
        rows = api.get(f"{path}/channels")
        return [row["number"] for row in rows] == [1, 2]

    eventually(numbers, every_s=0.1)
    # RabbitMQ tells the number some seconds later.
    eventually(lambda: api.get(path)["channels"] == 2, every_s=0.1)


def test_all_connections_of_a_user_are_closed(
    api: Api, broker: TestBroker, connect: Callable[..., Connection]
) -> None:
    user = f"user-{secrets.token_hex(4)}"
    broker.add_user(user, "secret")
    try:
        broker.set_permissions(user, "/")
        mine = [connect(user=user, password="secret") for _ in range(2)]
        other = connect()
        path = at("connections", "username", user)
        eventually(lambda: len(api.get(path)) == 2, within_s=30, every_s=0.2)
        assert sorted(api.get(path)[0]) == ["name", "node", "user", "vhost"]
        assert api.ask("DELETE", path, x_reason="Enough").said == (204, None)
        for connection in mine:
            assert connection.expect_closed().text == "CONNECTION_FORCED - Enough"
        other.channel()
        eventually(lambda: api.get(path) == [], within_s=30, every_s=0.2)
    finally:
        broker.delete_user(user)
