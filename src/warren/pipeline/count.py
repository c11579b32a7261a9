"""What a pipeline has done, in messages and rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass
class TableCount:
    """What a table took and what became of it."""

    #: Messages that are the table's.
    messages: int = 0
    #: Of these, what had come before.
    doubles: int = 0
    #: Messages that are in the table: counted where its files are written, unless a query stands
    #: between, which may make more rows of them, or fewer.
    written: int = 0
    #: Rows in the table's files.
    rows: int = 0


@dataclass
class BatchCount:
    """What a batch has done; several add up."""

    drained: int = 0
    ignored: int = 0
    quarantined: int = 0
    tables: dict[str, TableCount] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    published: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    batches: int = 0

    def add(self, other: BatchCount) -> None:
        self.drained += other.drained
        self.ignored += other.ignored
        self.quarantined += other.quarantined
        for name, count in other.tables.items():
            mine = self.tables.setdefault(name, TableCount())
            mine.messages += count.messages
            mine.doubles += count.doubles
            mine.written += count.written
            mine.rows += count.rows
        self.reasons.update(other.reasons)
        self.published.update(other.published)
        self.seconds += other.seconds
        self.batches += other.batches

    def put_in_order(self, names: Iterable[str]) -> None:
        """The tables as the file has them, and not as they were found."""
        self.tables = {name: self.tables[name] for name in names if name in self.tables}

    @property
    def written(self) -> int:
        return sum(table.written for table in self.tables.values())

    @property
    def doubles(self) -> int:
        return sum(table.doubles for table in self.tables.values())

    @property
    def adds_up(self) -> bool:
        """Every message that was drained is somewhere."""
        known = self.written + self.doubles + self.quarantined + self.ignored
        return self.drained == known

    def as_json(self) -> dict[str, Any]:
        # asdict() on its own makes keys of a Counter's pairs.
        plain = replace(self, reasons={}, published={})  # type: ignore[arg-type]
        return asdict(plain) | {
            "reasons": dict(self.reasons),
            "published": dict(self.published),
            "written": self.written,
            "doubles": self.doubles,
        }
