"""A message's content on the wire: one header frame, then body frames.

A broker keeps the frames as they came and sends them on. They carry a channel number, so a
consumer on another channel needs them rewritten; one with a small frame-max needs them cut anew.
"""

from __future__ import annotations

from struct import Struct

from warren.amqp.frames import BODY, FRAME, FRAME_END_BYTE, HEADER, OVERHEAD, encode_frame

#: Class id, weight, body size; the property flags and list follow.
HEADER_START = Struct(">HHQ")
_CHANNEL = Struct(">H")
BASIC_CLASS = 60


def encode_header(body_size: int, properties: bytes) -> bytes:
    """The payload of a content header frame."""
    return HEADER_START.pack(BASIC_CLASS, 0, body_size) + properties


def encode_content(channel: int, header: bytes, body: bytes, frame_max: int) -> bytes:
    """Header frame and body frames for a frame-max (0: no limit)."""
    parts = [encode_frame(HEADER, channel, header)]
    step = frame_max - OVERHEAD if frame_max else max(1, len(body))
    for at in range(0, len(body), step):
        piece = body[at : at + step]
        parts += (FRAME.pack(BODY, channel, len(piece)), piece, FRAME_END_BYTE)
    return b"".join(parts)


def header_size(content: bytes) -> int:
    """How many octets the header frame takes."""
    return int(FRAME.unpack_from(content)[2]) + OVERHEAD


def header_of(content: bytes) -> bytes:
    """The payload of the header frame."""
    return content[7 : header_size(content) - 1]


def properties_of(content: bytes) -> bytes:
    """Flags and property list."""
    return content[19 : header_size(content) - 1]


def body_of(content: bytes) -> bytes:
    """The body, put together."""
    at = header_size(content)
    size = FRAME.unpack_from(content, at)[2] if at < len(content) else 0
    if at + size + OVERHEAD >= len(content):
        return content[at + 7 : at + 7 + size]
    pieces = []
    while at < len(content):
        size = FRAME.unpack_from(content, at)[2]
        pieces.append(content[at + 7 : at + 7 + size])
        at += size + OVERHEAD
    return b"".join(pieces)


def on_channel(content: bytes, channel: int) -> bytes:
    """The same frames with another channel number."""
    number = _CHANNEL.pack(channel)
    if content[1:3] == number:
        return content
    at = header_size(content)
    if at == len(content):
        return content[:1] + number + content[3:]
    size = FRAME.unpack_from(content, at)[2]
    if at + size + OVERHEAD == len(content):
        return b"".join((content[:1], number, content[3 : at + 1], number, content[at + 3 :]))
    fresh = bytearray(content)
    at = 0
    while at < len(fresh):
        fresh[at + 1 : at + 3] = number
        at += FRAME.unpack_from(fresh, at)[2] + OVERHEAD
    return bytes(fresh)
