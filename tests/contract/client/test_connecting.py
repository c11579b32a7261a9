"""Connecting: hosts, users, virtual hosts, names; and what is said when it does not work."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

import warren
from tests.contract.client.conftest import Dial, until
from tests.contract.management.http import Api
from tests.support.brokers import TestBroker
from tests.support.proxy import Proxy
from warren.client import Connection
from warren.errors import (
    ConfigError,
    ConnectionClosed,
    HostUnreachable,
    LoginRefused,
    NoChannelLeft,
    NotFound,
    TlsFailed,
    VhostRefused,
)


@pytest.fixture
def nobody() -> Iterator[str]:
    """Host and port where nobody listens: the port is taken, and refuses."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{sock.getsockname()[1]}"


async def test_the_second_host_is_used_when_the_first_is_down(
    dial: Dial, broker: TestBroker, nobody: str
) -> None:
    connection = await dial(f"amqp://guest:guest@{nobody},{broker.host}:{broker.port}/")

    assert connection.address == f"{broker.host}:{broker.port}"


async def test_a_list_of_urls_is_tried_in_turn(dial: Dial, broker: TestBroker, nobody: str) -> None:
    connection = await dial([f"amqp://{nobody}", broker.url])

    assert connection.address == f"{broker.host}:{broker.port}"


async def test_after_a_loss_the_next_host_is_tried_first(
    dial: Dial, broker: TestBroker, proxy: Proxy
) -> None:
    connection = await dial([proxy.url, broker.url])
    assert connection.address == f"127.0.0.1:{proxy.port}"

    proxy.cut()
    await until(lambda: connection.generation == 2)

    assert connection.address == f"{broker.host}:{broker.port}"


async def test_the_connection_has_the_name_it_was_given(dial: Dial, broker: TestBroker) -> None:
    await dial(name="billing 7")
    api = Api(broker.management)

    def named() -> bool:
        return any(
            each.get("client_properties", {}).get("connection_name") == "billing 7"
            and each["client_properties"]["product"] == "warren"
            for each in api.get("connections")
        )

    await until(named, 30)


async def test_a_virtual_host_of_its_own(dial: Dial, broker: TestBroker, name: Any) -> None:
    vhost = name("vhost /")
    broker.add_vhost(vhost)
    try:
        connection = await dial(broker.url + quote(vhost, safe=""))
        channel = await connection.channel()
        with pytest.raises(NotFound) as missing:
            await channel.declare_queue("missing", passive=True)
        assert missing.value.vhost == vhost
        await connection.close()
    finally:
        broker.delete_vhost(vhost)


async def test_nobody_there(dial: Dial, nobody: str) -> None:
    with pytest.raises(HostUnreachable) as error:
        await dial(f"amqp://{nobody}")
    assert str(error.value) == (
        f"no broker answers at {nobody} (Connection refused): start it there, or correct host "
        "and port in the URL"
    )


async def test_all_hosts_down_names_them_all(dial: Dial, nobody: str) -> None:
    with pytest.raises(HostUnreachable, match=f"{nobody}, localhost:1 .*refused"):
        await dial(f"amqp://{nobody},localhost:1")


async def test_a_wrong_password(dial: Dial, broker: TestBroker) -> None:
    with pytest.raises(LoginRefused) as error:
        await dial(f"amqp://guest:secret@{broker.host}:{broker.port}")
    assert "refused the login of 'guest'" in str(error.value)
    assert "secret" not in str(error.value) + repr(error.value)


async def test_a_refused_login_says_more_than_a_host_that_is_down(
    dial: Dial, broker: TestBroker, nobody: str
) -> None:
    with pytest.raises(LoginRefused):
        await dial(f"amqp://guest:wrong@{nobody},{broker.host}:{broker.port},{nobody}")


async def test_an_unknown_virtual_host(dial: Dial, broker: TestBroker) -> None:
    with pytest.raises(VhostRefused, match=r"virtual host 'nowhere'.*not found.*create it"):
        await dial(broker.url + "nowhere")


async def test_tls_where_there_is_none(dial: Dial, broker: TestBroker) -> None:
    with pytest.raises(TlsFailed, match=r"use amqp:// if the port has no TLS"):
        await dial(f"amqps://{broker.host}:{broker.port}", connect_timeout_s=5)


async def test_a_closed_connection_can_t_be_used(connection: Connection) -> None:
    channel = await connection.channel()
    await connection.close()
    await connection.close()

    with pytest.raises(ConnectionClosed):
        await connection.channel()
    with pytest.raises(warren.ClientError, match="closed"):
        await channel.declare_queue("x")
    assert connection.state == "closed"


async def test_channels_up_to_the_limit_and_again_when_some_are_closed(
    dial: Dial, broker: TestBroker
) -> None:
    connection = await dial(f"{broker.url}?channel_max=3")
    channels = [await connection.channel() for _ in range(3)]
    with pytest.raises(NoChannelLeft, match="all 3 channels"):
        await connection.channel()

    await channels[1].close()

    assert (await connection.channel()).is_open


async def test_nothing_is_left_when_the_connection_is_closed(broker: TestBroker) -> None:
    before = set(threading.enumerate())
    async with warren.connect(broker.url) as connection:
        await connection.channel()
        assert any(each.name == "warren-heartbeats" for each in threading.enumerate())
    await until(lambda: not set(threading.enumerate()) - before)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://localhost", "does not begin with amqp"),
        ("amqp://localhost?hartbeat=5", "did you mean heartbeat"),
        ("amqp://localhost?heartbeat=soon", "not a whole number"),
        ("amqp://localhost:port", "not a host and port"),
        ("amqps://localhost?cacertfile=/no/such.pem", "/no/such.pem"),
        ("amqp://localhost?auth_mechanism=magic", "plain and external"),
    ],
)
def test_a_url_that_can_t_be_used(url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        warren.connect(url)
