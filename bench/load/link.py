"""One connection with one channel: handshake, synchronous calls, a bare socket for the rest."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from urllib.parse import unquote, urlsplit

from bench.load import frames

TIMEOUT_S = 60
RECEIVE_BYTES = 1 << 20


class LoadError(Exception):
    """The broker did something that the load did not ask for."""


class Link:
    """An open connection. ``sock`` blocks, and fails after ``TIMEOUT_S`` of silence.

    The timeout is the kernel's (SO_RCVTIMEO): Python's own would cost a poll before every call.
    """

    def __init__(self, url: str, *, channel: bool = True) -> None:
        parts = urlsplit(url)
        self.sock = socket.create_connection((parts.hostname, parts.port or 5672), TIMEOUT_S)
        self.sock.settimeout(None)
        limit = struct.pack("ll", TIMEOUT_S, 0)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""
        self._open(
            unquote(parts.username or "guest"),
            unquote(parts.password or "guest"),
            unquote(parts.path[1:]) or "/",
        )
        if channel:
            self.call(frames.method(20, 10, frames.shortstr("")), (20, 11))

    def _open(self, user: str, password: str, vhost: str) -> None:
        self.sock.sendall(frames.PROTOCOL_HEADER)
        self._expect((10, 10))
        answer = f"\0{user}\0{password}".encode()
        start_ok = frames.longstr(b"") + frames.shortstr("PLAIN") + frames.longstr(answer)
        self.sock.sendall(frames.method(10, 11, start_ok + frames.shortstr("en_US"), 0))
        channel_max, frame_max, _ = struct.unpack(">HIH", self._expect((10, 30)))
        tune_ok = struct.pack(">HIH", channel_max, min(frame_max, frames.FRAME_MAX), 0)
        opened = frames.method(10, 40, frames.shortstr(vhost) + b"\0\0", 0)
        self.sock.sendall(frames.method(10, 31, tune_ok, 0) + opened)
        self._expect((10, 41))

    def __enter__(self) -> Link:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.sock.close()

    def call(self, data: bytes, answer: tuple[int, int]) -> bytes:
        """Send a synchronous method; the payload of its answer."""
        self.sock.sendall(data)
        return self._expect(answer)

    def close(self) -> None:
        """Close in the orderly way, so that the broker logs nothing odd."""
        self.call(frames.method(10, 50, struct.pack(">HBHH", 200, 0, 0, 0), 0), (10, 51))
        self.sock.close()

    def ready(self, queue: str) -> int:
        """Messages that wait in a queue; all that was sent before has been worked through."""
        payload = self.call(frames.declare_queue(queue, passive=True), (50, 11))
        count: int = struct.unpack_from(">I", payload, 1 + payload[0])[0]
        return count

    def receive_rest(self) -> bytes:
        """Bytes that came along with the last answer or message."""
        data, self._rest = self._rest, b""
        return data

    def read_message(self) -> bytes:
        """The raw bytes of the next delivery."""
        data = self.receive_rest()
        while (size := delivery_size(data)) is None or len(data) < size:
            data += received(self.sock.recv(RECEIVE_BYTES))
        self._rest = data[size:]
        return data[:size]

    def _expect(self, wanted: tuple[int, int]) -> bytes:
        data = self._rest
        while len(data) < 7 or len(data) < (end := frames.FRAME_HEAD.unpack_from(data)[2] + 8):
            data += received(self.sock.recv(RECEIVE_BYTES))
        self._rest = data[end:]
        if data[0] != frames.METHOD or struct.unpack_from(">HH", data, 7) != wanted:
            raise unexpected(data)
        return data[11 : end - 1]


def received(data: bytes) -> bytes:
    if not data:
        raise LoadError("the broker closed the connection")
    return data


def unexpected(data: bytes) -> LoadError:
    """An error that shows the frame; a close comes with the broker's words."""
    if len(data) < 11 or data[0] != frames.METHOD:
        return LoadError(f"unexpected bytes {data[:40]!r}")
    ids = struct.unpack_from(">HH", data, 7)
    if ids in ((10, 50), (20, 40)):
        return LoadError(f"closed: {data[14 : 14 + data[13]].decode(errors='replace')}")
    return LoadError(f"unexpected method {ids}")


def delivery_size(data: bytes) -> int | None:
    """Bytes of the delivery at the front (method, header, bodies); None: not all seen yet."""
    if len(data) < 11:
        return None
    if data[0] != frames.METHOD or data[7:11] != b"\0\x3c\0\x3c":
        raise unexpected(data)
    header: int = frames.FRAME_HEAD.unpack_from(data)[2] + 8
    if len(data) < header + 19:
        return None
    at: int = header + frames.FRAME_HEAD.unpack_from(data, header)[2] + 8
    left: int = struct.unpack_from(">Q", data, header + 11)[0]
    while left > 0:
        if len(data) < at + 7:
            return None
        size = frames.FRAME_HEAD.unpack_from(data, at)[2]
        left -= size
        at += size + 8
    return at
