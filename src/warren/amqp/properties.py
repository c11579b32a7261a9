"""The 14 basic properties inside a content header.

A broker mostly passes them on unread. ``check_properties`` proves that they can be read,
``decode_properties`` reads them, ``split_properties`` and ``join_properties`` change one and keep
the bytes of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError
from typing import Any

from warren.amqp.tables import Table, TableError, decode_table, encode_table, raw, text

#: Name, flag, wire type; in the order they stand in the header.
FIELDS: tuple[tuple[str, int, str], ...] = (
    ("content_type", 1 << 15, "shortstr"),
    ("content_encoding", 1 << 14, "shortstr"),
    ("headers", 1 << 13, "table"),
    ("delivery_mode", 1 << 12, "octet"),
    ("priority", 1 << 11, "octet"),
    ("correlation_id", 1 << 10, "shortstr"),
    ("reply_to", 1 << 9, "shortstr"),
    ("expiration", 1 << 8, "shortstr"),
    ("message_id", 1 << 7, "shortstr"),
    ("timestamp", 1 << 6, "timestamp"),
    ("type", 1 << 5, "shortstr"),
    ("user_id", 1 << 4, "shortstr"),
    ("app_id", 1 << 3, "shortstr"),
    ("cluster_id", 1 << 2, "shortstr"),
)
FLAGS = {name: flag for name, flag, _ in FIELDS}
DOMAINS = {name: domain for name, _, domain in FIELDS}
#: Bit 1 means nothing; bit 0 would announce more flags, which nobody sends or reads.
_READABLE = sum(FLAGS.values()) | 2
_SIZES = {"octet": 1, "timestamp": 8}

_SHORT, _LONG, _LONGLONG = Struct(">H"), Struct(">I"), Struct(">Q")


class PropertiesError(ValueError):
    """A property list that can't be read."""


@dataclass(frozen=True, slots=True)
class Properties:
    """Basic properties as Python values; None where one is not set."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: Mapping[str, Any] | None = None
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: int | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None
    cluster_id: str | None = None


def split_properties(data: bytes) -> dict[str, bytes]:
    """Flags and list, as they stand in a header, cut into raw values by name."""
    parts: dict[str, bytes] = {}
    try:
        flags = _SHORT.unpack_from(data)[0]
        at = 2
        if flags & ~_READABLE:
            raise PropertiesError(f"unknown property flags {flags:#06x}")
        for name, flag, domain in FIELDS:
            if flags & flag:
                if domain == "shortstr":
                    stop = at + 1 + data[at]
                elif domain == "table":
                    stop = at + 4 + _LONG.unpack_from(data, at)[0]
                else:
                    stop = at + _SIZES[domain]
                if stop > len(data):
                    raise PropertiesError(f"{name} reaches beyond the header")
                parts[name] = data[at:stop]
                at = stop
    except (StructError, IndexError) as error:
        raise PropertiesError("a property list cut short") from error
    if at != len(data):
        raise PropertiesError(f"{len(data) - at} octets behind the last property")
    return parts


def join_properties(parts: Mapping[str, bytes]) -> bytes:
    """The inverse of ``split_properties``."""
    flags = sum(FLAGS[name] for name in parts)
    return _SHORT.pack(flags) + b"".join(parts[name] for name, _, _ in FIELDS if name in parts)


def check_properties(data: bytes) -> None:
    """Raise PropertiesError unless every property can be read."""
    headers = split_properties(data).get("headers")
    if headers is not None:
        try:
            decode_table(headers, 4)
        except TableError as error:
            raise PropertiesError(str(error)) from error


def decode_property(name: str, value: bytes) -> Any:
    """One raw value of ``split_properties`` as a Python value."""
    domain = DOMAINS[name]
    if domain == "shortstr":
        return text(value[1:])
    if domain == "octet":
        return value[0]
    if domain == "timestamp":
        return _LONGLONG.unpack(value)[0]
    try:
        return decode_table(value, 4)
    except TableError as error:
        raise PropertiesError(str(error)) from error


def encode_property(name: str, value: Any) -> bytes:
    """The inverse of ``decode_property``."""
    domain = DOMAINS[name]
    if domain == "shortstr":
        octets = raw(value)
        if len(octets) > 255:
            raise PropertiesError(f"{name} of {len(octets)} octets; 255 is the most")
        return bytes((len(octets),)) + octets
    if domain == "octet":
        return bytes((value,))
    if domain == "timestamp":
        return _LONGLONG.pack(value)
    return encode_table(value if isinstance(value, Table) else Table(value))


def decode_properties(data: bytes) -> Properties:
    """All properties as values."""
    return Properties(
        **{name: decode_property(name, value) for name, value in split_properties(data).items()}
    )


def encode_properties(properties: Properties) -> bytes:
    """Flags and list, as they stand in a header."""
    return join_properties(
        {
            name: encode_property(name, value)
            for name, _, _ in FIELDS
            if (value := getattr(properties, name)) is not None
        }
    )
