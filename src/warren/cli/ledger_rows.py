"""What ``warren ledger`` reads: segments of a queue one by one, and the messages of a range.

A ledger may hold more than there is memory for, so there is one segment in it at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warren.errors import ConfigError, LedgerDamaged, LedgerUnusable

if TYPE_CHECKING:
    from warren.spark.ledger.ledger import Ledger, Shelf
    from warren.spark.ledger.segment import Segment


@dataclass(frozen=True, slots=True)
class Look:
    """What is where a segment should be."""

    queue: str
    start: int
    #: None: it can't be read.
    segment: Segment | None
    #: What is wrong with it; "" if nothing is.
    damage: str
    #: Where the one before it ends; None if that is not known.
    before: int | None

    @property
    def gap(self) -> str:
        """What is wrong between the one before it and this one; "" if nothing is."""
        if self.before is None or self.before == self.start:
            return ""
        if self.before < self.start:
            return f"queue '{self.queue}': nothing from offset {self.before} to {self.start}"
        return f"queue '{self.queue}': segments overlap from {self.start} to {self.before}"

    def wrong(self, until: int | None = None) -> list[str]:
        """All that is wrong before that offset."""
        begins = self.start if self.before is None else min(self.start, self.before)
        gap = self.gap if until is None or begins < until else ""
        damage = self.damage if until is None or self.start < until else ""
        return [line for line in (gap, damage) if line]


def looks(ledger: Ledger, stem: str, shelf: Shelf, first: int = 0) -> Iterator[Look]:
    """Read segments of a queue, one by one. One that is forgotten meanwhile is left out."""
    from warren.spark.ledger.ledger import MISSING
    from warren.spark.ledger.names import SEGMENT, name_of, queue_of

    queue, missing = queue_of(stem), shelf.missing
    end: int | None = None
    for start in [*shelf.starts[first:], *missing]:
        segment, damage = None, ""
        try:
            segment = ledger.read_stem(stem, start)
            if segment is None and start in missing:
                damage = f"{name_of(stem, start, SEGMENT)}: {MISSING}"
        except (LedgerDamaged, LedgerUnusable) as error:
            damage = f"{name_of(stem, start, SEGMENT)}: {error.reason}"
        if segment is not None or damage:
            yield Look(queue, start, segment, damage, end)
        end = segment.end if segment is not None else None


class Rows:
    """The messages of a queue from one offset to another, read anew each time."""

    def __init__(self, ledger: Ledger, queue: str, first: int, until: int | None) -> None:
        from warren.spark.ledger.names import stem_of

        if first < 0:
            raise ConfigError("--from", f"{first} is no offset: the first is 0")
        if until is not None and until <= first:
            raise ConfigError("--until", f"{until} is not behind {first}, where the range begins")
        self._ledger, self._first, self._until = ledger, first, until
        self._stem, self._shelf = stem_of(queue), ledger.shelves().of(queue)
        if not self._shelf.starts and not self._shelf.missing:
            raise ConfigError("QUEUE", f"the ledger holds nothing of queue '{queue}'")
        #: What is wrong in the range, as far as it was read.
        self.wrong: list[str] = []
        #: The segments that ``count`` has found messages in.
        self._counted: list[int] = []

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for segment in self._segments():
            yield from self._messages(segment)

    def count(self) -> int:
        """How many there are; ``wrong`` says what is not."""
        count = 0
        for segment in self._segments():
            rows = segment.within(self._first, self._until).num_rows
            if rows:
                count += rows
                self._counted.append(segment.start)
        return count

    def again(self) -> Iterator[dict[str, Any]]:
        """Those that were counted; raises LedgerUnusable if some are not there any more."""
        for start in self._counted:
            segment = self._ledger.read_stem(self._stem, start)
            if segment is None:
                reason = f"its query has forgotten the rows from offset {start} on meanwhile"
                raise LedgerUnusable(self._ledger.place, reason)
            yield from self._messages(segment)

    def _segments(self) -> Iterator[Segment]:
        self.wrong, first = [], self._first
        # A segment reaches to the next one at most.
        before = (at for at, start in enumerate(self._shelf.starts) if start <= first)
        for look in looks(self._ledger, self._stem, self._shelf, max(before, default=0)):
            self.wrong += look.wrong(self._until)
            if self._until is not None and look.start >= self._until:
                break
            if look.segment is not None:
                yield look.segment

    def _messages(self, segment: Segment) -> Iterator[dict[str, Any]]:
        from warren.spark.portions import slices

        for part in slices(segment.within(self._first, self._until)):
            yield from part.to_pylist()
