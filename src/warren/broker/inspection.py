"""Reading the properties that mean something to the broker, and refusing the bad ones."""

from __future__ import annotations

import re

from warren.amqp.properties import FLAGS, PropertiesError, check_properties, decode_property
from warren.amqp.properties import split_properties as split
from warren.amqp.terms import erlang_string
from warren.broker.message import PLAIN, Traits
from warren.errors import InternalError, PreconditionFailed

#: The longest time RabbitMQ waits for: ten years, in milliseconds.
MAX_EXPIRY_MS = 315_360_000_000
REPLY_TO = "amq.rabbitmq.reply-to"
_NO_PROPERTIES = b"\x00\x00"

# Names for the hot path, which has no time for a dict.
_CONTENT_TYPE, _CONTENT_ENCODING = FLAGS["content_type"], FLAGS["content_encoding"]
_HEADERS, _CORRELATION_ID, _REPLY_TO = FLAGS["headers"], FLAGS["correlation_id"], FLAGS["reply_to"]
_EXPIRATION, _MESSAGE_ID, _TIMESTAMP = FLAGS["expiration"], FLAGS["message_id"], FLAGS["timestamp"]
#: What delivery_mode and priority take: by their flags, bits 12 and 11.
_OCTETS = (0, 1, 1, 2)
#: A list without any of these is its own outline.
PASSING = _CORRELATION_ID | _MESSAGE_ID | _TIMESTAMP


def outline(properties: bytes, flags: int) -> bytes:
    """A property list without what differs from message to message and means nothing to us.

    Those are correlation_id, message_id and timestamp. Of two lists with the same outline, both
    can be read or neither, and their traits are the same: flags and all other properties are in
    it, and what is left out was seen to end inside the list. Empty if the list is cut short.
    """
    try:
        at = 2
        if flags & _CONTENT_TYPE:
            at += 1 + properties[at]
        if flags & _CONTENT_ENCODING:
            at += 1 + properties[at]
        if flags & _HEADERS:
            at += 4 + int.from_bytes(properties[at : at + 4], "big")
        at += _OCTETS[flags >> 11 & 3]
        rest = at
        if flags & _CORRELATION_ID:
            rest += 1 + properties[rest]
        stop = rest
        if flags & _REPLY_TO:
            stop += 1 + properties[stop]
        if flags & _EXPIRATION:
            stop += 1 + properties[stop]
        end = stop
        if flags & _MESSAGE_ID:
            end += 1 + properties[end]
        if flags & _TIMESTAMP:
            end += 8
    except IndexError:
        return b""
    if end > len(properties):
        return b""
    return properties[:at] + properties[rest:stop] + properties[end:]


def inspect(
    properties: bytes, user: str, *, impersonator: bool = False, may_reply: bool = True
) -> Traits:
    """The traits of a property list; raises the refusal RabbitMQ would answer with."""
    if properties == _NO_PROPERTIES:
        return PLAIN
    try:
        check_properties(properties)
        parts = split(properties)
    except PropertiesError as error:
        raise InternalError(str(error)) from None
    traits = Traits()
    if "reply_to" in parts:
        traits.reply_to_us = decode_property("reply_to", parts["reply_to"]) == REPLY_TO
        if traits.reply_to_us and not may_reply:
            raise PreconditionFailed("fast reply consumer does not exist")
    if "priority" in parts:
        traits.priority = parts["priority"][0]
    if "user_id" in parts and not impersonator:
        claimed = decode_property("user_id", parts["user_id"])
        if claimed != user:
            raise PreconditionFailed(
                f"user_id property set to '{claimed}' but authenticated user was '{user}'"
            )
    if "expiration" in parts:
        traits.expiration_ms = parse_expiration(decode_property("expiration", parts["expiration"]))
    headers = parts.get("headers", b"")
    if b"\x02CC" in headers or b"\x03BCC" in headers:
        _read_copies(traits, parts["headers"])
    if "delivery_mode" in parts:
        mode = parts["delivery_mode"][0]
        if mode not in (1, 2):
            raise PreconditionFailed(f"invalid message: {{delivery_mode_unknown,{mode}}}")
        traits.persistent = mode == 2
    traits.rewrite = bool(traits.copies) or traits.strip_bcc or traits.reply_to_us
    return traits


def parse_expiration(value: str) -> int:
    """Milliseconds; RabbitMQ's texts when it is no such number."""
    match = re.match(r"[+-]?[0-9]+", value)
    if match is None:
        raise PreconditionFailed(f"invalid expiration '{value}': no_integer")
    rest = value[match.end() :]
    if rest:
        raise PreconditionFailed(
            f"invalid expiration '{value}': {{leftover_string,{erlang_string(rest)}}}"
        )
    number = int(match.group())  # a short string: 255 digits at most
    problem = check_expiry(number)
    if problem:
        raise PreconditionFailed(f"invalid expiration '{value}': {problem}")
    return number


def check_expiry(number: int) -> str | None:
    """What RabbitMQ says of a time span that it can't wait for."""
    if number < 0:
        return f"{{value_negative,{number}}}"
    if number > MAX_EXPIRY_MS:
        return f"{{value_too_large,{number}}}"
    return None


def _read_copies(traits: Traits, raw_headers: bytes) -> None:
    headers = decode_property("headers", raw_headers)
    copies: list[str] = []
    for key in ("CC", "BCC"):
        if key not in headers:
            continue
        if headers.kinds[key] != "array":
            kind = headers.kinds[key]
            raise PreconditionFailed(
                f'invalid message: {{unacceptable_type_in_header,"{key}",{kind}}}'
            )
        copies += [value for value in headers[key] if isinstance(value, str)]
    traits.copies = tuple(copies)
    traits.strip_bcc = "BCC" in headers
