"""The few AMQP 0-9-1 frames that the load needs, encoded by hand.

It rests on neither warren's codec nor a client library: a blob made here is made once, before
the clock starts, and costs the load nothing while it runs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

METHOD, HEADER, BODY = 1, 2, 3
FRAME_END = b"\xce"
FRAME_MAX = 131072
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
CHANNEL = 1

FRAME_HEAD = struct.Struct(">BHI")
ACK = struct.Struct(">11sQBB")  # an ack is 21 bytes: head and ids, tag, multiple, frame end
ACK_PREFIX = struct.pack(">BHIHH", METHOD, CHANNEL, 13, 60, 80)
_ACK_HEAD = int.from_bytes(ACK_PREFIX, "big")


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return FRAME_HEAD.pack(kind, channel, len(payload)) + payload + FRAME_END


def method(class_id: int, method_id: int, payload: bytes = b"", channel: int = CHANNEL) -> bytes:
    return frame(METHOD, channel, struct.pack(">HH", class_id, method_id) + payload)


def shortstr(text: str) -> bytes:
    data = text.encode()
    return bytes([len(data)]) + data


def longstr(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def publish(exchange: str, routing_key: str, body: bytes, *, persistent: bool = False) -> bytes:
    """basic.publish with its content."""
    mode = 2 if persistent else 1
    parts = [
        method(60, 40, b"\0\0" + shortstr(exchange) + shortstr(routing_key) + b"\0"),
        # delivery-mode (property flag bit 12): transient is said and not only implied
        frame(HEADER, CHANNEL, struct.pack(">HHQHB", 60, 0, len(body), 0x1000, mode)),
    ]
    step = FRAME_MAX - 8
    parts += [frame(BODY, CHANNEL, body[at : at + step]) for at in range(0, len(body), step)]
    return b"".join(parts)


def deliver(consumer_tag: str, tag: int, routing_key: str, body: bytes) -> bytes:
    """basic.deliver with its content, as a broker sends it (the stand-in broker needs it)."""
    start = shortstr(consumer_tag) + struct.pack(">QB", tag, 0)
    content = publish("", routing_key, body)
    first_frame = FRAME_HEAD.unpack_from(content)[2] + 8
    return method(60, 60, start + shortstr("") + shortstr(routing_key)) + content[first_frame:]


def acks(first: int, count: int) -> bytes:
    """Acks of ``count`` tags in a row, one frame each."""
    return b"".join(ACK.pack(ACK_PREFIX, tag, 0, 0xCE) for tag in range(first, first + count))


def declare_queue(
    queue: str,
    *,
    passive: bool = False,
    durable: bool = False,
    exclusive: bool = False,
    nowait: bool = False,
) -> bytes:
    bits = passive | durable << 1 | exclusive << 2 | nowait << 4
    return method(50, 10, b"\0\0" + shortstr(queue) + bytes([bits]) + longstr(b""))


def declare_exchange(exchange: str, kind: str, *, auto_delete: bool = False) -> bytes:
    bits = auto_delete << 2
    return method(
        40, 10, b"\0\0" + shortstr(exchange) + shortstr(kind) + bytes([bits]) + longstr(b"")
    )


def bind(queue: str, exchange: str, routing_key: str, *, nowait: bool = False) -> bytes:
    names = shortstr(queue) + shortstr(exchange) + shortstr(routing_key)
    return method(50, 20, b"\0\0" + names + bytes([nowait]) + longstr(b""))


def purge(queue: str) -> bytes:
    return method(50, 30, b"\0\0" + shortstr(queue) + b"\0")


def delete_queue(queue: str) -> bytes:
    return method(50, 40, b"\0\0" + shortstr(queue) + b"\0")


def delete_exchange(exchange: str) -> bytes:
    return method(40, 20, b"\0\0" + shortstr(exchange) + b"\0")


def qos(prefetch: int) -> bytes:
    return method(60, 10, struct.pack(">IHB", 0, prefetch, 0))


def consume(queue: str, consumer_tag: str) -> bytes:
    names = shortstr(queue) + shortstr(consumer_tag)
    return method(60, 20, b"\0\0" + names + b"\0" + longstr(b""))


def cancel(consumer_tag: str) -> bytes:
    return method(60, 30, shortstr(consumer_tag) + b"\0")


def confirm_select() -> bytes:
    return method(85, 10, b"\0")


def batched(messages: Iterable[bytes], size: int) -> list[bytes]:
    """Messages joined, ``size`` to a blob."""
    every = list(messages)
    return [b"".join(every[at : at + size]) for at in range(0, len(every), size)]
