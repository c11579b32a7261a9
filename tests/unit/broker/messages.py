"""Messages for tests, as a publisher would have sent them."""

from __future__ import annotations

from typing import Any

from warren.amqp.content import encode_content, encode_header
from warren.amqp.properties import Properties, encode_properties
from warren.broker.inspection import inspect
from warren.broker.message import Address, Message

ADDRESS = Address("ex", "key")


def message(
    body: bytes = b"", *, channel: int = 1, address: Address = ADDRESS, **properties: Any
) -> Message:
    """A message from guest with these properties."""
    octets = encode_properties(Properties(**properties))
    content = encode_content(channel, encode_header(len(body), octets), body, 131072)
    return Message(address, content, inspect(octets, "guest"), len(body), channel)
