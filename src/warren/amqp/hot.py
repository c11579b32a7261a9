"""The hot frames, read and written by hand: publish, deliver, get-ok, ack, confirm.

Everything else goes through ``methods``. This file trades looks for speed on purpose: a broker
spends most of its time in it. What it relies on:

- A publish is three frames in a row (method, header, body). When all of them lie in one read, they
  are taken in one step and their bytes are cut out once; anything else takes the slow way, frame
  by frame, through ``ServerSession.frame``.
- The arguments of a publish are handed on unparsed: the broker looks them up as one key.
- Who publishes a lot publishes alike: two messages in a row that differ in their bodies alone are
  the beginning of a run. From the third on, the octets in front of the body's size and those behind
  it are compared in one step each, and the channel says once how such messages go (``again``).
- ``Refusal`` is caught outside the loop: one bad publish costs its channel, and reading goes on
  behind it.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from warren.amqp.frames import FRAME, FRAME_END, FRAME_MAX_DEFAULT, OVERHEAD
from warren.errors import Refusal

if TYPE_CHECKING:
    from warren.amqp.handlers import ChannelHandler, PublishAgain
    from warren.amqp.session import ServerSession

PUBLISH_IDS = b"\x00\x3c\x00\x28"
ACK_IDS = b"\x00\x3c\x00\x50"
_PUBLISH = (60, 40)
_ACK = (60, 80)

#: Frame head of a content header, then class, weight, body size, property flags.
_CONTENT = Struct(">BHIHHQH")
_ACK_ARGUMENTS = Struct(">QB")
#: Delivery tag and the redelivered bit.
DELIVERY = Struct(">QB")
_CONFIRM = Struct(">BHIHHQBB")
_DELIVER_IDS = b"\x00\x3c\x00\x3c"
_SMALLEST_CONTENT = 30  # header frame of 22 octets and an empty body frame


class Run(NamedTuple):
    """Publishes in a row that differ in their bodies alone."""

    #: All octets in front of the body's size: the method frame, and the header frame so far.
    start: bytes
    #: All octets between that size and the size of the body frame.
    middle: bytes
    #: Reads both sizes.
    sizes: Struct
    #: Where in ``start`` the content begins.
    content: int
    number: int
    channel: ChannelHandler
    publish: PublishAgain


def _begin_run(
    channel: ChannelHandler, number: int, frames: bytes, content: int, middle: bytes, flags: int
) -> Run | None:
    """``frames`` is all in front of the body's size, ``middle`` all behind it up to the body."""
    # 11: the frame's head, class and method; 1: its end. 19: all of a header frame up to the flags.
    publish = channel.again(frames[11 : content - 1], middle[:-1], len(middle) + 19, flags)
    if publish is None:
        return None
    middle += FRAME.pack(3, number, 0)[:3]
    return Run(frames, middle, Struct(f">Q{len(middle)}xI"), content, number, channel, publish)


def read_frames(session: ServerSession, data: bytes) -> int:
    """Work through all whole frames in ``data``; returns how many octets were used."""
    frame, content_head, ack_arguments = FRAME.unpack_from, _CONTENT.unpack_from, _ACK_ARGUMENTS
    ready = session.ready
    limit = session.frame_limit
    wary = session.wary
    # A larger body is cut anew, or refused: the slow way does both.
    most = min(limit, FRAME_MAX_DEFAULT - OVERHEAD, session.max_message_bytes)
    end = len(data)
    at = 0
    number = 0
    ids = _PUBLISH
    run = session.run if not wary else None
    start = run.start if run is not None else b""
    last_arguments = last_middle = b""
    while True:
        try:
            while end - at >= 7:
                if start and data.startswith(start, at):
                    _, middle, sizes, content, number, channel, publish = run  # type: ignore[misc]
                    head, body = at + content, at + len(start)
                    if data.startswith(middle, body + 8) and end - body > sizes.size:
                        body_size, size3 = sizes.unpack_from(data, body)
                        last = body + sizes.size + size3
                        if (
                            size3 == body_size
                            and last < end
                            and 0 < body_size <= most
                            and data[last] == FRAME_END
                            and ready.get(number) is channel
                        ):
                            at = last + 1
                            ids = _PUBLISH
                            if not publish(data[head:at], body_size):
                                session.run, start = None, b""
                            continue
                kind, number, size = frame(data, at)
                if size > limit:
                    session.frame_too_large(kind, number, size)
                    return end
                stop = at + 7 + size
                if stop >= end:
                    return int(at)
                if data[stop] != FRAME_END:
                    session.bad_frame_end(kind, number, data[at + 7 : stop], data[stop])
                    return end
                if kind == 1 and (channel := ready.get(number)) is not None:
                    method = data[at + 7 : at + 11]
                    if method == PUBLISH_IDS and not wary:
                        head = stop + 1
                        if end - head > _SMALLEST_CONTENT:
                            kind2, number2, size2, class_id, weight, body_size, flags = (
                                content_head(data, head)
                            )
                            body = head + 8 + size2
                            if (
                                body + 8 + body_size <= end
                                and 0 < body_size <= most
                                and size2 <= most
                            ):
                                kind3, number3, size3 = frame(data, body)
                                last = body + 7 + size3
                                if (
                                    size3 == body_size
                                    and kind2 == 2
                                    and kind3 == 3
                                    and number2 == number
                                    and number3 == number
                                    and class_id == 60
                                    and weight == 0
                                    and size2 >= 14
                                    and data[body - 1] == FRAME_END
                                    and data[last] == FRAME_END
                                ):
                                    begin, at = at, last + 1
                                    arguments = data[begin + 11 : stop]
                                    middle = data[head + 19 : body]
                                    ids = _PUBLISH
                                    channel.publish(
                                        arguments, data[head:at], size2 + 8, body_size, flags
                                    )
                                    if arguments == last_arguments and middle == last_middle:
                                        run = session.run = _begin_run(
                                            channel,
                                            number,
                                            data[begin : head + 11],
                                            head - begin,
                                            middle,
                                            flags,
                                        )
                                        start = run.start if run is not None else b""
                                    last_arguments, last_middle = arguments, middle
                                    continue
                    elif method == ACK_IDS and size == 13:
                        tag, bits = ack_arguments.unpack_from(data, at + 11)
                        at = stop + 1
                        ids = _ACK
                        channel.ack(tag, bits & 1)
                        continue
                payload = data[at + 7 : stop]
                at = stop + 1
                session.frame(kind, number, payload)
                if session.finished:
                    return end
                if session.held:
                    return int(at)
                limit = session.frame_limit
            return at
        except Refusal as refusal:
            session.refuse(number, refusal, ids)


def deliver_prefix(channel: int, consumer_tag: bytes, suffix: bytes) -> bytes:
    """All of a basic.deliver frame in front of the delivery tag.

    ``consumer_tag`` is a short string; ``suffix`` is exchange and routing key as short strings
    and the frame end.
    """
    size = 4 + len(consumer_tag) + DELIVERY.size + len(suffix) - 1
    return FRAME.pack(1, channel, size) + _DELIVER_IDS + consumer_tag


def encode_confirm(channel: int, tag: int, *, multiple: bool, ack: bool) -> bytes:
    """A whole basic.ack or basic.nack frame from the broker."""
    if ack:
        return _CONFIRM.pack(1, channel, 13, 60, 80, tag, multiple, FRAME_END)
    # A nack has a requeue bit as well; RabbitMQ sets it, though it means nothing here.
    return _CONFIRM.pack(1, channel, 13, 60, 120, tag, multiple | 2, FRAME_END)
