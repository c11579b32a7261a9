"""A stand-in for a broker that does next to nothing: it shows how fast the load itself can go.

It counts bytes where a broker would parse, confirms what nobody stored, and delivers blobs that
were made before anyone asked. One connection at a time.
"""

from __future__ import annotations

import socket
import struct
import sys

from bench.load import frames
from bench.load.consuming import CONSUMER_TAG, PREFETCH

_PUBLISH, _ACK_BYTES = b"\0\x3c\0\x28", frames.ACK.size
_REPLIES = {
    (10, 11): frames.method(10, 30, struct.pack(">HIH", 2047, frames.FRAME_MAX, 60), 0),
    (10, 31): b"",
    (10, 40): frames.method(10, 41, frames.shortstr(""), 0),
    (10, 50): frames.method(10, 51, channel=0),
    (20, 10): frames.method(20, 11, frames.longstr(b"")),
    (50, 30): frames.method(50, 31, struct.pack(">I", 0)),
    (60, 10): frames.method(60, 11),
    (60, 20): frames.method(60, 21, frames.shortstr(CONSUMER_TAG)),
    (60, 30): frames.method(60, 31, frames.shortstr(CONSUMER_TAG)),
    (60, 80): b"",
    (85, 10): frames.method(85, 11),
}
_START = frames.method(
    10, 10, b"\0\x09" + frames.longstr(b"") + frames.longstr(b"PLAIN") + frames.longstr(b"en_US"), 0
)


class StandIn:
    """One connection, served until it closes."""

    def __init__(self, sock: socket.socket, body: bytes, confirms: memoryview) -> None:
        self._sock = sock
        self._body = body
        self._confirms = confirms  # acks of every tag that may be needed
        self._deliveries = memoryview(b"")  # likewise
        self._size = 1  # of a delivery
        self._ready = self._published = self._delivered = 0
        self._consuming = False

    def serve(self) -> None:
        data = self._sock.recv(8)
        self._sock.sendall(_START)
        data = b""
        while more := self._sock.recv(1 << 16):
            data += more
            while len(data) >= 11 and len(data) >= (end := _frame_end(data)):
                if data[0] == frames.METHOD and data[7:11] == _PUBLISH and not self._consuming:
                    data = self._confirm_blindly(data)
                    continue
                if data[0] == frames.METHOD:
                    self._answer(struct.unpack_from(">HH", data, 7), data[11:end])
                data = data[end:]

    def _answer(self, ids: tuple[int, int], payload: bytes) -> None:
        if ids == (50, 10):
            self._declare(payload)
        elif ids == (60, 40):  # a round trip
            self._deliver(1)
        else:
            self._sock.sendall(_REPLIES[ids])
        if ids == (50, 30):
            self._ready = 0
        elif ids == (60, 20):
            self._consuming = True
            self._deliver_blindly()
        elif ids == (60, 30):
            self._consuming = False

    def _declare(self, payload: bytes) -> None:
        queue = payload[3 : 3 + payload[2]].decode()
        if not self._deliveries:
            tags = range(1, len(self._confirms) // _ACK_BYTES + 1)
            blobs = [frames.deliver(CONSUMER_TAG, tag, queue, self._body) for tag in tags]
            self._size, self._deliveries = len(blobs[0]), memoryview(b"".join(blobs))
        answer = frames.shortstr(queue) + struct.pack(">II", self._ready, 0)
        self._sock.sendall(frames.method(50, 11, answer))

    def _deliver(self, count: int) -> None:
        at = self._delivered
        self._sock.sendall(self._deliveries[at * self._size : (at + count) * self._size])
        self._delivered += count

    def _confirm_blindly(self, data: bytes) -> bytes:
        """Ack messages as fast as they come; returns what is no message any more."""
        size = len(frames.publish("", " " * data[14], self._body))
        total, confirmed, before = len(data), 0, self._published
        buffer = bytearray(1 << 20)
        while True:
            upto = total // size
            if upto > confirmed:
                first, last = before + confirmed, before + upto
                self._sock.sendall(self._confirms[first * _ACK_BYTES : last * _ACK_BYTES])
                confirmed = upto
            got = self._sock.recv_into(buffer)
            # The load waits for its confirms before it sends anything else, so what is not a
            # message comes alone.
            if not got or (total % size == 0 and buffer[7:11] != _PUBLISH):
                break
            total += got
        self._published += confirmed
        self._ready += confirmed
        return bytes(buffer[:got])

    def _deliver_blindly(self) -> None:
        """Keep the prefetch window full until all is acked."""
        count, self._ready = self._ready, 0
        sent, ack_bytes = 0, 0
        buffer = bytearray(1 << 16)
        while ack_bytes < count * _ACK_BYTES:
            step = min(ack_bytes // _ACK_BYTES + PREFETCH, count) - sent
            if step:
                self._deliver(step)
                sent += step
            got = self._sock.recv_into(buffer, min(len(buffer), count * _ACK_BYTES - ack_bytes))
            if not got:
                return
            ack_bytes += got


def _frame_end(data: bytes) -> int:
    size: int = frames.FRAME_HEAD.unpack_from(data)[2]
    return size + 8


def main(port: str, body_bytes: str, messages: str) -> None:
    confirms = memoryview(frames.acks(1, int(messages)))
    with socket.create_server(("127.0.0.1", int(port))) as listener:
        while True:
            sock, _ = listener.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with sock:
                StandIn(sock, bytes(int(body_bytes)), confirms).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
