"""The hand-made frames are the same octets as the ones made with care."""

from __future__ import annotations

import pika.frame
import pika.spec
from hypothesis import given
from hypothesis import strategies as st

from warren.amqp import methods as m
from warren.amqp.frames import METHOD, encode_frame
from warren.amqp.hot import DELIVERY, deliver_prefix, encode_confirm

channels = st.integers(1, 65535)
tags = st.integers(0, 2**63 - 1)
words = st.text(max_size=60).filter(lambda value: len(value.encode()) <= 255)


@given(channels, words, tags, st.booleans(), words, words)
def test_a_delivery_in_pieces_is_a_deliver_frame(
    channel: int, consumer: str, tag: int, redelivered: bool, exchange: str, key: str
) -> None:
    suffix = m.shortstr(exchange) + m.shortstr(key) + b"\xce"
    prefix = deliver_prefix(channel, m.shortstr(consumer), suffix)
    whole = prefix + DELIVERY.pack(tag, redelivered) + suffix

    method = m.BasicDeliver(consumer, tag, redelivered, exchange, key)
    assert whole == encode_frame(METHOD, channel, method.encode())
    theirs = pika.spec.Basic.Deliver(consumer, tag, redelivered, exchange, key)
    assert whole == pika.frame.Method(channel, theirs).marshal()


@given(channels, tags, st.booleans())
def test_a_confirm_is_an_ack_frame(channel: int, tag: int, multiple: bool) -> None:
    theirs = pika.frame.Method(channel, pika.spec.Basic.Ack(tag, multiple)).marshal()

    assert encode_confirm(channel, tag, multiple=multiple, ack=True) == theirs


@given(channels, tags, st.booleans())
def test_a_refusal_to_confirm_is_a_nack_frame(channel: int, tag: int, multiple: bool) -> None:
    theirs = pika.spec.Basic.Nack(tag, multiple, requeue=True)

    octets = encode_confirm(channel, tag, multiple=multiple, ack=False)
    assert octets == pika.frame.Method(channel, theirs).marshal()
