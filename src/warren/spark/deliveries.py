"""Deliveries, as they came off the wire, into the columns of a table.

The hot place of the source. What most messages of a queue have in common (exchange, routing key,
and often all properties) is decoded once for each different run of octets, and a column in which
nothing changes is filled without looking at the rows.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from decimal import Decimal
from struct import Struct
from typing import Any

import pyarrow as pa

from warren.amqp.tables import TableError, decode_table
from warren.spark.columns import ARROW_SCHEMA, BY_NAME, PROPERTIES

_LONG, _LONGLONG = Struct(">I"), Struct(">Q")
#: Seconds; what is later than the year 9999 is no time that Python or SQL could show.
_LAST_SECOND = 253_402_300_799
_UTF8 = "utf-8"
#: Different property lists to remember; beyond it they are decoded one by one.
_REMEMBERED = 4096

Values = tuple[Any, ...]
_NOTHING: Values = (None,) * len(PROPERTIES)


class Deliveries:
    """Messages of one queue in the order they came, not yet decoded."""

    __slots__ = ("bodies", "body_bytes", "properties", "redelivered", "routes")

    def __init__(self) -> None:
        self.routes: list[bytes] = []
        self.properties: list[bytes] = []
        self.bodies: list[bytes] = []
        #: Indices of those that were handed out before.
        self.redelivered: list[int] = []
        self.body_bytes = 0

    def __len__(self) -> int:
        return len(self.bodies)

    def without(self, dropped: set[int]) -> Deliveries:
        """The same without some of them."""
        rest = Deliveries()
        kept = [index for index in range(len(self.bodies)) if index not in dropped]
        rest.routes = [self.routes[index] for index in kept]
        rest.properties = [self.properties[index] for index in kept]
        rest.bodies = [self.bodies[index] for index in kept]
        again = set(self.redelivered)
        rest.redelivered = [place for place, index in enumerate(kept) if index in again]
        return rest

    def to_batch(self, queue: str, start: int, received_us: int) -> pa.RecordBatch:
        """All of them as one batch of the table's schema, offsets from ``start``."""
        count = len(self.bodies)
        exchanges, keys = _routes(self.routes)
        arrays = [
            pa.repeat(pa.scalar(queue, pa.string()), count),
            pa.array(range(start, start + count), pa.int64()),
            exchanges,
            keys,
            _flags(self.redelivered, count),
            pa.array(self.bodies, pa.binary()),
            *_properties(self.properties),
            pa.repeat(pa.scalar(received_us, pa.timestamp("us", tz="UTC")), count),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)


def _flags(indices: Sequence[int], count: int) -> pa.Array:
    if not indices:
        return pa.repeat(pa.scalar(False), count)
    flags = [False] * count
    for index in indices:
        flags[index] = True
    return pa.array(flags, pa.bool_())


# -- exchange and routing key --------------------------------------------------------------------
def _routes(routes: Sequence[bytes]) -> tuple[pa.Array, pa.Array]:
    known = {route: decode_route(route) for route in set(routes)}
    if len(known) <= 1:
        exchange, key = next(iter(known.values()), ("", ""))
        return tuple(pa.repeat(pa.scalar(text), len(routes)) for text in (exchange, key))
    pairs = [known[route] for route in routes]
    return (
        pa.array([pair[0] for pair in pairs], pa.string()),
        pa.array([pair[1] for pair in pairs], pa.string()),
    )


def decode_route(route: bytes) -> tuple[str, str]:
    """Exchange and routing key of two short strings."""
    middle = 1 + route[0]
    return (
        route[1:middle].decode(_UTF8, "replace"),
        route[middle + 1 :].decode(_UTF8, "replace"),
    )


# -- properties ----------------------------------------------------------------------------------
_TYPES = [BY_NAME[column.name].arrow.type for column in PROPERTIES]


def _properties(lists: Sequence[bytes]) -> list[pa.Array]:
    count = len(lists)
    different = set(lists)
    if len(different) <= 1:
        values = decode_values(next(iter(different), b"\0\0"))
        return [_constant(value, kind, count) for value, kind in zip(values, _TYPES, strict=True)]
    if len(different) <= _REMEMBERED:
        known = {octets: decode_values(octets) for octets in different}
        rows = [known[octets] for octets in lists]
    else:
        rows = [decode_values(octets) for octets in lists]
    return [
        pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), _TYPES, strict=True)
    ]


def _constant(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    if value is None:
        return pa.nulls(count, kind)
    if pa.types.is_map(kind):
        return pa.array([value] * count, kind)
    return pa.repeat(pa.scalar(value, kind), count)


def decode_values(data: bytes) -> Values:
    """Flags and property list as values in the order of the columns; ``cluster_id`` is left out.

    Text that is not UTF-8 keeps what can be read of it. A list that can't be read at all gives
    no values: the body is worth more than an error.
    """
    flags = data[0] << 8 | data[1]
    if not flags & 0xFFF8:
        return _NOTHING
    try:
        return _decode_values(flags, data)
    except (IndexError, ValueError):
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


_KINDS = tuple(
    {"STRING": "text", "INT": "octet", "TIMESTAMP": "time"}.get(column.sql, "table")
    for column in PROPERTIES
)


def decode_headers(entries: bytes) -> list[tuple[str, str | None]]:
    """A field table as text by name: text as it is, anything else in its JSON form."""
    try:
        table = decode_table(entries)
    except TableError:
        return []
    return [(_utf8(name), header_text(value)) for name, value in table.items()]


def header_text(value: Any) -> str | None:
    """A header's value as text."""
    if value is None:
        return None
    if isinstance(value, str):
        return _utf8(value)
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return _utf8(value)
    if isinstance(value, bytes):
        try:
            return value.decode(_UTF8)
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {_utf8(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _utf8(text: str) -> str:
    """Text without what ``surrogateescape`` left in it."""
    return text.encode(_UTF8, "surrogateescape").decode(_UTF8, "replace")
