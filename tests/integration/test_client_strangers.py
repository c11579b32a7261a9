"""The client and what is no broker: other protocols, silence."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

import warren
from tests.contract.client.conftest import until
from tests.support.strangers import answering
from warren.client import Connection
from warren.errors import HostUnreachable, NotAmqp


async def _dial(url: str) -> Connection:
    return await warren.connect(url)


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "a web server answers there"),
        (b"AMQP\x00\x01\x00\x00", r"speaks AMQP 1\.0\.0, not 0\.9\.1"),
        (b"\x15\x03\x01\x00\x02\x02\x16", "speaks TLS there; use amqps://"),
        (b"220 mail.example.com ESMTP\r\n", "does not speak AMQP"),
        (b"", "hung up.*amqps://"),
    ],
)
async def test_something_else_than_a_broker(answer: bytes, meaning: str) -> None:
    with answering(answer) as port, pytest.raises(NotAmqp, match=meaning):
        await warren.connect(f"amqp://127.0.0.1:{port}")


async def test_a_host_that_keeps_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(HostUnreachable, match=r"no answer within 0\.3 s; the management API"):
            await warren.connect(f"amqp://127.0.0.1:{port}?connection_timeout=300")


async def test_giving_up_ends_the_try() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_dial(f"amqp://127.0.0.1:{port}"), 0.2)
        await until(lambda: not any(str(port) in each.name for each in threading.enumerate()))
