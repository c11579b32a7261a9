"""Frames, octet for octet as other codecs write and read them."""

from __future__ import annotations

import pamqp.body
import pamqp.frame
import pamqp.header
import pamqp.heartbeat
import pika.frame
from hypothesis import given
from hypothesis import strategies as st

from warren.amqp import frames

channels = st.integers(0, 65535)


def test_the_protocol_header_is_the_one_everybody_sends() -> None:
    assert pika.frame.ProtocolHeader().marshal() == frames.PROTOCOL_HEADER
    assert pamqp.header.ProtocolHeader().marshal() == frames.PROTOCOL_HEADER


def test_a_heartbeat_is_the_one_everybody_sends() -> None:
    assert pika.frame.Heartbeat().marshal() == frames.HEARTBEAT_FRAME
    assert pamqp.heartbeat.Heartbeat().marshal() == frames.HEARTBEAT_FRAME
    assert frames.encode_frame(frames.HEARTBEAT, 0, b"") == frames.HEARTBEAT_FRAME


@given(channels, st.binary(min_size=1, max_size=300))
def test_a_frame_is_written_as_others_write_it(channel: int, payload: bytes) -> None:
    written = frames.encode_frame(frames.BODY, channel, payload)

    assert written == pika.frame.Body(channel, payload).marshal()
    assert written == pamqp.frame.marshal(pamqp.body.ContentBody(payload), channel)


@given(channels, st.binary(max_size=300))
def test_a_frame_is_read_by_others(channel: int, payload: bytes) -> None:
    written = frames.encode_frame(frames.BODY, channel, payload)

    used, read = pika.frame.decode_frame(written)
    assert (used, read.channel_number, read.fragment) == (len(written), channel, payload)
    assert len(written) == len(payload) + frames.OVERHEAD
