"""Deliveries, as they came off the wire, into the columns of a table.

The hot place of the source. What most messages of a queue have in common (exchange, routing key,
and often all properties) is decoded once for each different run of octets, and a column in which
nothing changes is filled without looking at the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from warren.client.blocking_reader import Deliveries
from warren.client.message_values import decode_route, decode_values
from warren.spark.columns import ARROW_SCHEMA, BY_NAME, PROPERTIES

#: Different property lists to remember; beyond it they are decoded one by one.
_REMEMBERED = 4096


def to_batch(took: Deliveries, queue: str, start: int, received_us: int) -> pa.RecordBatch:
    """All of them as one batch of the table's schema, offsets from ``start``."""
    count = len(took.bodies)
    exchanges, keys = _routes(took.routes)
    arrays = [
        pa.repeat(pa.scalar(queue, pa.string()), count),
        pa.arange(start, start + count),
        exchanges,
        keys,
        _flags(took.redelivered, count),
        pa.array(took.bodies, pa.binary()),
        *_properties(took.properties),
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
        return tuple(
            pa.repeat(pa.scalar(text, pa.string()), len(routes)) for text in (exchange, key)
        )
    pairs = [known[route] for route in routes]
    return (
        pa.array([pair[0] for pair in pairs], pa.string()),
        pa.array([pair[1] for pair in pairs], pa.string()),
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
