"""Frames: kind, channel, size, payload, end octet."""

from __future__ import annotations

from struct import Struct

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
HEADER_BYTE = b"\x02"
FRAME_END = 0xCE
FRAME_END_BYTE = b"\xce"
#: Octets round a payload: seven in front, one behind.
OVERHEAD = 8
#: The smallest frame-max a peer may ask for, and the limit until it has been tuned.
FRAME_MIN_SIZE = 4096
#: What we offer when tuning, and how we cut bodies we put together ourselves.
FRAME_MAX_DEFAULT = 131072

FRAME = Struct(">BHI")
HEARTBEAT_FRAME = b"\x08\x00\x00\x00\x00\x00\x00\xce"


def encode_frame(kind: int, channel: int, payload: bytes) -> bytes:
    """One whole frame."""
    return FRAME.pack(kind, channel, len(payload)) + payload + FRAME_END_BYTE
