"""Arrow batches to messages on the wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa

from warren.client.publish_columns import (
    NONE,
    Routes,
    Seconds,
    ValueRefused,
    encode_column,
    encode_messages,
    join_properties,
    numbered_ids,
    require_room,
    room,
)
from warren.errors import RowRefused
from warren.spark.columns import PROPERTIES, Column
from warren.spark.sent_on import cut, sent_on, with_names_cut, within
from warren.spark.sink.options import SHORTEN, SinkOptions

#: Rows that are encoded in one go: what is encoded waits in memory to be sent.
SLICE_ROWS = 2_000
_REMEDY = f"; {SHORTEN}"


class RowEncoder:
    """Makes messages of one task's rows, and counts them: a row's number is part of its id."""

    def __init__(self, options: SinkOptions, places: Mapping[str, int], id_prefix: str) -> None:
        self._options, self._places, self._prefix = options, places, id_prefix
        self._routes = Routes(mandatory=options.mandatory)
        self._properties = [each for each in PROPERTIES if each.name in places]
        self.rows = 0

    def encode(self, batch: pa.RecordBatch, frame_max: int) -> Iterator[list[bytes]]:
        """The messages of a batch, a few thousand at a time."""
        for start in range(0, batch.num_rows, SLICE_ROWS):
            part = batch.slice(start, SLICE_ROWS)
            listed = self._listed(part, frame_max)
            yield encode_messages(self._publishes(part), listed, self._bodies(part), frame_max)
            self.rows += part.num_rows

    def _bodies(self, part: pa.RecordBatch) -> list[bytes]:
        column = part.column(self._places["body"])
        if column.null_count:
            row = column.is_null().index(pa.scalar(True)).as_py()
            raise self._refused("body", row, "is null: an empty message has an empty body")
        return _octets(column)

    def _publishes(self, part: pa.RecordBatch) -> Sequence[bytes] | repeat[bytes]:
        options, places = self._options, self._places
        if "exchange" not in places and "routing_key" not in places:
            return repeat(self._route(0, options.exchange, options.routing_key))
        exchanges = self._texts(part, "exchange", options.exchange)
        keys = self._texts(part, "routing_key", options.routing_key)
        if options.shorten:
            keys = [cut(key) or "" for key in keys]
        frame, found = self._routes.frame, []
        for row, (exchange, key) in enumerate(zip(exchanges, keys, strict=True)):
            try:
                found.append(frame(exchange, key))
            except ValueError:
                found.append(self._route(row, exchange, key))
        return found

    def _route(self, row: int, exchange: str, key: str) -> bytes:
        try:
            return self._routes.frame(exchange, key)
        except ValueError as error:
            if len(exchange.encode()) > 255:
                raise self._refused("exchange", row, str(error)) from None
            raise self._refused("routing_key", row, f"{error}{_REMEDY}") from None

    def _texts(self, part: pa.RecordBatch, name: str, default: str) -> list[str]:
        place = self._places.get(name)
        if place is None:
            return [default] * part.num_rows
        column = part.column(place)
        if column.null_count:
            column = column.fill_null(default)
        texts: list[str] = column.to_pylist()
        return texts

    def _listed(self, part: pa.RecordBatch, frame_max: int) -> list[bytes]:
        rows, constants = part.num_rows, self._options.constants
        given = {each.name: self._given(part, each) for each in self._properties}
        columns = {name: self._encoded(name, values) for name, values in given.items()}
        ids = columns.get("message_id")
        if ids is None or NONE in ids:
            numbers = numbered_ids(self._prefix, self.rows, rows)
            columns["message_id"] = (
                numbers if ids is None else [a or b for a, b in zip(ids, numbers, strict=True)]
            )
        listed = join_properties(columns, constants, rows)
        if self._options.shorten and _make_room(columns, given, listed, room(frame_max)):
            listed = join_properties(columns, constants, rows)
        try:
            require_room(listed, frame_max)
        except ValueRefused as refused:  # all others are texts of at most 255 octets
            raise self._said("headers", refused) from None
        return listed

    def _given(self, part: pa.RecordBatch, column: Column) -> list[Any]:
        """A column's values, so that they can be sent on."""
        values = _values(part.column(self._places[column.name]))
        if column.name == "headers":
            values = [sent_on(each) for each in values]
            return [with_names_cut(each) for each in values] if self._options.shorten else values
        if self._options.shorten and column.sql == "STRING":
            return [cut(each) for each in values]
        return values

    def _encoded(self, name: str, values: list[Any]) -> list[bytes]:
        try:
            return encode_column(name, values)
        except ValueRefused as refused:
            raise self._said(name, refused) from None

    def _said(self, column: str, refused: ValueRefused) -> RowRefused:
        remedy = _REMEDY if refused.too_long else ""
        return self._refused(column, refused.row, refused.problem + remedy)

    def _refused(self, column: str, row: int, problem: str) -> RowRefused:
        return RowRefused(column, self.rows + row, problem)


def _make_room(
    columns: Mapping[str, list[bytes]],
    given: Mapping[str, list[Any]],
    listed: Sequence[bytes],
    most: int,
) -> bool:
    """Leave headers out where properties are more octets than that; did any have to go?"""
    long = [row for row, each in enumerate(listed) if len(each) > most]
    if not long or "headers" not in columns:
        return False
    column = columns["headers"]
    for row in long:
        octets = most - (len(listed[row]) - len(column[row]))
        column[row] = encode_column("headers", [within(given["headers"][row], octets)])[0]
    return True


def _octets(column: pa.Array) -> list[bytes]:
    kind = column.type
    if pa.types.is_string(kind):
        column = column.view(pa.binary())
    elif pa.types.is_large_string(kind):
        column = column.view(pa.large_binary())
    values: list[bytes] = column.to_pylist()
    return values


def _values(column: pa.Array) -> list[Any]:
    """Values as ``encode_column`` takes them."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        micros = column.cast(pa.timestamp("us", tz=kind.tz)).view(pa.int64()).to_pylist()
        return [None if each is None else each // 1_000_000 for each in micros]
    if pa.types.is_map(kind) and pa.types.is_timestamp(kind.item_type):
        return _with_seconds(column)
    values: list[Any] = column.to_pylist()
    return values


def _with_seconds(column: pa.Array) -> list[Any]:
    """Headers that are times, by way of numbers: Python has not all of Spark's time zones (GMT+8),
    nor all of its years."""
    names, kind = column.type.key_type, column.type.item_type
    micros = column.cast(pa.map_(names, pa.timestamp("us", tz=kind.tz)))
    return [
        None
        if headers is None
        else [(name, None if at is None else Seconds(at // 1_000_000)) for name, at in headers]
        for headers in micros.cast(pa.map_(names, pa.int64())).to_pylist()
    ]
