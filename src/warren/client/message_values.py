"""Exchange, routing key and properties of a delivery as plain values, fit for a table.

Nothing here fails on what a publisher sent: text that is not UTF-8 keeps what can be read of it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from struct import Struct
from struct import error as StructError
from typing import Any

from warren.amqp.properties import FIELDS
from warren.amqp.tables import TableError, decode_table

_LONG, _LONGLONG = Struct(">I"), Struct(">Q")
#: Seconds; what is later than the year 9999 is no time that Python or SQL could show.
_LAST_SECOND = 253_402_300_799
_UTF8 = "utf-8"
_dumps = json.JSONEncoder(ensure_ascii=False).encode

Values = tuple[Any, ...]
#: The properties that ``decode_values`` gives, in its order.
VALUES = tuple(name for name, _, _ in FIELDS if name != "cluster_id")
_NOTHING: Values = (None,) * len(VALUES)


def decode_route(route: bytes) -> tuple[str, str]:
    """Exchange and routing key of two short strings."""
    middle = 1 + route[0]
    return (
        route[1:middle].decode(_UTF8, "replace"),
        route[middle + 1 :].decode(_UTF8, "replace"),
    )


def decode_values(data: bytes) -> Values:
    """Flags and property list as values in the order of ``VALUES``.

    A timestamp is in microseconds. A list that can't be read at all gives no values: the body is
    worth more than an error.
    """
    flags = data[0] << 8 | data[1]
    if not flags & 0xFFF8:
        return _NOTHING
    try:
        return _decode_values(flags, data)
    except (IndexError, ValueError, StructError):
        return _NOTHING


def _decode_values(flags: int, data: bytes) -> Values:
    values: list[Any] = []
    at = 2
    flag = 1 << 15
    for kind in _KINDS:
        if not flags & flag:
            values.append(None)
        elif kind == "text":
            stop = at + 1 + data[at]
            values.append(data[at + 1 : stop].decode(_UTF8, "replace"))
            at = stop
        elif kind == "octet":
            values.append(data[at])
            at += 1
        elif kind == "time":
            (seconds,) = _LONGLONG.unpack_from(data, at)
            values.append(seconds * 1_000_000 if seconds <= _LAST_SECOND else None)
            at += 8
        else:
            stop = at + 4 + _LONG.unpack_from(data, at)[0]
            values.append(decode_headers(data[at + 4 : stop]))
            at = stop
        flag >>= 1
    return tuple(values)


_WORDS = {"shortstr": "text", "octet": "octet", "timestamp": "time", "table": "table"}
_KINDS = tuple(_WORDS[domain] for name, _, domain in FIELDS if name in VALUES)


def decode_headers(entries: bytes) -> list[tuple[str, str | None]]:
    """A field table as text by name: text as it is, anything else in its JSON form."""
    try:
        table = decode_table(entries)
    except TableError:
        return []
    found: dict[str, str | None] = {}
    for name, value in table.items():
        # Names that differ in what is not UTF-8 only have become one: as with doubled names, the
        # first counts. Spark fails on a map that has a key twice.
        found.setdefault(_utf8(name), header_text(value))
    return list(found.items())


def header_text(value: Any) -> str | None:
    """A header's value as text."""
    if value is None:
        return None
    plain = _plain(value)
    return plain if isinstance(plain, str) else _json(plain)


def _plain(value: Any) -> Any:
    """A value, itself and not what is in it, as JSON knows it."""
    if isinstance(value, str):
        return _utf8(value)
    if isinstance(value, bytes):
        try:
            return value.decode(_UTF8)
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return float(value)
    return value


def _json(value: Any) -> str:
    """With a stack instead of recursion, as ``json`` has it: a header may be nested thousands deep.

    One of 128 KiB has room for 26,000 arrays in each other.
    """
    parts: list[str] = []
    whole: Iterator[tuple[str, Any]] = iter([("", value)])
    inside = [(whole, "")]
    while inside:
        items, end = inside[-1]
        for head, item in items:
            parts.append(head)
            if isinstance(item, dict):
                parts.append("{")
                inside.append((_members(item), "}"))
                break
            if isinstance(item, list | tuple):
                parts.append("[")
                inside.append((_separated(item), "]"))
                break
            parts.append(_dumps(_plain(item)))
        else:
            parts.append(end)
            inside.pop()
    return "".join(parts)


def _members(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values of an object, each with what stands before it."""
    comma = ""
    for name, item in {_utf8(name): item for name, item in table.items()}.items():
        yield f"{comma}{_dumps(name)}: ", item
        comma = ", "


def _separated(array: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    comma = ""
    for item in array:
        yield comma, item
        comma = ", "


def _utf8(text: str) -> str:
    """Text without what ``surrogateescape`` left in it."""
    return text.encode(_UTF8, "surrogateescape").decode(_UTF8, "replace")
