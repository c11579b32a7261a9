"""Many small messages at once: as ``wire.py`` sees every frame, this one sees none.

Bodies are numbers of eight digits, so that order, loss and doubles can be told.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pika import frame, spec

from tests.support.wire import Channel, Connection
from tests.support.wire_frames import TIMEOUT_S, Gone

_BODY = struct.Struct(">BHI8sB")
_ACK = struct.Struct(">BHIHHQBB")


@dataclass(frozen=True, slots=True)
class Delivery:
    number: int
    tag: int
    redelivered: bool


class Bulk:
    """A connection with one channel, for numbers in masses."""

    def __init__(self, url: str, *, prefetch: int = 0) -> None:
        self.connection = Connection.open(url)
        try:
            self.channel: Channel = self.connection.channel()
            if prefetch:
                self.channel.qos(prefetch)
        except BaseException:  # such as a broker that is killed just now
            self.close()
            raise
        self._buffer = b""
        self._early: list[Delivery] = []
        self.confirming = False
        self.published = 0
        self.confirmed = 0

    def close(self) -> None:
        self.connection.wire.close()

    # -- publishing ------------------------------------------------------------------------------
    def confirm(self) -> None:
        self.channel.confirm()
        self.confirming = True

    def send(
        self, queue: str, numbers: Iterable[int], *, exchange: str = "", **properties: Any
    ) -> None:
        """Publish, persistent unless said otherwise; don't wait for anything."""
        properties.setdefault("delivery_mode", 2)
        method = frame.Method(1, spec.Basic.Publish(exchange=exchange, routing_key=queue))
        header = frame.Header(1, 8, spec.BasicProperties(**properties))
        head = method.marshal() + header.marshal()
        parts = []
        for number in numbers:
            parts += (head, _BODY.pack(3, 1, 8, b"%08d" % number, 0xCE))
            self.published += 1
        self.connection.wire.send(b"".join(parts))

    def publish(
        self, queue: str, numbers: Iterable[int], *, step: int = 5000, **options: Any
    ) -> None:
        """Publish, and wait for the confirms of each ``step`` messages."""
        if not self.confirming:
            self.confirm()
        every = list(numbers)
        for at in range(0, len(every), step):
            self.send(queue, every[at : at + step], **options)
            self.wait_confirmed(self.published)

    def wait_confirmed(self, upto: int) -> None:
        while self.confirmed < upto:
            for kind, payload in self._frames(TIMEOUT_S):
                self._note_confirm(kind, payload)

    def poll_confirms(self, timeout_s: float) -> None:
        """Note what was confirmed, waiting a moment for it."""
        for kind, payload in self._frames(timeout_s):
            self._note_confirm(kind, payload)

    def _note_confirm(self, kind: int, payload: bytes) -> None:
        class_id, method_id = struct.unpack_from(">HH", payload)
        if kind == 1 and (class_id, method_id) == (60, 80):
            (self.confirmed,) = struct.unpack_from(">Q", payload, 4)
        else:
            assert kind == 8 or class_id == 10, (class_id, method_id)  # connection.blocked

    # -- consuming -------------------------------------------------------------------------------
    def consume(self, queue: str, *, no_ack: bool = False) -> None:
        self.channel.consume(queue, "bulk", no_ack=no_ack)

    def deliveries(self, timeout_s: float = TIMEOUT_S) -> Iterator[Delivery]:
        """What came with one read; nothing if nothing comes in time."""
        while self.channel.inbox:  # what came along with the last answer
            message = self.channel.inbox.popleft()
            yield Delivery(int(message.body), message.tag, message.method.redelivered)
        early, self._early = self._early, []
        yield from early or self._received(timeout_s)[0]

    def sync(self) -> None:
        """Return when the broker has worked through all that was sent; deliveries wait."""
        self.channel.send(spec.Exchange.Declare(exchange="amq.direct", passive=True))
        answered = False
        while not answered:
            deliveries, answered = self._received(TIMEOUT_S)
            self._early += deliveries

    def _received(self, timeout_s: float) -> tuple[list[Delivery], bool]:
        """The deliveries of one read, and whether exchange.declare was answered."""
        deliveries: list[Delivery] = []
        answered = redelivered = False
        tag = 0
        for kind, payload in self._frames(timeout_s):
            if kind == 1 and payload[:4] == b"\0\x3c\0\x3c":
                tag, redelivered = struct.unpack_from(">Q?", payload, 5 + payload[4])
            elif kind == 3:
                deliveries.append(Delivery(int(payload), tag, redelivered))
            elif payload[:4] == b"\0\x28\0\x0b":
                answered = True
        return deliveries, answered

    def take(self, count: int, *, ack: bool = True) -> list[Delivery]:
        """So many deliveries, acknowledged as they come."""
        taken: list[Delivery] = []
        while len(taken) < count:
            came = list(self.deliveries())
            assert came, f"only {len(taken)} of {count} came"
            taken += came
            if ack:
                self.ack(came[-1].tag)
        return taken

    def ack(self, tag: int, *, multiple: bool = True) -> None:
        self.connection.wire.send(_ACK.pack(1, 1, 13, 60, 80, tag, multiple, 0xCE))

    # -- frames ----------------------------------------------------------------------------------
    def _frames(self, timeout_s: float) -> Iterator[tuple[int, bytes]]:
        """Whole contents only: a delivery that is cut waits for its end."""
        wire = self.connection.wire
        self._buffer += wire.take_buffer()
        deadline = time.monotonic() + timeout_s
        while not (end := _whole(self._buffer)):
            wire.sock.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = wire.sock.recv(1 << 18)
            except TimeoutError:
                return
            except ConnectionError as error:
                raise Gone(str(error)) from None
            if not data:
                raise Gone("the peer closed the socket")
            self._buffer += data
        data, self._buffer = self._buffer[:end], self._buffer[end:]
        at = 0
        while at < end:
            kind, _, size = struct.unpack_from(">BHI", data, at)
            yield kind, data[at + 7 : at + 7 + size]
            at += size + 8


def _whole(buffer: bytes) -> int:
    """How far whole methods with their whole content reach; bodies are one frame."""
    at = end = 0
    while len(buffer) - at >= 7:
        kind, _, size = struct.unpack_from(">BHI", buffer, at)
        next_at = at + size + 8
        if next_at > len(buffer):
            break
        content = kind == 1 and buffer[at + 7 : at + 11] in (b"\0\x3c\0\x3c", b"\0\x3c\0\x47")
        at = next_at
        if not content and kind != 2:
            end = at
    return end
