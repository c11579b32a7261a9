"""The columns of a message: one place for the source, the sink, the ledger and the docs."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

_ARROW: dict[str, pa.DataType] = {
    "STRING": pa.string(),
    "BIGINT": pa.int64(),
    "INT": pa.int32(),
    "BOOLEAN": pa.bool_(),
    "BINARY": pa.binary(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "MAP<STRING, STRING>": pa.map_(pa.string(), pa.string()),
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its type in Spark's words, and whether the sink can write it."""

    name: str
    sql: str
    doc: str
    nullable: bool = True
    #: The sink takes it: as a part of the address or as a property.
    writable: bool = False

    @property
    def arrow(self) -> pa.Field:
        return pa.field(self.name, _ARROW[self.sql], nullable=self.nullable)

    @property
    def ddl(self) -> str:
        return f"`{self.name}` {self.sql}" + ("" if self.nullable else " NOT NULL")


def _always(name: str, sql: str, doc: str, *, writable: bool = False) -> Column:
    return Column(name, sql, doc, nullable=False, writable=writable)


def _property(name: str, sql: str, doc: str) -> Column:
    return Column(name, sql, doc, writable=True)


#: In the order in which a table has them.
COLUMNS: tuple[Column, ...] = (
    _always("queue", "STRING", "the queue it was read from"),
    _always("offset", "BIGINT", "its place among all that was ever read from the queue"),
    _always("exchange", "STRING", "the exchange it was published to", writable=True),
    _always("routing_key", "STRING", "the routing key it was published with", writable=True),
    _always("redelivered", "BOOLEAN", "the broker had handed it out before"),
    _always("body", "BINARY", "the body as it came", writable=True),
    _property("content_type", "STRING", "such as `application/json`"),
    _property("content_encoding", "STRING", "such as `gzip`"),
    _property("headers", "MAP<STRING, STRING>", "headers; what is no text, in its JSON form"),
    _property("delivery_mode", "INT", "2 is persistent"),
    _property("priority", "INT", "0 to 255"),
    _property("correlation_id", "STRING", "what it is an answer to"),
    _property("reply_to", "STRING", "where answers go"),
    _property("expiration", "STRING", "milliseconds, as text"),
    _property("message_id", "STRING", "the publisher's name for it"),
    _property("timestamp", "TIMESTAMP", "when the publisher says it was sent"),
    _property("type", "STRING", "what kind of message it is"),
    _property("user_id", "STRING", "who published it, checked by the broker"),
    _property("app_id", "STRING", "which program published it"),
    _always("received_at", "TIMESTAMP", "when it was read from the queue"),
)
BY_NAME = {column.name: column for column in COLUMNS}
#: The 13 basic properties that are columns, in the order of the wire.
PROPERTIES = tuple(column for column in COLUMNS if column.writable and column.nullable)
#: What the sink can write, by name.
WRITABLE = {column.name: column for column in COLUMNS if column.writable}

#: Headers in which a quorum queue tells how often it has given a message out before. Nobody else
#: should set them: on a message that is published again they would be a lie.
COUNTED = frozenset(("x-delivery-count", "x-acquired-count"))

ARROW_SCHEMA = pa.schema([column.arrow for column in COLUMNS])
DDL = ", ".join(column.ddl for column in COLUMNS)
