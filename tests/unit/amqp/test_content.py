"""Content frames: cut for a frame-max, put together, moved to another channel."""

from __future__ import annotations

import struct

import pika.frame
import pika.spec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.amqp.content import (
    body_of,
    encode_content,
    encode_header,
    header_of,
    header_size,
    on_channel,
    properties_of,
)

#: Frame-max; no limit for 0. Small ones, so that short bodies need many frames.
frame_maxes = st.sampled_from([0, 9, 10, 24, 100, 4096])
channels = st.integers(0, 65535)
PERSISTENT = pika.spec.BasicProperties(delivery_mode=2, type="order")
PROPERTIES = b"".join(PERSISTENT.encode())


def by_pika(channel: int, body: bytes, frame_max: int) -> bytes:
    """The same content as pika would send it."""
    octets = pika.frame.Header(channel, len(body), PERSISTENT).marshal()
    step = frame_max - 8 if frame_max else len(body) or 1
    for at in range(0, len(body), step):
        octets += pika.frame.Body(channel, body[at : at + step]).marshal()
    return octets


def content(channel: int, body: bytes, frame_max: int = 0) -> bytes:
    return encode_content(channel, encode_header(len(body), PROPERTIES), body, frame_max)


@given(channels, st.binary(max_size=300), frame_maxes)
def test_content_is_written_as_pika_writes_it(channel: int, body: bytes, frame_max: int) -> None:
    assert content(channel, body, frame_max) == by_pika(channel, body, frame_max)


@given(channels, st.binary(max_size=300), frame_maxes)
def test_content_is_read_again_however_it_was_cut(
    channel: int, body: bytes, frame_max: int
) -> None:
    octets = by_pika(channel, body, frame_max)

    assert body_of(octets) == body
    assert properties_of(octets) == PROPERTIES
    assert header_of(octets) == struct.pack(">HHQ", 60, 0, len(body)) + PROPERTIES
    assert header_size(octets) == len(header_of(octets)) + 8


@given(channels, channels, st.binary(max_size=300), frame_maxes)
def test_content_moves_to_another_channel_and_nothing_else_changes(
    channel: int, other: int, body: bytes, frame_max: int
) -> None:
    octets = by_pika(channel, body, frame_max)

    assert on_channel(octets, other) == by_pika(other, body, frame_max)
    assert octets == by_pika(channel, body, frame_max)


def test_content_for_its_own_channel_is_not_copied() -> None:
    octets = content(7, b"body")

    assert on_channel(octets, 7) is octets


@pytest.mark.parametrize("size", [0, 1, 4087, 4088, 4089, 8176, 8177])
def test_no_frame_is_larger_than_the_frame_max(size: int) -> None:
    octets = content(1, bytes(size), 4096)

    sizes, at = [], 0
    while at < len(octets):
        used, _ = pika.frame.decode_frame(octets[at:])
        sizes.append(used)
        at += used
    assert max(sizes[1:], default=0) <= 4096
    assert len(sizes) == 1 + -(-size // 4088)
