"""A message: held once, however many queues hold it.

A copy with other properties (a dead letter, an entry of a stream) shares the body: it has a header
frame of its own, and the body frames are those of the message it was made from, its ``origin``.
"""

from __future__ import annotations

from typing import Any

from warren.amqp.content import (
    body_of,
    encode_content,
    encode_header,
    header_of,
    header_size,
    on_channel,
    properties_of,
)
from warren.amqp.frames import FRAME_MAX_DEFAULT, HEADER, encode_frame
from warren.amqp.methods import shortstr
from warren.amqp.properties import (
    PropertiesError,
    decode_property,
    join_properties,
    split_properties,
)
from warren.amqp.tables import Table, join_table, split_table

#: Octets it takes to hold a message, besides its content: the objects round it.
OVERHEAD = 260
#: Copies share a body of so many octets or more; of a smaller one it is cheaper to make another.
SHARED_FROM = 1024
#: The channel of a message whose content is not in one piece.
_NO_CHANNEL = -1


class Address:
    """Exchange and routing key of a message, shared by all messages that have the same."""

    __slots__ = ("exchange", "routing_key", "suffix")

    def __init__(self, exchange: str, routing_key: str) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        #: What ends a basic.deliver frame: exchange, routing key, frame end.
        self.suffix = shortstr(exchange) + shortstr(routing_key) + b"\xce"


class Traits:
    """What the broker itself reads out of a property list; shared by equal property lists."""

    __slots__ = (
        "copies",
        "expiration_ms",
        "persistent",
        "priority",
        "reply_to_us",
        "rewrite",
        "strip_bcc",
    )

    def __init__(self) -> None:
        self.expiration_ms: int | None = None
        self.priority = 0
        self.persistent = False
        self.copies: tuple[str, ...] = ()  # CC and BCC routing keys
        self.strip_bcc = False
        self.reply_to_us = False
        self.rewrite = False  # the message can't go on as it came


PLAIN = Traits()


class Message:
    """Content frames as they came, the address, and how many queues hold it.

    With an ``origin``, ``content`` is the header frame alone.
    """

    __slots__ = (
        "_parts",
        "address",
        "body_size",
        "channel",
        "content",
        "holders",
        "origin",
        "shared",
        "traits",
    )

    def __init__(
        self, address: Address, content: bytes, traits: Traits, body_size: int, channel: int
    ) -> None:
        self.address = address
        self.content = content
        self.traits = traits
        self.body_size = body_size
        #: The channel number that stands in the content frames.
        self.channel = channel
        #: The message whose body this one shares; it is held as long as this one is.
        self.origin: Message | None = None
        self.holders = 0
        #: 0: one queue has it. -1: several do. Else its id in the store, where it lies once.
        self.shared = 0
        self._parts: dict[str, bytes] | None = None

    # -- reading ---------------------------------------------------------------------------------
    @property
    def parts(self) -> dict[str, bytes]:
        """The raw properties by name."""
        if self._parts is None:
            self._parts = split_properties(properties_of(self.content))
        return self._parts

    @property
    def headers(self) -> dict[str, Any]:
        return self.property("headers") or Table()

    @property
    def raw_headers(self) -> dict[str, bytes]:
        """The headers by name, their values as they lie on the wire."""
        headers = self.parts.get("headers")
        return {} if headers is None else split_table(headers[4:])

    @property
    def body(self) -> bytes:
        return body_of(self.content if self.origin is None else self.origin.content)

    @property
    def whole(self) -> bytes:
        """Header and body frames in one piece."""
        if self.origin is None:
            return self.content
        frames = self.origin.content
        return b"".join((self.content, memoryview(frames)[header_size(frames) :]))

    def property(self, name: str) -> Any:
        """One property's value, or None."""
        value = self.parts.get(name)
        return None if value is None else decode_property(name, value)

    # -- sending ---------------------------------------------------------------------------------
    def content_for(self, channel: int, frame_max: int) -> bytes:
        """The content frames for this channel number, no frame larger than allowed."""
        whole = self.whole
        if frame_max == 0 or frame_max >= FRAME_MAX_DEFAULT or len(whole) <= frame_max:
            return on_channel(whole, channel)
        header = encode_header(self.body_size, properties_of(self.content))
        return encode_content(channel, header, self.body, frame_max)

    # -- changing --------------------------------------------------------------------------------
    def rewritten(self, parts: dict[str, bytes], address: Address, traits: Traits) -> Message:
        """A copy with other properties and another address."""
        header = encode_header(self.body_size, join_properties(parts))
        if self.body_size >= SHARED_FROM:
            return self._sharing(header, address, traits)
        content = encode_content(self.channel, header, self.body, FRAME_MAX_DEFAULT)
        return Message(address, content, traits, self.body_size, self.channel)

    def with_headers(
        self,
        headers: dict[str, bytes],
        *,
        without: str = "",
        address: Address | None = None,
        traits: Traits | None = None,
    ) -> Message:
        """A copy with these headers, and (``without``) one property less."""
        parts = {name: value for name, value in self.parts.items() if name != without}
        parts["headers"] = join_table(headers)
        return self.rewritten(parts, address or self.address, traits or self.traits)

    def with_traits(self, traits: Traits) -> Message:
        """A copy of which the broker thinks otherwise."""
        if self.body_size >= SHARED_FROM:
            return self._sharing(header_of(self.content), self.address, traits)
        return Message(self.address, self.content, traits, self.body_size, self.channel)

    def _sharing(self, header: bytes, address: Address, traits: Traits) -> Message:
        origin = self.origin or self
        head = encode_frame(HEADER, origin.channel, header)
        copy = Message(address, head, traits, self.body_size, _NO_CHANNEL)
        copy.origin = origin
        return copy


__all__ = ["PLAIN", "Address", "Message", "PropertiesError", "Traits"]
