"""One HTTP/1.1 connection to one etcd endpoint: carries requests and answers, decides nothing."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import h11

_READ_BYTES = 65_536
#: How long to wait for the end of a connection that we close.
_CLOSE_S = 1.0


class LinkLost(Exception):
    """The connection ended, or was never there; ``sent`` if the server may have got the request."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason, self.sent = reason, sent


@dataclass(frozen=True)
class Endpoint:
    host: str
    port: int
    tls: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


class Link:
    """A connection that is kept open between requests; one request at a time."""

    def __init__(
        self, endpoint: Endpoint, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.endpoint = endpoint
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.CLIENT)
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        self._host = f"{host}:{endpoint.port}"

    @classmethod
    async def open(cls, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout_s: float) -> Link:
        """Connect.

        Raises:
            LinkLost: nobody answers there, or its certificate is not to be trusted.
        """
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(
                    endpoint.host, endpoint.port, ssl=tls if endpoint.tls else None
                )
        except TimeoutError:
            raise LinkLost(f"no connection within {timeout_s:g} s", sent=False) from None
        except ssl.SSLCertVerificationError as error:
            reason = f"its certificate is not to be trusted: {error.verify_message}"
            raise LinkLost(reason, sent=False) from None
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise LinkLost(reason, sent=False) from None
        return cls(endpoint, reader, writer)

    @property
    def is_usable(self) -> bool:
        """False if the server has closed it while it was idle."""
        return not (self._reader.at_eof() or self._writer.is_closing())

    async def post(
        self, path: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, AsyncIterator[bytes]]:
        """Send a request; the status of the answer, and its body piece by piece.

        Raises:
            LinkLost: the connection ended; so may the iterator.
        """
        try:
            self._send(path, body, headers)
            await self._writer.drain()
            while True:
                event = await self._next_event()
                if isinstance(event, h11.Response):
                    return event.status_code, self._body()
        except (OSError, h11.ProtocolError) as error:
            raise LinkLost(str(error) or type(error).__name__, sent=True) from None

    def _send(self, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        told = [("Host", self._host), ("Content-Length", str(len(body))), *headers.items()]
        request = h11.Request(method="POST", target=path, headers=told)
        for event in (request, h11.Data(data=body), h11.EndOfMessage()):
            data = self._http.send(event)
            if data:
                self._writer.write(data)

    async def _body(self) -> AsyncIterator[bytes]:
        while True:
            try:
                event = await self._next_event()
            except (OSError, h11.ProtocolError) as error:
                raise LinkLost(str(error) or type(error).__name__, sent=True) from None
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                self._make_ready()
                return

    async def _next_event(self) -> h11.Event:
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                data = await self._reader.read(_READ_BYTES)
                if not data and self._http.their_state is h11.SEND_RESPONSE:
                    raise LinkLost("it closed the connection without an answer", sent=True)
                self._http.receive_data(data)
            elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                raise LinkLost("it closed the connection", sent=True)
            else:
                assert isinstance(event, h11.Event)
                return event

    def _make_ready(self) -> None:
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        else:
            self.close()

    def close(self) -> None:
        """End it; nobody waits for the other side."""
        self._writer.close()

    async def closed(self) -> None:
        """Return when the connection is gone, or after a while."""
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()
