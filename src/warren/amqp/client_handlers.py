"""What a client session tells: the other side of ``ClientSession``."""

from __future__ import annotations

from typing import Protocol

from warren.amqp import methods as m
from warren.amqp.client_runs import Run
from warren.errors import Refusal, WarrenError


class ClientChannelHandler(Protocol):
    """What becomes of what the broker sends on a channel."""

    #: For who takes many deliveries at a time; None: one by one.
    run: Run | None

    def deliver(
        self,
        consumer_tag: bytes,
        delivery_tag: int,
        redelivered: bool,
        route: bytes,
        properties: bytes,
        body: bytes,
    ) -> None:
        """A message; ``route`` is exchange and routing key as two short strings."""
        ...

    def confirm(self, delivery_tag: int, multiple: bool, ack: bool) -> None: ...

    def method(self, method: m.Method) -> None:
        """Any answer, or basic.cancel."""
        ...

    def content(self, method: m.Method, properties: bytes, body: bytes) -> None:
        """basic.get-ok or basic.return with its message."""
        ...

    def closed(self, refusal: Refusal | None) -> None:
        """The broker has closed the channel; None: we have."""
        ...

    def lost(self, error: WarrenError | None) -> None:
        """The connection is gone, and the channel with it."""
        ...


class ClientHandler(Protocol):
    """What becomes of what concerns the whole connection."""

    def opened(self) -> None: ...

    def blocked(self, reason: str) -> None: ...

    def unblocked(self) -> None: ...

    def method(self, method: m.Method) -> None: ...

    def closed(self, error: WarrenError | None) -> None:
        """The connection is over; its channels have been told."""
        ...


class Unattended:
    """For who looks at the session's state instead of being told."""

    def opened(self) -> None: ...

    def blocked(self, reason: str) -> None: ...

    def unblocked(self) -> None: ...

    def method(self, method: m.Method) -> None: ...

    def closed(self, error: WarrenError | None) -> None: ...
