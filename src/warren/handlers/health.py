"""A small HTTP endpoint for those who watch a worker: Kubernetes and Prometheus.

    GET /health    200 while the process works, 503 once it is stopping or the work on a queue has
                   failed for a reason that no rule is for: restart it if this fails
    GET /ready     200 once the member is in its group, 503 before that, while the broker is away
                   and once it is stopping; etcd may go away later, as the work goes on then
    GET /metrics   counters for Prometheus

It answers one request a connection and reads no body: whoever asks for more gets 4xx.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import h11

from warren.errors import ListenError

#: A request line and its headers; a probe needs a tenth of this.
MOST_REQUEST_BYTES = 16 * 1024
WAIT_S = 10.0

Answer = tuple[int, str, bytes]


class HealthServer:
    """Answers probes with what the given functions say."""

    def __init__(
        self,
        status: Callable[[], dict[str, Any]],
        metrics: Callable[[], str],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._status, self._metrics = status, metrics
        self._host, self._port = host, port
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port it listens on; the one asked for until it does."""
        if self._server is None:
            return self._port
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Raises ListenError if the port can't be had."""
        try:
            self._server = await asyncio.start_server(
                self._serve, self._host, self._port, limit=MOST_REQUEST_BYTES
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise ListenError(self._host, self._port, reason) from error

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(WAIT_S):
                await self._talk(reader, writer)
        except (OSError, TimeoutError, h11.RemoteProtocolError):
            pass
        finally:
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        machine = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_REQUEST_BYTES)
        while (event := machine.next_event()) is h11.NEED_DATA:
            machine.receive_data(await reader.read(4096))
        if not isinstance(event, h11.Request):
            return
        status, kind, body = self._answer(event.method, event.target)
        head = h11.Response(
            status_code=status,
            headers=[
                ("content-type", kind),
                ("content-length", str(len(body))),
                ("connection", "close"),
            ],
        )
        writer.write(machine.send(head) or b"")
        if event.method != b"HEAD":
            writer.write(machine.send(h11.Data(data=body)) or b"")
        await writer.drain()

    def _answer(self, method: bytes, target: bytes) -> Answer:
        if method not in (b"GET", b"HEAD"):
            return 405, "text/plain", b"only GET and HEAD\n"
        path = target.partition(b"?")[0]
        if path == b"/metrics":
            return 200, "text/plain; version=0.0.4; charset=utf-8", self._metrics().encode()
        if path not in (b"/health", b"/ready"):
            return 404, "text/plain", b"there are /health, /ready and /metrics\n"
        status = self._status()
        good = status["healthy"] if path == b"/health" else status["ready"]
        return 200 if good else 503, "application/json", json.dumps(status).encode() + b"\n"
