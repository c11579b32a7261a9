"""From columns of values to messages on the wire, many at a time.

A column is a list with one encoded value a row, ``b""`` where a row has none. What goes over the
wire is put together a row at a time with as little Python as possible: it is the price of every
message that is published in bulk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from math import isfinite
from struct import Struct
from struct import error as StructError
from typing import Any

from warren.amqp.client_hot import encode_message, publish_frame
from warren.amqp.frames import FRAME, FRAME_END_BYTE, OVERHEAD
from warren.amqp.properties import DOMAINS, FIELDS
from warren.amqp.tables import Table, Timestamp, encode_table

#: Messages are encoded for this channel: the first of a connection.
CHANNEL = 1
NONE = b""
_CONTENT = Struct(">BHIHHQ")
_FLAGS = Struct(">H")
_SECONDS = Struct(">Q")
_LENGTHS = [bytes((size,)) for size in range(256)]
_BEFORE_PROPERTIES = 12  # class, weight and size of the body
_ROUTE_AT = 13  # frame head, class and method, a reserved short


class ValueRefused(ValueError):
    """A value that has no form on the wire; ``row`` counts within the column."""

    def __init__(self, row: int, problem: str, *, too_long: bool = False) -> None:
        super().__init__(row, problem)
        self.row, self.problem = row, problem
        #: A shorter one would have.
        self.too_long = too_long


class TooLong(ValueError):
    """A text, a name or all properties together."""


class Seconds(int):
    """A header that is a time, since 1970."""


# -- columns -------------------------------------------------------------------------------------
def encode_column(name: str, values: Sequence[Any]) -> list[bytes]:
    """The column of one property; texts may come as str or as UTF-8."""
    encode = _ENCODERS[DOMAINS[name]]
    known: dict[Any, bytes] = {}
    column = []
    for row, value in enumerate(values):
        if value is None:
            column.append(NONE)
            continue
        try:
            column.append(encode(value) if encode is _table else _known(known, encode, value))
        except (ValueError, OverflowError, TypeError, StructError) as error:
            too_long = isinstance(error, TooLong)
            raise ValueRefused(row, str(error), too_long=too_long) from None
    return column


def _known(known: dict[Any, bytes], encode: Callable[[Any], bytes], value: Any) -> bytes:
    """Columns such as ``type`` and ``app_id`` have few different values."""
    found = known.get(value)
    if found is None:
        found = encode(value)
        if len(known) < 1000:
            known[value] = found
    return found


def _short_text(value: str | bytes) -> bytes:
    data = value if isinstance(value, bytes) else value.encode()
    if len(data) > 255:
        raise TooLong(f"{len(data)} octets; 255 is the most")
    return _LENGTHS[len(data)] + data


def _octet(value: int) -> bytes:
    if not 0 <= value <= 255:
        raise ValueError(f"{value} is not between 0 and 255")
    return _LENGTHS[value]


def _timestamp(value: int) -> bytes:
    if value < 0:
        raise ValueError("a time before 1970")
    return _SECONDS.pack(value)


def _table(value: Iterable[tuple[str, Any]]) -> bytes:
    pairs = {}
    for key, each in value:
        if len(key.encode()) > 255:
            raise TooLong(f"a key of {len(key.encode())} octets; 255 is the most")
        if isinstance(each, float) and not isfinite(each):
            # RabbitMQ ends the connection over it.
            raise ValueError(f"'{key}' is {each}, and a header holds finite numbers only")
        if isinstance(each, Seconds) and each < 0:
            raise ValueError(f"'{key}' is a time before 1970")
        pairs[key] = Timestamp(each) if isinstance(each, Seconds) else each
    return encode_table(Table(pairs))


_ENCODERS: dict[str, Callable[[Any], bytes]] = {
    "shortstr": _short_text,
    "octet": _octet,
    "timestamp": _timestamp,
    "table": _table,
}


def numbered_ids(prefix: str, first: int, count: int) -> list[bytes]:
    """A column of message ids: the prefix and the number of the row."""
    start = prefix.encode()
    ids = []
    for row in range(first, first + count):
        text = b"%b%d" % (start, row)
        ids.append(_LENGTHS[len(text)] + text)
    return ids


# -- messages ------------------------------------------------------------------------------------
def join_properties(
    columns: Mapping[str, Sequence[bytes]], constants: Mapping[str, bytes], count: int
) -> list[bytes]:
    """Flags and list of every row. A constant stands where the column has nothing."""
    flags = 0
    sparse: list[tuple[int, Sequence[bytes]]] = []
    parts: list[Iterable[bytes]] = []
    for name, flag, _ in FIELDS:
        column, constant = columns.get(name), constants.get(name)
        if column is None:
            if constant is not None:
                flags |= flag
                parts.append(repeat(constant, count))
            continue
        if NONE in column and constant is not None:
            column = [value or constant for value in column]
        if NONE in column:
            sparse.append((flag, column))
        else:
            flags |= flag
        parts.append(column)
    heads = _sparse_flags(flags, sparse, count) if sparse else repeat(_FLAGS.pack(flags), count)
    return list(map(b"".join, zip(heads, *parts, strict=True)))


def _sparse_flags(
    flags: int, sparse: Sequence[tuple[int, Sequence[bytes]]], count: int
) -> list[bytes]:
    every = [flags] * count
    for flag, column in sparse:
        every = [
            known | flag if value else known for known, value in zip(every, column, strict=True)
        ]
    return list(map(_FLAGS.pack, every))


class Routes:
    """basic.publish frames, each made once."""

    def __init__(self, *, mandatory: bool) -> None:
        self._mandatory = mandatory
        self._known: dict[tuple[str, str], bytes] = {}

    def frame(self, exchange: str, routing_key: str) -> bytes:
        """Raises TooLong for such a name."""
        key = (exchange, routing_key)
        found = self._known.get(key)
        if found is None:
            for name in key:
                _short_text(name)
            found = publish_frame(CHANNEL, exchange, routing_key, mandatory=self._mandatory)
            if len(self._known) >= 10_000:
                self._known.clear()
            self._known[key] = found
        return found


def room(frame_max: int) -> int:
    """Octets that flags and property list may have: unlike a body, they must fit into a frame."""
    return (frame_max or 1 << 31) - OVERHEAD - _BEFORE_PROPERTIES


def require_room(properties: Sequence[bytes], frame_max: int) -> None:
    """Raises ValueRefused for the first that does not fit."""
    most = room(frame_max)
    if max(map(len, properties), default=0) <= most:
        return
    row, size = next((row, len(each)) for row, each in enumerate(properties) if len(each) > most)
    problem = f"with it the properties are {size} octets; the broker takes {most}"
    raise ValueRefused(row, problem, too_long=True)


def encode_messages(
    publishes: Iterable[bytes],
    properties: Sequence[bytes],
    bodies: Sequence[bytes],
    frame_max: int,
) -> list[bytes]:
    """Whole messages: method, header and body frames."""
    most = (frame_max or 1 << 31) - OVERHEAD
    heads: dict[tuple[int, int], tuple[bytes, bytes]] = {}
    join, messages = b"".join, []
    for publish, listed, body in zip(publishes, properties, bodies, strict=False):
        size = len(body)
        if not 0 < size <= most:
            messages.append(encode_message(publish, CHANNEL, listed, body, frame_max))
            continue
        key = (size, len(listed))
        head = heads.get(key)
        if head is None:
            head = (
                _CONTENT.pack(2, CHANNEL, 12 + len(listed), 60, 0, size),
                FRAME_END_BYTE + FRAME.pack(3, CHANNEL, size),
            )
            if len(heads) < 10_000:
                heads[key] = head
        messages.append(join((publish, head[0], listed, head[1], body, FRAME_END_BYTE)))
    return messages


def route_of(message: bytes) -> tuple[str, str]:
    """Exchange and routing key of an encoded message."""
    at = _ROUTE_AT
    exchange = message[at + 1 : at + 1 + message[at]]
    at += 1 + len(exchange)
    routing_key = message[at + 1 : at + 1 + message[at]]
    return exchange.decode(errors="replace"), routing_key.decode(errors="replace")
