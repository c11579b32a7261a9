"""What a pipeline's file says: frozen values, each with the line it stands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warren.spark.options import CONNECTION

#: What is below a pipeline's folder besides what it writes for others.
OWN = ("ledger", "checkpoint", "keys")
#: How a table's files are written; Spark brings all of them.
FILE_FORMATS = ("parquet", "orc", "json", "csv")
_BOTH = ("none", "uncompressed", "snappy", "lzo", "brotli", "lz4", "zstd")
#: How Spark can pack what is in them. Of text, Hadoop can be given more ways.
COMPRESSIONS = {"parquet": (*_BOTH, "gzip", "lz4_raw"), "orc": (*_BOTH, "zlib")}
#: How a body can be read.
BODY_FORMATS = ("json", "csv", "text", "avro", "msgpack", "protobuf")
#: Times as text, whole: on its own, Spark writes no more than their milliseconds.
TIMES: Mapping[str, str] = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True)
class Take:
    """Which messages: of each property that is named, one of the patterns must fit."""

    type: tuple[str, ...] = ()
    routing_key: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    app_id: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Deduplicate:
    """A message whose key came within ``watermark_s`` before is left out."""

    key: tuple[str, ...]
    watermark_s: float
    line: int = 0


@dataclass(frozen=True, slots=True)
class Files:
    """Where and how a table's rows are written."""

    path: str
    format: str = "parquet"
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """One table: of messages (it has a schema), or of other tables' rows (it has only SQL)."""

    name: str
    files: Files
    schema: str | None = None
    take: Take = Take()
    #: None: as each message's content-type says.
    body: str | None = None
    sql: str | None = None
    #: Columns of the message beside those of its body.
    columns: tuple[str, ...] = ()
    deduplicate: Deduplicate | None = None
    csv: Mapping[str, str] = field(default_factory=dict)
    #: Avro's schema, as JSON.
    avro: str | None = None
    #: Protobuf's descriptors, and the message's name.
    protobuf: tuple[bytes, str] | None = field(default=None, repr=False)
    #: Where its keys stand in the file.
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def line(self) -> int:
        return self.lines.get("", 0)


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Where a message goes that can't be read: a table, an exchange, or both."""

    #: The table: for every such message, or for those that the exchange does not get.
    files: Files
    keeps_all: bool = True
    exchange: str | None = None
    routing_key: str | None = None
    #: Where its keys stand in the file.
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, str]:
        """What the sink is told."""
        return {
            "exchange": self.exchange or "",
            "routingKey": self.routing_key or "",
            "writeName": "quarantine",
            "onTooLong": "shorten",
        }


@dataclass(frozen=True, slots=True)
class Publish:
    """A query's rows as messages."""

    name: str
    sql: str
    exchange: str
    routing_key: str = ""
    type: str | None = None
    on_unroutable: str = "fail"
    on_too_long: str = "fail"
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, str]:
        """What the sink is told."""
        return {
            "exchange": self.exchange,
            "routingKey": self.routing_key,
            # Two entries may publish to the same place, and their messages need different ids.
            "writeName": f"publish.{self.name}",
            **({"type": self.type} if self.type is not None else {}),
            "onUnroutable": self.on_unroutable,
            "onTooLong": self.on_too_long,
            "contentType": "application/json",
        }


@dataclass(frozen=True, slots=True)
class Pipeline:
    """All of it. The broker's address and the source's options may hold passwords."""

    name: str
    file: str
    broker: str = field(repr=False)
    queues: tuple[str, ...]
    #: Where all goes that has no other place.
    folder: str
    ledger: str
    checkpoint: str
    #: Where the keys are kept by which doubles are known.
    keys: str
    tables: tuple[Table, ...]
    quarantine: Quarantine
    publish: tuple[Publish, ...] = ()
    statistics: Files | None = None
    ignore: tuple[Take, ...] = ()
    every_s: float = 0.0
    source: Mapping[str, str] = field(default_factory=dict, repr=False)
    master: str = "local[2]"
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def connection(self) -> dict[str, Any]:
        """What the source and the sink are told of the broker."""
        where = {option.name.lower() for option in CONNECTION}
        said = {name: text for name, text in self.source.items() if name.lower() in where}
        return {"url": self.broker, **said}
