"""Under ``wire``: a socket that frames come out of, and values that pika's codec can't say."""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

from pika import amqp_object, data, frame

TIMEOUT_S = 30.0  # far beyond what a busy machine needs: a test that passes never waits for it


class Gone(Exception):
    """The peer closed the socket."""


@dataclass(frozen=True)
class Field:
    """A field-table value of a type pika never writes, by its octet: ``Field("s", 7)`` is int16."""

    kind: str
    value: Any

    def encoded(self) -> bytes:
        if self.kind == "x":
            return b"x" + struct.pack(">I", len(self.value)) + self.value
        return self.kind.encode() + struct.pack(_FIELD_FORMATS[self.kind], self.value)


_FIELD_FORMATS = {
    "t": ">?", "b": ">b", "B": ">B", "s": ">h", "u": ">H", "I": ">i", "i": ">I", "l": ">q",
    "L": ">q", "f": ">f", "d": ">d", "T": ">Q",
}  # fmt: skip
_encode_value = data.encode_value


def _encode_any_value(pieces: list[bytes], value: Any) -> int:
    if not isinstance(value, Field):
        return _encode_value(pieces, value)
    pieces.append(value.encoded())
    return len(pieces[-1])


data.encode_value = _encode_any_value  # pika looks it up at each call, nested values included


class Wire:
    """A socket that reads and writes AMQP frames and knows nothing else."""

    def __init__(self, host: str, port: int) -> None:
        self.sock = socket.create_connection((host, port), timeout=TIMEOUT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def send_method(self, channel: int, method: amqp_object.Method) -> None:
        self.send(frame.Method(channel, method).marshal())

    def read(self, timeout_s: float = TIMEOUT_S) -> Any:
        """The next frame; TimeoutError if none comes, Gone if the peer has closed."""
        deadline = time.monotonic() + timeout_s
        while True:
            consumed, value = frame.decode_frame(self._buffer)
            if consumed:
                self._buffer = self._buffer[consumed:]
                return value
            self._receive(deadline, timeout_s)

    def read_raw(self, timeout_s: float = TIMEOUT_S) -> tuple[int, int, bytes]:
        """As ``read``, but the frame comes undecoded: its type, channel and payload."""
        deadline = time.monotonic() + timeout_s
        while True:
            if len(self._buffer) >= 7:
                kind, channel, size = struct.unpack_from(">BHI", self._buffer)
                if len(self._buffer) >= size + 8:
                    payload = self._buffer[7 : size + 7]
                    assert self._buffer[size + 7] == 0xCE, "frame without its end marker"
                    self._buffer = self._buffer[size + 8 :]
                    return kind, channel, payload
            self._receive(deadline, timeout_s)

    def take_buffer(self) -> bytes:
        """What was received and not read yet."""
        data, self._buffer = self._buffer, b""
        return data

    def _receive(self, deadline: float, timeout_s: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no frame within {timeout_s} s")
        self.sock.settimeout(left)
        try:
            data = self.sock.recv(262144)
        except TimeoutError:
            raise TimeoutError(f"no frame within {timeout_s} s") from None
        except ConnectionError as error:
            raise Gone(str(error)) from None
        if not data:
            raise Gone("the peer closed the socket")
        self._buffer += data

    def closed_within(self, timeout_s: float = TIMEOUT_S) -> bool:
        """Read on until the peer closes; False if it does not in time."""
        try:
            while True:
                self.read(timeout_s)
        except Gone:
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        self.sock.close()
