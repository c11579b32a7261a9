"""What a session asks of the broker: the other side of ``ServerSession``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from warren.amqp import methods as m
from warren.amqp.tables import Table

#: Takes a message's content and the size of its body; False if this can't go on.
PublishAgain = Callable[[bytes, int], bool]


class ChannelHandler(Protocol):
    """What a channel does with what it is sent."""

    def method(self, method: m.Method) -> None: ...

    def publish(
        self, arguments: bytes, content: bytes, header_size: int, body_size: int, flags: int
    ) -> None: ...

    def again(
        self, arguments: bytes, properties: bytes, header_size: int, flags: int
    ) -> PublishAgain | None:
        """How more messages go that are like the last but for their bodies.

        None if each of them must be looked at.
        """
        ...

    def ack(self, tag: int, multiple: int) -> None: ...

    def too_large(self, size: int) -> None:
        """A message over the limit was read and thrown away: refuse it."""
        ...

    def settle(self) -> None:
        """The client is about to close the channel: see to what it sent before."""
        ...

    def close(self) -> None:
        """The channel is gone: give back what it held."""
        ...


class ConnectionHandler(Protocol):
    """What a connection does apart from its channels."""

    server_properties: Table
    mechanisms: str

    def authenticate(self, mechanism: str, response: bytes) -> bytes | None:
        """Log in. Returns a challenge if the mechanism asks back; raises AccessRefused."""
        ...

    def open(self, virtual_host: str) -> None: ...

    def opened(self) -> None: ...

    def update_secret(self, secret: bytes) -> None: ...

    def channel(self, number: int) -> ChannelHandler: ...

    def published(self) -> None:
        """The client has begun to publish: from now on it can be blocked."""
        ...

    def half_received(self, size: int) -> None:
        """So many octets more (or less) of unfinished messages are held."""
        ...

    def close(self) -> None:
        """The connection is over; its channels have been closed before."""
        ...
