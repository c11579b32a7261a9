"""What the sink would send."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from warren.amqp.properties import Properties, decode_properties
from warren.client.publish_columns import route_of
from warren.spark.sink.options import SinkOptions
from warren.spark.sink.rows import RowEncoder

#: Class, weight and size of the body stand before the properties of a content header.
_BEFORE = 12


def sent(rows: dict[str, pa.Array], **options: Any) -> list[Properties]:
    """The properties of the messages that rows become."""
    bodies = pa.array([b"body"] * len(next(iter(rows.values()))))
    messages = encoded(pa.record_batch({"body": bodies, **rows}), **options)
    return [decode_properties(properties_of(message)) for message in messages]


def encoded(batch: pa.RecordBatch, frame_max: int = 131_072, **options: str) -> list[bytes]:
    given = SinkOptions.parse({"uri": "amqp://localhost", "exchange": "shop", **options})
    places = {name: place for place, name in enumerate(batch.schema.names)}
    (messages,) = RowEncoder(given, places, "id-").encode(batch, frame_max)
    return messages


def header_of(message: bytes) -> bytes:
    """The whole frame of the content header."""
    start = _size(message, 0)
    return message[start : start + _size(message, start)]


def properties_of(message: bytes) -> bytes:
    return header_of(message)[7 + _BEFORE : -1]


def routing_key_of(message: bytes) -> str:
    return route_of(message)[1]


def _size(message: bytes, at: int) -> int:
    return 8 + int.from_bytes(message[at + 3 : at + 7], "big")
