"""Argument tables and properties as JSON has them, both ways."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from warren.amqp.properties import DOMAINS, decode_property, encode_property, split_properties
from warren.amqp.tables import Array, Table
from warren.broker.message import Message

#: RabbitMQ's types of JSON values.
_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (int, "long"),
    (float, "double"),
    (str, "longstr"),
    (dict, "table"),
    (list, "array"),
)


class NotPlain(ValueError):
    """A value that can't become a property; ``reason`` is RabbitMQ's."""

    def __init__(self, *reason: str) -> None:
        super().__init__(*reason)
        self.reason = list(reason)


def _kind(value: Any) -> str:
    return next((kind for cls, kind in _KINDS if isinstance(value, cls)), "void")


def table_from_json(values: dict[str, Any]) -> Table:
    """Numbers become 64-bit integers, as RabbitMQ makes them."""
    return Table(
        {key: _from_json(value) for key, value in values.items()},
        {key: _kind(value) for key, value in values.items()},
    )


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        return table_from_json(value)
    if isinstance(value, list):
        return Array([_from_json(item) for item in value], [_kind(item) for item in value])
    return value


def to_json(value: Any) -> Any:
    """A table's value for JSON."""
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("utf-8", "surrogateescape")
    if isinstance(value, Decimal):
        return float(value)
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def properties_from_json(values: dict[str, Any]) -> dict[str, bytes]:
    """Raw properties; unknown names are passed over."""
    parts: dict[str, bytes] = {}
    for name, value in values.items():
        domain = DOMAINS.get(name)
        if domain is None or value is None:
            continue
        if domain in ("octet", "timestamp"):
            parts[name] = encode_property(name, _integer(name, value))
        elif domain == "table":
            if not isinstance(value, dict):
                raise NotPlain("not_object", name)
            parts[name] = encode_property(name, table_from_json(value))
        elif not isinstance(value, str):
            raise NotPlain("not_string", name)
        else:
            parts[name] = encode_property(name, value)
    return parts


def _integer(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise NotPlain("not_int", name)
    most = 2**64 if DOMAINS[name] == "timestamp" else 256
    if not 0 <= value < most:
        raise NotPlain("not_int", name)
    return value


def properties_to_json(raw: bytes) -> dict[str, Any] | list[Any]:
    """A message's properties; an empty list where there are none, as RabbitMQ has it."""
    values = {
        name: to_json(decode_property(name, value)) for name, value in split_properties(raw).items()
    }
    return values or []


def head_timestamp(message: Message) -> int | None:
    """When the publisher says that the message was made."""
    value = message.property("timestamp")
    return None if value is None else int(value)
