"""A message: held once, however many queues hold it."""

from __future__ import annotations

from typing import Any

from warren.amqp.content import body_of, encode_content, encode_header, on_channel, properties_of
from warren.amqp.frames import FRAME_MAX_DEFAULT
from warren.amqp.methods import shortstr
from warren.amqp.properties import (
    PropertiesError,
    decode_property,
    join_properties,
    split_properties,
)
from warren.amqp.tables import Table

#: Octets it takes to hold a message, besides its content: the objects round it.
OVERHEAD = 260


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
    """Content frames as they came, the address, and how many queues hold it."""

    __slots__ = (
        "_parts",
        "address",
        "body_size",
        "channel",
        "content",
        "holders",
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
    def body(self) -> bytes:
        return body_of(self.content)

    def property(self, name: str) -> Any:
        """One property's value, or None."""
        value = self.parts.get(name)
        return None if value is None else decode_property(name, value)

    # -- sending ---------------------------------------------------------------------------------
    def content_for(self, channel: int, frame_max: int) -> bytes:
        """The content frames for this channel number, no frame larger than allowed."""
        if frame_max == 0 or frame_max >= FRAME_MAX_DEFAULT or len(self.content) <= frame_max:
            return on_channel(self.content, channel)
        header = encode_header(self.body_size, properties_of(self.content))
        return encode_content(channel, header, self.body, frame_max)

    # -- changing --------------------------------------------------------------------------------
    def rewritten(self, parts: dict[str, bytes], address: Address, traits: Traits) -> Message:
        """A copy with other properties and another address."""
        header = encode_header(self.body_size, join_properties(parts))
        content = encode_content(self.channel, header, self.body, FRAME_MAX_DEFAULT)
        return Message(address, content, traits, self.body_size, self.channel)


__all__ = ["PLAIN", "Address", "Message", "PropertiesError", "Traits"]
