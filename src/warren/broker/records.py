"""Definitions as they are written down: JSON, with argument tables in their wire form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warren.amqp.tables import Table, decode_table, encode_table
from warren.broker.exchanges import Binding, Exchange

if TYPE_CHECKING:
    from warren.broker.vhost import AnyQueue


def pack_arguments(arguments: dict[str, Any]) -> str:
    """An argument table as hexadecimal wire bytes: every type survives."""
    return encode_table(arguments)[4:].hex() if arguments else ""


def unpack_arguments(value: str) -> Table:
    return decode_table(bytes.fromhex(value))


def exchange_record(exchange: Exchange) -> dict[str, Any]:
    return {
        "type": exchange.type,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": pack_arguments(exchange.arguments),
    }


def queue_record(queue: AnyQueue) -> dict[str, Any]:
    return {
        "log": queue.log_id,
        "auto_delete": queue.auto_delete,
        "arguments": pack_arguments(queue.arguments),
    }


def binding_key(vhost: str, binding: Binding) -> list[Any]:
    return [
        vhost,
        binding.source,
        binding.destination_kind,
        binding.destination.name,
        binding.routing_key,
        pack_arguments(binding.arguments),
    ]
