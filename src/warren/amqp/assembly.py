"""A publish on its way in, and who stands in for a channel that can't take it."""

from __future__ import annotations

from typing import Any

from warren.amqp import methods as m
from warren.amqp.content import BASIC_CLASS, HEADER_START, encode_content
from warren.amqp.frames import BODY, FRAME_MAX_DEFAULT, HEADER, OVERHEAD
from warren.amqp.handlers import ChannelHandler
from warren.errors import ChannelError

#: Octets it takes to hold a piece of a body, besides the piece itself.
PIECE = 48


class Assembly:
    """A publish whose content has not fully arrived."""

    __slots__ = ("arguments", "body_size", "handler", "header", "held", "ids", "left", "pieces")

    def __init__(self, handler: ChannelHandler, arguments: bytes, ids: tuple[int, int]) -> None:
        self.handler = handler
        self.arguments = arguments
        self.ids = ids
        self.header: bytes | None = None
        self.body_size = 0
        self.left = 0
        self.pieces: list[bytes] = []
        #: What it takes to hold header and pieces.
        self.held = 0

    @property
    def complete(self) -> bool:
        return self.header is not None and self.left == 0

    def take(self, kind: int, payload: bytes, most: int) -> str | None:
        """The next frame; returns what is wrong with it. A body of more than ``most`` goes."""
        if self.header is None:
            return self._take_header(kind, payload)
        if kind != BODY:
            return "expected content body, got non content body frame instead"
        self.left -= len(payload)
        # More than was announced, or more than is allowed, is read and not kept.
        if payload and self.left >= 0 and self.body_size <= most and self._wanted:
            self.pieces.append(payload)
            self.held += len(payload) + PIECE
        return None

    def _take_header(self, kind: int, payload: bytes) -> str | None:
        problem = "got non content header frame instead"
        if kind == HEADER:
            class_id, weight, size = HEADER_START.unpack_from(payload)
            if weight == 0 and class_id == BASIC_CLASS:
                self.header = payload
                self.body_size = self.left = size
                self.held = len(payload) + PIECE
                return None
            if weight == 0:
                problem = f"got one for class {class_id} instead"
        return f"expected content header for class 60, {problem}"

    @property
    def _wanted(self) -> bool:
        """False if nobody will look at the content: it is read, and thrown away."""
        return not isinstance(self.handler, Draining | NotOpen)

    def content(self, channel: int) -> tuple[bytes, int, int]:
        """Content frames, cut anew; the size of the header frame, and the property flags."""
        header = self.header or b""
        frames = encode_content(channel, header, b"".join(self.pieces), FRAME_MAX_DEFAULT)
        return frames, len(header) + OVERHEAD, int.from_bytes(header[12:14], "big")


class Draining:
    """Stands in for a channel that we have closed: reads content, and throws it away."""

    def method(self, method: m.Method) -> None: ...

    def publish(self, *_: Any) -> None: ...

    def again(self, *_: Any) -> None: ...

    def ack(self, tag: int, multiple: int) -> None: ...

    def too_large(self, size: int) -> None: ...

    def settle(self) -> None: ...

    def close(self) -> None: ...


class NotOpen:
    """Stands in for a channel that was never opened, until its content has been read."""

    def too_large(self, size: int) -> None:
        raise ChannelError("expected 'channel.open'")

    def publish(self, *_: Any) -> None:
        raise ChannelError("expected 'channel.open'")

    def again(self, *_: Any) -> None: ...

    def method(self, method: m.Method) -> None:
        raise ChannelError("expected 'channel.open'")

    def ack(self, tag: int, multiple: int) -> None:
        raise ChannelError("expected 'channel.open'")

    def settle(self) -> None:
        """Nothing was taken."""

    def close(self) -> None:
        """There is nothing to give back."""
