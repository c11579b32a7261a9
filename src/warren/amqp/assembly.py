"""A publish on its way in, and who stands in for a channel that can't take it."""

from __future__ import annotations

from typing import Any

from warren.amqp import methods as m
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
    def wanted(self) -> bool:
        """False if nobody will look at the content: it is read, and thrown away."""
        return not isinstance(self.handler, Draining | NotOpen)


class Draining:
    """Stands in for a channel that we have closed: reads content, and throws it away."""

    def method(self, method: m.Method) -> None: ...

    def publish(self, *_: Any) -> None: ...

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

    def method(self, method: m.Method) -> None:
        raise ChannelError("expected 'channel.open'")

    def ack(self, tag: int, multiple: int) -> None:
        raise ChannelError("expected 'channel.open'")

    def settle(self) -> None:
        """Nothing was taken."""

    def close(self) -> None:
        """There is nothing to give back."""
