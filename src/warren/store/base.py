"""What a store takes and gives back. It knows bytes and positions, not queues or messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

#: Positions a log (a queue) can have: an entry's id is log << 40 | position.
POSITION_BITS = 40
LAST_POSITION = (1 << POSITION_BITS) - 1

#: octets of the body, expiry (ms since 1970, 0 for none), times given back, 1 if the entry is
#: gone when the store is opened anew, id of the shared message (0: the content is the entry's own);
#: exchange, routing key and content frames (None where they are shared).
Row = tuple[int, int, int, int, int, str | None, str | None, bytes | None]
#: What an entry that waits to be written takes besides its content.
ROW_OVERHEAD = 400


class Address(Protocol):
    """Where a message was published."""

    @property
    def exchange(self) -> str: ...
    @property
    def routing_key(self) -> str: ...


class Plain(Protocol):
    """An entry with a content of its own, of which nothing more is to be said."""

    @property
    def body_size(self) -> int: ...
    @property
    def address(self) -> Address: ...
    @property
    def content(self) -> bytes: ...


#: Most entries are plain ones, and most of those never get as far as a row.
Put = Row | Plain


def as_row(put: Put) -> Row:
    if isinstance(put, tuple):
        return put
    address = put.address
    return (put.body_size, 0, 0, 0, 0, address.exchange, address.routing_key, put.content)


def entry_id(log: int, position: int) -> int:
    return log << POSITION_BITS | position


@dataclass(slots=True)
class Batch:
    """Changes that become durable together."""

    number: int
    puts: dict[int, Put] = field(default_factory=dict)
    deletes: list[int] = field(default_factory=list)
    #: Stretches of ids, both ends included: purged and deleted queues.
    cuts: list[tuple[int, int]] = field(default_factory=list)
    #: Messages that several entries share: id to (exchange, routing key, content).
    shared: dict[int, tuple[str, str, bytes]] = field(default_factory=dict)
    #: By how much the number of entries that share a message changes.
    references: dict[int, int] = field(default_factory=dict)
    #: How often entries that are written already have been given back by now.
    returns: dict[int, int] = field(default_factory=dict)
    #: Up to which position entries may have been seen by somebody, a log.
    marks: dict[int, int] = field(default_factory=dict)
    #: True if the marks can't wait until there is something else to write.
    marks_matter: bool = False
    #: (kind, key) to value; None deletes.
    definitions: dict[tuple[str, str], str | None] = field(default_factory=dict)
    bytes_waiting: int = 0
    #: True if its entries are to be read back soon: memory is short.
    paged: bool = False

    @property
    def empty(self) -> bool:
        """True if there is nothing to write."""
        return not (
            self.puts
            or self.deletes
            or self.cuts
            or self.shared
            or self.references
            or self.returns
            or self.marks_matter
            or self.definitions
        )


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What a log holds, without reading it."""

    count: int
    first: int
    last: int
    mark: int
    #: Octets of all bodies.
    size: int = 0
    #: True if some entry has an end to its life.
    expires: bool = False


class Store(Protocol):
    """Contract of a store. Only ``commit`` comes back later, on a thread of the store's own."""

    #: Where it is, for people.
    name: str
    #: Entries of batches up to this one can be read; of a batch that is safe, a while later.
    readable: int

    def definitions(self) -> list[tuple[str, str, str]]:
        """All definitions: kind, key, value."""
        ...

    def logs(self) -> dict[int, LogSummary]:
        """Every log that has entries or a mark."""
        ...

    def read(self, log: int, after: int, limit: int) -> list[tuple[int, Row]]:
        """Entries behind a position, in order, with their shared content put in."""
        ...

    def last_shared(self) -> int:
        """The highest id of a shared message ever given."""
        ...

    def commit(self, batch: Batch, done: Callable[[Exception | None], None]) -> None:
        """Make a batch durable, then call back: None when it is safe, else what went wrong.

        A batch is written whole or not at all; one that failed may be handed over again.
        """
        ...

    def free_bytes(self) -> int:
        """Room that is left where the store lies."""
        ...

    def close(self) -> None: ...
