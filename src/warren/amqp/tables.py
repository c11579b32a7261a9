"""Field tables: every type RabbitMQ accepts, with its type kept.

A decoded table is a dict of plain Python values that also remembers how each value was typed on
the wire (``Table.kinds``): error texts and equivalence rules speak of wire types. Where a table
must travel on unchanged but for one entry, ``split_table`` and ``join_table`` keep the raw bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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


class Array(list[Any]):
    """A decoded array; ``kinds`` gives the wire type's name of each value."""

    __slots__ = ("kinds",)

    def __init__(self, values: Iterable[Any] = (), kinds: list[str] | None = None) -> None:
        super().__init__(values)
        self.kinds: list[str] = kinds if kinds is not None else [kind_of(item) for item in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return Array, (list(self), self.kinds)


_LONG = Struct(">I")
_INFINITE = (float("inf"), float("-inf"))
_FIXED: dict[str, Struct] = {
    "b": Struct(">b"),
    "B": Struct(">B"),
    "s": Struct(">h"),
    "u": Struct(">H"),
    "I": Struct(">i"),
    "i": Struct(">I"),
    "l": Struct(">q"),
    "L": Struct(">q"),
    "f": Struct(">f"),
    "d": Struct(">d"),
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
def decode_table(data: bytes, at: int = 0, end: int | None = None) -> Table:
    """The table whose entries (without the length in front) fill ``data[at:end]``.

    A stack instead of recursion: tables may be nested thousands deep.
    """
    end = len(data) if end is None else end
    table = Table({}, {})
    into: Table | Array = table
    outer: list[tuple[Table | Array, int]] = []
    try:
        while True:
            while at == end:
                if not outer:
                    return table
                into, end = outer.pop()
            if isinstance(into, Table):
                start = at + 1
                at = start + data[at]
                key = text(data[start:at])
                char = chr(data[at])
                value, at = _decode_value(char, data, at + 1)
                # RabbitMQ looks a doubled key up as its first value.
                if key not in into:
                    into[key] = value
                    into.kinds[key] = KINDS[char]
            else:
                char = chr(data[at])
                value, at = _decode_value(char, data, at + 1)
                into.append(value)
                into.kinds.append(KINDS[char])
            if char == "F" or char == "A":
                outer.append((into, end))
                into, end = value, at + _LONG.unpack_from(data, at - 4)[0]
            if at > end or end > (outer[-1][1] if outer else end):
                raise TableError("a field reaches beyond its table")
    except (IndexError, StructError, KeyError) as error:
        raise TableError("not a field table") from error


def _decode_value(char: str, data: bytes, at: int) -> tuple[Any, int]:
    """One value and where it ends; of a table or an array only its empty shell, and its start."""
    fixed = _FIXED.get(char)
    if fixed is not None:
        number = fixed.unpack_from(data, at)[0]
        if number != number or number in _INFINITE:
            raise TableError("not a number that Erlang knows")
        return number, at + fixed.size
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
    if stop > len(data):
        raise TableError("a field reaches beyond its table")
    if char == "S":
        return text(data[at:stop]), stop
    if char == "x":
        return data[at:stop], stop
    return (Table({}, {}) if char == "F" else Array([], [])), at


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
    octet, pack = char.encode(), _FIXED[char].pack
    return lambda value: octet + pack(value)


def _sized(char: str, octets: bytes) -> bytes:
    return char.encode() + _LONG.pack(len(octets)) + octets


def _encode_decimal(value: Decimal) -> bytes:
    sign, _, exponent = value.as_tuple()
    if sign or not isinstance(exponent, int):
        raise TableError(f"{value} has no form on the wire")
    scale = max(0, -exponent)
    return b"D" + _DECIMAL.pack(scale, int(value.scaleb(scale)))


def _encode_items(values: Iterable[Any]) -> bytes:
    items = values if isinstance(values, Array) else Array(values)
    return b"".join(encode_value(item, kind) for item, kind in zip(items, items.kinds, strict=True))


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
    "array": lambda value: _sized("A", _encode_items(value)),
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
            char = chr(data[start])
            _, at = _decode_value(char, data, start + 1)
            if char in "FA":
                at += _LONG.unpack_from(data, at - 4)[0]
            # RabbitMQ knows one eight-octet integer and writes it as "l".
            value = data[start:at]
            entries.setdefault(key, b"l" + value[1:] if char == "L" else value)
    except (IndexError, StructError) as error:
        raise TableError("not a field table") from error
    return entries


def split_array(data: bytes) -> list[bytes]:
    """Values of an array (length not in front) as raw type-and-value bytes."""
    items: list[bytes] = []
    at, end = 0, len(data)
    try:
        while at < end:
            start = at
            char = chr(data[at])
            _, at = _decode_value(char, data, at + 1)
            if char in "FA":
                at += _LONG.unpack_from(data, at - 4)[0]
            items.append(data[start:at])
    except (IndexError, StructError) as error:
        raise TableError("not an array") from error
    return items


def join_array(items: Iterable[bytes]) -> bytes:
    """The inverse of ``split_array``, with type and length in front."""
    return _sized("A", b"".join(items))


def decode_integer(value: bytes) -> int | None:
    """A raw value, if it is a whole number."""
    char = chr(value[0])
    if KINDS.get(char) not in INTEGER_KINDS:
        return None
    return int(_FIXED[char].unpack_from(value, 1)[0])


def join_table(entries: Mapping[str, bytes]) -> bytes:
    """The inverse of ``split_table``, with the length in front."""
    body = b"".join(encode_key(key) + value for key, value in entries.items())
    return _LONG.pack(len(body)) + body
