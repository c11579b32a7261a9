"""The hot frames as a client sees them: deliveries and confirms in, publishes and acks out.

The mirror of ``hot``, and as ugly for the same reason. A delivery is three frames in a row; when
all of them lie in one read they are taken in one step. Exchange, routing key and properties stay
bytes until somebody asks.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from warren.amqp.content import encode_content, encode_header
from warren.amqp.frames import (
    FRAME,
    FRAME_END,
    FRAME_END_BYTE,
    HEADER,
    METHOD,
    OVERHEAD,
    encode_frame,
)
from warren.amqp.hot import ACK_IDS, DELIVERY
from warren.amqp.methods import shortstr

if TYPE_CHECKING:
    from warren.amqp.client import ClientSession

DELIVER_IDS = b"\x00\x3c\x00\x3c"
NACK_IDS = b"\x00\x3c\x00\x78"
#: A broker adds to the headers of a message (x-death, x-delivery-count, x-stream-offset), and gives
#: out what fills a frame already in a larger one: RabbitMQ 3.10 does.
HEADER_SPARE = 1 << 20
_PUBLISH_HEAD = b"\x00\x3c\x00\x28\x00\x00"
_CONFIRMS = (ACK_IDS, NACK_IDS)
_CONTENT = Struct(">BHIHHQ")
_TAG = Struct(">QB")
_SETTLE = Struct(">BHIHHQBB")


def read_client_frames(session: ClientSession, data: bytes) -> int:
    """Work through all whole frames in ``data``; returns how many octets were used."""
    frame, content_head, delivery = FRAME.unpack_from, _CONTENT.unpack_from, DELIVERY.unpack_from
    channels, assembling = session.channels, session.assembling
    limit = session.frame_limit
    end = len(data)
    at = 0
    while end - at >= 7:
        kind, number, size = frame(data, at)
        if size > limit and (kind != HEADER or size > limit + HEADER_SPARE):
            session.fail(f"a frame of {size} octets; {limit} is the most")
            return end
        stop = at + 7 + size
        if stop >= end:
            return int(at)
        if data[stop] != FRAME_END:
            session.fail(f"a frame that ends with {data[stop]:#04x}, not {FRAME_END:#04x}")
            return end
        if kind == 1 and (channel := channels.get(number)) is not None:
            ids = data[at + 7 : at + 11]
            if ids == DELIVER_IDS:
                run = channel.run
                if run is not None and number not in assembling:
                    behind = run.read(data, at)
                    if behind > at:
                        at = behind
                        run.take(run)
                        continue
                head = stop + 1
                if end - head >= 22:
                    kind2, number2, size2, class_id, _, body_size = content_head(data, head)
                    body = head + 8 + size2
                    last = body + OVERHEAD + body_size if body_size else body
                    if (
                        last <= end
                        and kind2 == 2
                        and number2 == number
                        and class_id == 60
                        and size2 >= 14
                        and data[body - 1] == FRAME_END
                    ):
                        if body_size:
                            kind3, number3, size3 = frame(data, body)
                            whole = (
                                size3 == body_size
                                and kind3 == 3
                                and number3 == number
                                and data[last - 1] == FRAME_END
                            )
                        else:
                            whole = True
                        # Behind the consumer tag: delivery tag, a bit, two short strings.
                        tag_end = at + 12 + data[at + 11]
                        if whole and tag_end + 11 <= stop and number not in assembling:
                            delivery_tag, redelivered = delivery(data, tag_end)
                            consumer_tag = data[at + 12 : tag_end]
                            if run is not None and body_size:
                                run.learn(data, at, tag_end, head, body)
                            at = last
                            channel.deliver(
                                consumer_tag,
                                delivery_tag,
                                redelivered & 1 == 1,
                                data[tag_end + 9 : stop],
                                data[head + 19 : body - 1],
                                data[body + 7 : last - 1] if body_size else b"",
                            )
                            continue
            elif size == 13 and ids in _CONFIRMS:
                tag, bits = _TAG.unpack_from(data, at + 11)
                at = stop + 1
                channel.confirm(tag, bits & 1 == 1, ids == ACK_IDS)
                continue
        payload = data[at + 7 : stop]
        at = stop + 1
        session.frame(kind, number, payload)
        if session.state == "closed":
            return end
        limit = session.frame_limit
    return int(at)


def publish_frame(channel: int, exchange: str, routing_key: str, *, mandatory: bool) -> bytes:
    """A whole basic.publish method frame; the same for every message that goes the same way."""
    payload = _PUBLISH_HEAD + shortstr(exchange) + shortstr(routing_key)
    return encode_frame(METHOD, channel, payload + (b"\x01" if mandatory else b"\x00"))


def encode_message(
    publish: bytes, channel: int, properties: bytes, body: bytes, frame_max: int
) -> bytes:
    """A publish with its content: method frame, header frame, body frames."""
    size = len(body)
    if size + OVERHEAD > frame_max > 0:
        return publish + encode_content(channel, encode_header(size, properties), body, frame_max)
    head = _CONTENT.pack(2, channel, 12 + len(properties), 60, 0, size)
    if not size:
        return b"".join((publish, head, properties, FRAME_END_BYTE))
    return b"".join(
        (
            publish,
            head,
            properties,
            FRAME_END_BYTE,
            FRAME.pack(3, channel, size),
            body,
            FRAME_END_BYTE,
        )
    )


def encode_ack(channel: int, tag: int, *, multiple: bool) -> bytes:
    """A whole basic.ack frame."""
    return _SETTLE.pack(1, channel, 13, 60, 80, tag, multiple, FRAME_END)


def encode_nack(channel: int, tag: int, *, multiple: bool, requeue: bool) -> bytes:
    """A whole basic.nack frame."""
    return _SETTLE.pack(1, channel, 13, 60, 120, tag, multiple | requeue << 1, FRAME_END)


def encode_reject(channel: int, tag: int, *, requeue: bool) -> bytes:
    """A whole basic.reject frame."""
    return _SETTLE.pack(1, channel, 13, 60, 90, tag, requeue, FRAME_END)
