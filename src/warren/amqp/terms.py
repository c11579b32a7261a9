"""Field-table values as RabbitMQ compares, names and prints them.

Values come decoded. ``Table`` and ``Array`` remember the wire types of what is in them; of a
plain dict or list, the types are taken that the values would be sent with.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from warren.amqp.tables import Array, Table, kind_of

_ESCAPES = {
    0x08: "\\b", 0x09: "\\t", 0x0A: "\\n", 0x0B: "\\v", 0x0C: "\\f", 0x0D: "\\r", 0x1B: "\\e",
    0x22: '\\"', 0x5C: "\\\\",
}  # fmt: skip
_DEEPEST = 100
_PRINTABLE = frozenset(_ESCAPES) | frozenset(range(0x20, 0x7F)) | frozenset(range(0xA0, 0x100))


def field_type(table: dict[str, Any], name: str) -> str:
    """RabbitMQ's name for the type of a field, as its error texts show it."""
    kinds = table.kinds if isinstance(table, Table) else {}
    return kinds.get(name) or kind_of(table[name])


def _typed_items(table: dict[str, Any]) -> list[tuple[str, str, Any]]:
    kinds = table.kinds if isinstance(table, Table) else {}
    return [(name, kinds.get(name) or kind_of(item), item) for name, item in table.items()]


def _typed_values(array: list[Any]) -> list[tuple[str, Any]]:
    kinds = array.kinds if isinstance(array, Array) else [kind_of(item) for item in array]
    return list(zip(kinds, array, strict=True))


def comparable(value: Any) -> Any:
    """A hashable stand-in; two are equal when RabbitMQ's ``==`` says the values are.

    1 equals 1.0 and a timestamp of 1, text equals the same bytes, true does not equal 1,
    1.50 does not equal 1.5. Inside tables and arrays types and order count too.
    """
    kind = type(value)
    if kind is str or kind is int or kind is float or value is None:
        return value
    if kind is bool:
        return ("bool", value)
    if kind is bytes:
        return value.decode("utf-8", "surrogateescape")
    if kind is Decimal:
        return ("decimal", *scale_and_digits(value))
    if isinstance(value, dict | list):
        return _flattened(value)
    return int(value) if isinstance(value, int) else value


_END = object()


def _flattened(value: dict[str, Any] | list[Any]) -> tuple[Any, ...]:
    """Everything in a table or array, one after the other: no nesting is too deep for it.

    An empty table and an empty array are the same term in Erlang, and the same tuple here.
    """
    tokens: list[Any] = []
    open_items = [iter(_labelled(value))]
    while open_items:
        label, item = next(open_items[-1], (_END, None))
        if label is _END:
            open_items.pop()
            tokens.append(")")
        elif isinstance(item, dict | list):
            tokens += (label, "(")
            open_items.append(iter(_labelled(item)))
        else:
            tokens += (label, comparable(item))
    return tuple(tokens[:-1])


def _labelled(value: dict[str, Any] | list[Any]) -> list[tuple[Any, Any]]:
    if isinstance(value, dict):
        return [((name, kind), item) for name, kind, item in _typed_items(value)]
    return list(_typed_values(value))


def table_identity(table: dict[str, Any]) -> tuple[tuple[Any, ...], ...]:
    """What tells one arguments table from another: names in any order, types, values."""
    if not table:
        return ()
    return tuple(sorted((name, kind, comparable(item)) for name, kind, item in _typed_items(table)))


def scale_and_digits(value: Decimal) -> tuple[int, int]:
    """A decimal as it is on the wire: 1.50 is (2, 150)."""
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    return (-exponent, number) if isinstance(exponent, int) else (0, 0)


def erlang_string(value: str) -> str:
    """Text as Erlang prints a list of characters."""
    octets = value.encode("utf-8", "surrogateescape")
    if not _PRINTABLE.issuperset(octets):
        return f"[{','.join(map(str, octets))}]"
    return f'"{_escaped(octets)}"'


def erlang_text(value: Any, depth: int = 0) -> str:
    """``value`` as Erlang's ``~p`` prints it, which RabbitMQ's error texts quote."""
    if depth > _DEEPEST:
        return "..."  # no reply text is long enough to show it
    if isinstance(value, str):
        return _binary_text(value.encode("utf-8", "surrogateescape"))
    if isinstance(value, bytes):
        return _binary_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        rows = [
            f"{{{erlang_text(k)},{kind},{erlang_text(v)}}}" for k, kind, v in _typed_items(value)
        ]
        return f"[{','.join(rows)}]"
    if isinstance(value, list):
        values = _typed_values(value)
        return f"[{','.join(f'{{{kind},{erlang_text(v, depth + 1)}}}' for kind, v in values)}]"
    if isinstance(value, Decimal):
        return "{{{},{}}}".format(*scale_and_digits(value))
    if isinstance(value, float):
        return _float_text(value)
    return "undefined" if value is None else str(value)


def _binary_text(octets: bytes) -> str:
    if not octets:
        return "<<>>"
    if not _PRINTABLE.issuperset(octets):
        return f"<<{','.join(map(str, octets))}>>"
    return f'<<"{_escaped(octets)}">>'


def _escaped(octets: bytes) -> str:
    # Erlang judges octet by octet as Latin-1 and sends the same octets on: UTF-8 text whose
    # every octet is printable comes through as it was.
    escaped = "".join(_ESCAPES.get(octet) or chr(octet) for octet in octets)
    return escaped.encode("latin-1").decode("utf-8", "surrogateescape")


def _float_text(value: float) -> str:
    mantissa, mark, exponent = repr(value).partition("e")
    if not mark:
        return mantissa
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(exponent)}"


_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def erlang_integer(text: str) -> int | None:
    """What ``list_to_integer`` makes of it: a sign and digits, no spaces, no underscores."""
    return int(text) if _INTEGER.fullmatch(text) else None
