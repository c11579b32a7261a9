"""What a store takes and gives back. It knows bytes and positions, not queues or messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

#: Positions a log (a queue) can have: an entry's id is log << 40 | position.
POSITION_BITS = 40
LAST_POSITION = (1 << POSITION_BITS) - 1

#: exchange, routing key, content frames, expiry (ms since 1970, 0 for none), times given back,
#: id of the shared message (0: the content is the entry's own).
Row = tuple[str | None, str | None, bytes | None, int, int, int]


def entry_id(log: int, position: int) -> int:
    return log << POSITION_BITS | position


@dataclass(slots=True)
class Batch:
    """Changes that become durable together."""

    number: int
    puts: dict[int, Row] = field(default_factory=dict)
    deletes: list[int] = field(default_factory=list)
    #: Stretches of ids, both ends included: purged and deleted queues.
    cuts: list[tuple[int, int]] = field(default_factory=list)
    #: Messages that several entries share: id to (exchange, routing key, content).
    shared: dict[int, tuple[str, str, bytes]] = field(default_factory=dict)
    #: By how much the number of entries that share a message changes.
    references: dict[int, int] = field(default_factory=dict)
    #: Highest position given out, a log.
    marks: dict[int, int] = field(default_factory=dict)
    #: (kind, key) to value; None deletes.
    definitions: dict[tuple[str, str], str | None] = field(default_factory=dict)
    bytes_waiting: int = 0

    @property
    def empty(self) -> bool:
        """Nothing that is worth a sync: marks alone can wait for company."""
        return not (
            self.puts
            or self.deletes
            or self.cuts
            or self.shared
            or self.references
            or self.definitions
        )


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What a log holds, without reading it."""

    count: int
    first: int
    last: int
    mark: int


class Store(Protocol):
    """Contract of a store. Only ``commit`` comes back later, on a thread of the store's own."""

    def definitions(self) -> list[tuple[str, str, str]]:
        """All definitions: kind, key, value."""
        ...

    def logs(self) -> dict[int, LogSummary]:
        """Every log that has entries or a mark."""
        ...

    def read(self, log: int, after: int, limit: int) -> list[tuple[int, Row]]:
        """Committed entries behind a position, in order, with their shared content put in."""
        ...

    def last_shared(self) -> int:
        """The highest id of a shared message ever given."""
        ...

    def commit(self, batch: Batch, done: Callable[[Exception | None], None]) -> None:
        """Make a batch durable, then call back: None when it is safe, else what went wrong."""
        ...

    def close(self) -> None: ...
