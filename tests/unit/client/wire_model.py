"""A socket whose peer lets us in, and then sends what it is told; time passes as it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from warren.amqp import methods as m
from warren.amqp.frames import HEARTBEAT_FRAME, METHOD, encode_frame
from warren.amqp.tables import Table
from warren.client import blocking
from warren.client.blocking import BlockingConnection
from warren.client.endpoint import Endpoint


class Wire:
    """Stands for the socket and for the clock."""

    def __init__(self, heartbeat_s: int, says: Callable[[], bytes | None]) -> None:
        self.now = 1000.0
        self.sent = b""
        self._says = says
        self._timeout_s = 0.0
        self._welcome: Iterator[m.Method] = iter(
            [
                m.ConnectionStart(0, 9, Table(), b"PLAIN", b"en_US"),
                m.ConnectionTune(100, 131072, heartbeat_s),
                m.ConnectionOpenOk(),
            ]
        )

    def settimeout(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    def setsockopt(self, *option: int) -> None:
        """It gathers nothing."""

    def sendall(self, data: bytes) -> None:
        self.sent += data

    def recv(self, most: int) -> bytes:
        method = next(self._welcome, None)
        if method is not None:
            return encode_frame(METHOD, 0, method.encode())
        said = self._says()
        self.now += 0.1 if said else self._timeout_s
        if said is None:
            raise TimeoutError
        return said

    def close(self) -> None:
        """Nobody is there."""

    @property
    def heartbeats(self) -> int:
        return self.sent.count(HEARTBEAT_FRAME)


def connected(
    monkeypatch: pytest.MonkeyPatch, says: Callable[[], bytes | None], *, heartbeat_s: int = 1
) -> tuple[BlockingConnection, Wire]:
    """A connection over such a wire: ``says`` gives octets, None for nothing, b"" for the end."""
    wire = Wire(heartbeat_s, says)
    monkeypatch.setattr(BlockingConnection, "_dial", lambda *_: wire)
    monkeypatch.setattr(blocking, "unread", lambda _: 0)
    monkeypatch.setattr(blocking, "time", SimpleNamespace(monotonic=lambda: wire.now))
    uri = f"amqp://guest:guest@model/?heartbeat={heartbeat_s}"
    return BlockingConnection(Endpoint.from_uri(uri)), wire
