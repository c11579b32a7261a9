from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from warren.errors import ListenError
from warren.handlers.health import HealthServer


class Worker:
    healthy, ready = True, False

    def status(self) -> dict[str, Any]:
        return {"healthy": self.healthy, "ready": self.ready, "queues": 3}


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
async def server(worker: Worker) -> AsyncIterator[HealthServer]:
    server = HealthServer(worker.status, lambda: "warren_x 1\n")
    await server.start()
    yield server
    await server.stop()


async def ask(server: HealthServer, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    await writer.wait_closed()
    return answer


def get(path: str, method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


async def test_a_member_is_ready_once_it_says_so(server: HealthServer, worker: Worker) -> None:
    assert b" 200 " in await ask(server, get("/health"))
    assert b" 503 " in await ask(server, get("/ready"))
    worker.ready = True
    answer = await ask(server, get("/ready"))
    assert b" 200 " in answer
    assert b'"queues": 3' in answer


async def test_metrics_are_given_as_text(server: HealthServer) -> None:
    answer = await ask(server, get("/metrics?x=1"))
    assert answer.endswith(b"\r\n\r\nwarren_x 1\n")
    assert b"text/plain; version=0.0.4" in answer


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/"), b" 404 "),
        (get("/health", "POST"), b" 405 "),
    ],
)
async def test_what_is_not_there_is_said_so(
    server: HealthServer, request_: bytes, status: bytes
) -> None:
    assert status in await ask(server, request_)


@pytest.mark.parametrize("rubbish", [b"\x00\x01\r\n\r\n", b"GET /" + b"x" * 40_000])
async def test_rubbish_costs_the_connection_only(server: HealthServer, rubbish: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        await ask(server, rubbish)
    assert b" 200 " in await ask(server, get("/health"))


async def test_a_taken_port_is_named(server: HealthServer, worker: Worker) -> None:
    other = HealthServer(worker.status, str, port=server.port)
    with pytest.raises(ListenError, match=str(server.port)):
        await other.start()
