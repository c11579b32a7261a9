"""Field tables: every type RabbitMQ accepts, with its type kept.

A decoded table is a dict of plain Python values that also remembers how each value was typed on
the wire (``Table.kinds``): error texts and equivalence rules speak of wire types. Where a table
must travel on unchanged but for one entry, ``split_table`` and ``join_table`` keep the raw bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from struct import Struct
from struct import error as StructError
from typing import Any

#: What RabbitMQ calls each type octet.
KINDS = {
    "t": "bool",
    "b": "byte",
    "B": "unsignedbyte",
    "s": "short",
    "u": "unsignedshort",
    "I": "signedint",
    "i": "unsignedint",
    "l": "long",
    "L": "long",
    "f": "float",
    "d": "double",
    "D": "decimal",
    "S": "longstr",
    "A": "array",
    "T": "timestamp",
    "F": "table",
    "V": "void",
    "x": "binary",
}
INTEGER_KINDS = frozenset(
    ("byte", "short", "signedint", "long", "unsignedbyte", "unsignedshort", "unsignedint")
)
#: Tables inside tables, deeper than any program nests them: a guard for the stack.
MAX_DEPTH = 64


class TableError(ValueError):
    """Bytes that are not a field table."""


class Timestamp(int):
    """Seconds since 1970, typed ``T`` on the wire."""


class Table(dict[str, Any]):
    """A decoded table; ``kinds`` gives the wire type's name of each key."""

    __slots__ = ("kinds",)

    def __init__(
        self, values: Mapping[str, Any] | None = None, kinds: dict[str, str] | None = None
    ) -> None:
        super().__init__(values or {})
        self.kinds: dict[str, str] = (
            kinds if kinds is not None else {key: kind_of(value) for key, value in self.items()}
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (dict(self), self.kinds)


_LONG = Struct(">I")
_FIXED: dict[int, Struct] = {
    ord("b"): Struct(">b"),
    ord("B"): Struct(">B"),
    ord("s"): Struct(">h"),
    ord("u"): Struct(">H"),
    ord("I"): Struct(">i"),
    ord("i"): Struct(">I"),
    ord("l"): Struct(">q"),
    ord("L"): Struct(">q"),
    ord("f"): Struct(">f"),
    ord("d"): Struct(">d"),
}
_TIMESTAMP = Struct(">Q")
_DECIMAL = Struct(">BI")


def text(raw: bytes) -> str:
    """Wire bytes as str; what is not UTF-8 survives the way there and back."""
    return raw.decode("utf-8", "surrogateescape")


def raw(value: str) -> bytes:
    """The inverse of ``text``."""
    return value.encode("utf-8", "surrogateescape")


# -- decoding ------------------------------------------------------------------------------------
def decode_table(data: bytes, at: int = 0, end: int | None = None, depth: int = 0) -> Table:
    """The table whose entries (without the length in front) fill ``data[at:end]``."""
    end = len(data) if end is None else end
    values: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    try:
        while at < end:
            size = data[at]
            at += 1
            key = text(data[at : at + size])
            at += size
            kind = data[at]
            value, at = _decode_value(kind, data, at + 1, end, depth)
            # RabbitMQ looks a doubled key up as its first value.
            if key not in values:
                values[key] = value
                kinds[key] = KINDS[chr(kind)]
    except (IndexError, StructError, KeyError) as error:
        raise TableError("not a field table") from error
    if at != end:
        raise TableError("a field reaches beyond its table")
    return Table(values, kinds)


def _decode_array(data: bytes, at: int, end: int, depth: int) -> list[Any]:
    values = []
    while at < end:
        value, at = _decode_value(data[at], data, at + 1, end, depth)
        values.append(value)
    if at != end:
        raise TableError("a value reaches beyond its array")
    return values


def _decode_value(kind: int, data: bytes, at: int, end: int, depth: int) -> tuple[Any, int]:
    fixed = _FIXED.get(kind)
    if fixed is not None:
        return fixed.unpack_from(data, at)[0], at + fixed.size
    char = chr(kind)
    if char == "t":
        return data[at] != 0, at + 1
    if char == "V":
        return None, at
    if char == "T":
        return Timestamp(_TIMESTAMP.unpack_from(data, at)[0]), at + 8
    if char == "D":
        scale, digits = _DECIMAL.unpack_from(data, at)
        return Decimal(digits).scaleb(-scale), at + 5
    if char not in "SxFA":
        raise TableError(f"unknown field type {char!r}")
    size = _LONG.unpack_from(data, at)[0]
    at += 4
    stop = at + size
    if stop > end:
        raise TableError("a field reaches beyond its table")
    if char == "S":
        return text(data[at:stop]), stop
    if char == "x":
        return data[at:stop], stop
    if depth >= MAX_DEPTH:
        raise TableError(f"more than {MAX_DEPTH} tables inside each other")
    if char == "F":
        return decode_table(data, at, stop, depth + 1), stop
    return _decode_array(data, at, stop, depth + 1), stop


# -- encoding ------------------------------------------------------------------------------------
def encode_table(values: Mapping[str, Any]) -> bytes:
    """The table with its length in front."""
    kinds = getattr(values, "kinds", {})
    body = b"".join(
        encode_key(key) + encode_value(value, kinds.get(key)) for key, value in values.items()
    )
    return _LONG.pack(len(body)) + body


def encode_key(key: str) -> bytes:
    octets = raw(key)
    if len(octets) > 255:
        raise TableError(f"a key of {len(octets)} octets; 255 is the most")
    return bytes((len(octets),)) + octets


def kind_of(value: Any) -> str:
    """The wire type a plain Python value gets when nothing else is said."""
    if value is None:
        return "void"
    for kind, types in _NATURAL:
        if isinstance(value, types):
            if kind == "long" and -(2**31) <= value < 2**31:
                return "signedint"
            return kind
    raise TableError(f"a {type(value).__name__} can't be put into a field table")


_NATURAL: tuple[tuple[str, Any], ...] = (
    ("bool", bool),
    ("timestamp", Timestamp),
    ("long", int),
    ("double", float),
    ("decimal", Decimal),
    ("longstr", str),
    ("binary", (bytes, bytearray, memoryview)),
    ("table", Mapping),
    ("array", (list, tuple)),
)


def encode_value(value: Any, kind: str | None = None) -> bytes:
    """Type octet and value."""
    return _ENCODERS[kind or kind_of(value)](value)


def _fixed(char: str) -> Callable[[Any], bytes]:
    octet, pack = char.encode(), _FIXED[ord(char)].pack
    return lambda value: octet + pack(value)


def _sized(char: str, octets: bytes) -> bytes:
    return char.encode() + _LONG.pack(len(octets)) + octets


def _encode_decimal(value: Decimal) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if sign or not isinstance(exponent, int):
        raise TableError(f"{value} has no form on the wire")
    scale = max(0, -exponent)
    return b"D" + _DECIMAL.pack(scale, int(value.scaleb(scale)))


_ENCODERS: dict[str, Callable[[Any], bytes]] = {
    "bool": lambda value: b"t\x01" if value else b"t\x00",
    "byte": _fixed("b"),
    "unsignedbyte": _fixed("B"),
    "short": _fixed("s"),
    "unsignedshort": _fixed("u"),
    "signedint": _fixed("I"),
    "unsignedint": _fixed("i"),
    "long": _fixed("l"),
    "float": _fixed("f"),
    "double": _fixed("d"),
    "decimal": _encode_decimal,
    "longstr": lambda value: _sized("S", raw(value) if isinstance(value, str) else value),
    "array": lambda value: _sized("A", b"".join(encode_value(item) for item in value)),
    "timestamp": lambda value: b"T" + _TIMESTAMP.pack(value),
    "table": lambda value: b"F" + encode_table(value),
    "void": lambda value: b"V",
    "binary": lambda value: _sized("x", bytes(value)),
}


# -- editing without decoding --------------------------------------------------------------------
def split_table(data: bytes) -> dict[str, bytes]:
    """Entries (length not in front) as raw type-and-value bytes, in order."""
    entries: dict[str, bytes] = {}
    at, end = 0, len(data)
    try:
        while at < end:
            size = data[at]
            key = text(data[at + 1 : at + 1 + size])
            start = at + 1 + size
            _, at = _decode_value(data[start], data, start + 1, end, 0)
            entries.setdefault(key, data[start:at])
    except (IndexError, StructError) as error:
        raise TableError("not a field table") from error
    return entries


def join_table(entries: Mapping[str, bytes]) -> bytes:
    """The inverse of ``split_table``, with the length in front."""
    body = b"".join(encode_key(key) + value for key, value in entries.items())
    return _LONG.pack(len(body)) + body
