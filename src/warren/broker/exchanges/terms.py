"""Field-table values as RabbitMQ compares, names and prints them.

Values come decoded: bool, int, float, Decimal, str, bytes, None, dict, list, and an int
subclass for timestamps. The width of an integer is not known any more; where RabbitMQ would
show it, the narrowest of ``signedint`` and ``long`` that holds the value is taken.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

_ESCAPES = {
    0x08: "\\b", 0x09: "\\t", 0x0A: "\\n", 0x0B: "\\v", 0x0C: "\\f", 0x0D: "\\r", 0x1B: "\\e",
    0x22: '\\"', 0x5C: "\\\\",
}  # fmt: skip
_PRINTABLE = frozenset(_ESCAPES) | frozenset(range(0x20, 0x7F)) | frozenset(range(0xA0, 0x100))
_PLAIN_NAMES: dict[type, str] = {
    str: "longstr", bool: "bool", float: "double", bytes: "binary", Decimal: "decimal",
    dict: "table", list: "array", type(None): "void",
}  # fmt: skip


def field_type(value: Any) -> str:
    """RabbitMQ's name for the type of ``value``, as its error texts show it."""
    name = _PLAIN_NAMES.get(type(value))
    if name is not None:
        return name
    if type(value) is int:
        return "signedint" if -(2**31) <= value < 2**31 else "long"
    return "timestamp" if isinstance(value, int) else type(value).__name__


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
    # An empty table and an empty array are the same term in Erlang, hence the same tuple here.
    if kind is dict:
        return tuple((name, *typed(inner)) for name, inner in value.items())
    if kind is list:
        return tuple(typed(inner) for inner in value)
    return int(value) if isinstance(value, int) else value


def typed(value: Any) -> tuple[str, Any]:
    """Type and value: equal only when both are."""
    return field_type(value), comparable(value)


def table_identity(table: dict[str, Any]) -> tuple[tuple[Any, ...], ...]:
    """What tells one arguments table from another: names in any order, types, values."""
    return tuple([(name, *typed(table[name])) for name in sorted(table)]) if table else ()


def scale_and_digits(value: Decimal) -> tuple[int, int]:
    """A decimal as it is on the wire: 1.50 is (2, 150)."""
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    return (-exponent, number) if isinstance(exponent, int) else (0, 0)


def erlang_text(value: Any) -> str:
    """``value`` as Erlang's ``~p`` prints it, which RabbitMQ's error texts quote."""
    if isinstance(value, str):
        return _binary_text(value.encode("utf-8", "surrogateescape"))
    if isinstance(value, bytes):
        return _binary_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        rows = (f"{{{erlang_text(k)},{field_type(v)},{erlang_text(v)}}}" for k, v in value.items())
        return f"[{','.join(rows)}]"
    if isinstance(value, list):
        return f"[{','.join(f'{{{field_type(item)},{erlang_text(item)}}}' for item in value)}]"
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
    # Erlang judges octet by octet as Latin-1 and sends the same octets on: UTF-8 text whose
    # every octet is printable comes through as it was.
    escaped = "".join(_ESCAPES.get(octet) or chr(octet) for octet in octets)
    return f'<<"{escaped.encode("latin-1").decode("utf-8", "surrogateescape")}">>'


def _float_text(value: float) -> str:
    mantissa, mark, exponent = repr(value).partition("e")
    if not mark:
        return mantissa
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(exponent)}"


_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def erlang_integer(text: str) -> int | None:
    """What ``list_to_integer`` makes of it: a sign and digits, no spaces, no underscores."""
    return int(text) if _INTEGER.fullmatch(text) else None
