"""The management API's sockets: HTTP/1.1 by h11, bounded in size and in time."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from email.utils import formatdate
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

import h11

from warren.broker.core import BrokerCore
from warren.management.messages import HttpError, Request, Response
from warren.server.listening import listen_error
from warren.server.tls import HANDSHAKE_TIMEOUT_S

log = logging.getLogger(__name__)

#: The largest request line with its headers, and the largest body.
MAX_HEAD_BYTES = 32 * 1024
MAX_BODY_BYTES = 64 << 20
#: How long a client may take to send a request, and to ask again on the same connection.
REQUEST_TIMEOUT_S = 30.0
IDLE_TIMEOUT_S = 60.0
WRITE_TIMEOUT_S = 60.0
MAX_CONNECTIONS = 512
#: How long a change may take to reach the disk before the client is told that it did not.
COMMIT_TIMEOUT_S = 30.0
_READ = 64 * 1024
_SERVER = b"warren"

Answer = Callable[[Request], Response]


class HttpServer:
    """Listens, reads requests, and has them answered on the broker's own thread."""

    def __init__(
        self,
        core: BrokerCore,
        answer: Answer,
        after_event: Callable[[], None],
        synced: Callable[[], Awaitable[None]],
    ) -> None:
        self._core = core
        self._answer = answer
        self._after_event = after_event
        self._synced = synced
        self._listeners: list[asyncio.Server] = []
        self._clients: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Listen, here as well as elsewhere; returns the port."""
        try:
            listener = await asyncio.start_server(
                self._client,
                host,
                port,
                ssl=tls,
                ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if tls is not None else None,
            )
        except (OSError, UnicodeError) as error:
            setting = "management_port" if tls is None else "management_tls_port"
            raise listen_error(error, host, port, setting) from None
        self._listeners.append(listener)
        return int(listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        for listener in self._listeners:
            listener.close()
        for task in list(self._clients):
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        for listener in self._listeners:
            await listener.wait_closed()
        self._listeners.clear()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._clients) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._clients.add(task)
        try:
            await _Exchange(self, reader, writer).run()
        except (TimeoutError, OSError, asyncio.CancelledError):
            pass  # gone, too slow, or we stop
        except Exception:
            log.exception("an HTTP connection failed")
        finally:
            self._clients.discard(task)
            writer.transport.abort() if writer.is_closing() else writer.close()

    async def answer(self, request: Request) -> Response:
        """Answer, and wait until what was changed is safe."""
        response = self._answer(request)
        if response.wait_ms:
            await self._wait(response.wait_ms)
            response = self._answer(replace(request, waited=True))
        self._after_event()
        if request.method in ("GET", "HEAD"):
            return response
        try:
            async with asyncio.timeout(COMMIT_TIMEOUT_S):
                await self._synced()
        except TimeoutError:
            return _not_on_disk()
        return response

    async def _wait(self, wait_ms: int) -> None:
        """By the broker's own clock."""
        over = asyncio.Event()
        self._core.timers.after(wait_ms, over.set)
        self._after_event()
        await over.wait()


class _Exchange:
    """One TCP connection: requests and answers in turn."""

    def __init__(
        self, server: HttpServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        peer = writer.get_extra_info("peername")
        self._peer = str(peer[0]) if peer else ""

    async def run(self) -> None:
        timeout_s = REQUEST_TIMEOUT_S
        while True:
            try:
                async with asyncio.timeout(timeout_s):
                    head = await self._next_event()
                if not isinstance(head, h11.Request):
                    return
                async with asyncio.timeout(REQUEST_TIMEOUT_S):
                    body = await self._body(head)
                if body is None:
                    await self._refuse(413, head.method)
                    return
                request = self._request(head, body)
            except h11.RemoteProtocolError as error:
                await self._refuse(error.error_status_hint or 400)
                return
            except UnicodeDecodeError:
                await self._refuse(400)
                return
            response = await self._server.answer(request)
            await self._send(response, head.method)
            if self._http.our_state is h11.MUST_CLOSE or self._http.states[h11.CLIENT] in (
                h11.MUST_CLOSE,
                h11.CLOSED,
            ):
                return
            self._http.start_next_cycle()
            timeout_s = IDLE_TIMEOUT_S

    async def _next_event(self) -> h11.Event | type[h11.PAUSED]:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event  # type: ignore[return-value]
            if self._http.they_are_waiting_for_100_continue:
                go_on = self._http.send(h11.InformationalResponse(status_code=100, headers=[]))
                self._writer.write(go_on or b"")
            self._http.receive_data(await self._reader.read(_READ))

    async def _body(self, head: h11.Request) -> bytes | None:
        """The whole body; None if it is too large."""
        for name, value in head.headers:
            # Judged before it is here: nobody makes us hold what we won't take.
            if name == b"content-length" and int(value) > MAX_BODY_BYTES:
                return None
        pieces: list[bytes] = []
        size = 0
        while True:
            event = await self._next_event()
            if not isinstance(event, h11.Data):
                return b"".join(pieces)
            size += len(event.data)
            if size > MAX_BODY_BYTES:
                return None
            pieces.append(bytes(event.data))

    def _request(self, head: h11.Request, body: bytes) -> Request:
        target = head.target.decode("ascii")
        path, _, query = target.partition("?")
        pairs = parse_qsl(query, keep_blank_values=True)
        return Request(
            head.method.decode("ascii"),
            tuple(unquote(part, errors="surrogateescape") for part in path.split("/")[1:]),
            dict(pairs),
            tuple(pairs),
            {name.decode("ascii"): _text(value) for name, value in head.headers},
            body,
            self._peer,
        )

    async def _send(self, response: Response, method: bytes) -> None:
        pieces = []
        for piece in response.pieces:
            pieces.append(piece)
            await asyncio.sleep(0)  # a long list must not hold up the broker
        body = b"".join(pieces)
        headers = [
            (b"server", _SERVER),
            (b"date", formatdate(usegmt=True).encode()),
            *((name.encode(), _safe(value)) for name, value in response.headers),
        ]
        if response.status != 204:
            headers.append((b"content-length", str(len(body)).encode()))
        answer = h11.Response(
            status_code=response.status, headers=headers, reason=_reason(response.status)
        )
        self._write(answer)
        if body and method != b"HEAD":
            self._write(h11.Data(data=body))
        self._write(h11.EndOfMessage())
        async with asyncio.timeout(WRITE_TIMEOUT_S):
            await self._writer.drain()

    def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)

    async def _refuse(self, status: int, method: bytes = b"GET") -> None:
        """What can't be read: say so if that is still possible, and end."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            await self._send(Response(status, headers=[("connection", "close")]), method)


def _not_on_disk() -> Response:
    reason = "the change is made, but not on disk: that is full, fails or is slow (see the log)"
    return HttpError(503, "service_unavailable", reason).response()


def _reason(status: int) -> bytes:
    return HTTPStatus(status).phrase.encode()


def _text(value: bytes) -> str:
    """A header's value; most clients send UTF-8, whatever the standard says."""
    return value.decode("utf-8", "surrogateescape")


def _safe(value: str) -> bytes:
    return value.replace("\r", " ").replace("\n", " ").encode("utf-8", "replace")
