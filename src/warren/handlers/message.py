"""What a handler gets: one message, and what is known about this attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from warren.handlers import letters

if TYPE_CHECKING:
    from warren.client import Delivery, Properties
    from warren.handlers.decoding import Decoders

_UNREAD = object()


class Message:
    """A message that is being handled.

    ``body`` is the octets as they came; ``data`` the value that content-type and content-encoding
    make of them. ``attempt`` counts from 1, also across delay queues.
    """

    __slots__ = ("_attempt", "_data", "_decoders", "_history", "delivery", "queue", "state")

    def __init__(self, delivery: Delivery, queue: str, decoders: Decoders) -> None:
        self.delivery = delivery
        self.queue = queue
        self._decoders = decoders
        self._data: Any = _UNREAD
        self._attempt = 0
        self._history: list[dict[str, Any]] | None = None
        #: For middleware: whatever it wants to keep with the message while it is handled.
        self.state: dict[str, Any] | None = None

    @property
    def attempt(self) -> int:
        if not self._attempt:
            self._read_attempts()
        return self._attempt

    @property
    def history(self) -> list[dict[str, Any]]:
        """What failed before, oldest first: attempt, error, member, at (ms since 1970)."""
        if self._history is None:
            self._read_attempts()
        assert self._history is not None
        return self._history

    def failed(self, failure: dict[str, Any]) -> None:
        """Write one more failure down; the next attempt has the next number."""
        self.history.append(failure)
        self._attempt = self.attempt + 1

    def _read_attempts(self) -> None:
        # Neither the redelivered flag nor x-delivery-count says that anybody tried: what was
        # prefetched and given back at a handover has both.
        self._attempt, self._history = letters.earlier_attempts(self.headers)

    @property
    def body(self) -> bytes:
        return self.delivery.body

    @property
    def properties(self) -> Properties:
        return self.delivery.properties

    @property
    def headers(self) -> Mapping[str, Any]:
        return self.delivery.properties.headers or {}

    @property
    def redelivered(self) -> bool:
        return self.delivery.redelivered

    @property
    def exchange(self) -> str:
        """Where it was published to, also after a wait in a delay queue."""
        return letters.origin(self.headers, "exchange", self.delivery.exchange)

    @property
    def routing_key(self) -> str:
        return letters.origin(self.headers, "routing-key", self.delivery.routing_key)

    @property
    def message_id(self) -> str | None:
        return self.delivery.properties.message_id

    @property
    def correlation_id(self) -> str | None:
        return self.delivery.properties.correlation_id

    @property
    def type(self) -> str | None:
        return self.delivery.properties.type

    @property
    def data(self) -> Any:
        """The decoded body.

        Raises:
            DecodeFailed: it is not what its properties say; uncaught, the message is
                dead-lettered at once: another attempt would read the same octets.
        """
        if self._data is _UNREAD:
            found = self.delivery.properties
            self._data = self._decoders.decode(
                self.delivery.body, found.content_type, found.content_encoding
            )
        return self._data

    def __repr__(self) -> str:
        # No body and no headers: they may hold what must not stand in a log.
        return f"<Message of {self.queue!r}, {len(self.body)} octets, attempt {self.attempt}>"
