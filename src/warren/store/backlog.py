"""Batches that are safe in the journal and not in the tables yet.

An entry that is deleted while its put waits here never gets into the tables: of a queue whose
messages are consumed as they come, nothing does.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from warren.store.base import LAST_POSITION, POSITION_BITS, Batch, Put


@dataclass(frozen=True, slots=True)
class Waiting:
    """A batch, where it lies in the journal, and how large it is there."""

    row_id: int
    batch: Batch
    size: int


class Backlog:
    """Oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        #: Entries that are put by a batch here, and deleted by none.
        self._fresh: dict[int, Put] = {}
        #: Logs that ended, and the batch that ended them.
        self._ended: dict[int, int] = {}
        #: Octets of all blobs.
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, waiting: Waiting) -> None:
        """One more; the newest."""
        batch, fresh = waiting.batch, self._fresh
        if fresh and batch.deletes:
            deletes = [key for key in batch.deletes if fresh.pop(key, None) is None]
            waiting = replace(waiting, batch=replace(batch, deletes=deletes))
        fresh.update(batch.puts)
        for first, last in batch.cuts:
            if last & LAST_POSITION == LAST_POSITION:
                self._ended[first >> POSITION_BITS] = waiting.row_id
        self._waiting.append(waiting)
        self.bytes += waiting.size

    def oldest(self, size: int) -> list[Waiting]:
        """As many as make up a size; one at least, if there is one."""
        chosen: list[Waiting] = []
        for waiting in self._waiting:
            if size <= 0:
                break
            chosen.append(waiting)
            size -= waiting.size
        return chosen

    def changes(self, chosen: list[Waiting]) -> list[Batch]:
        """What these change, in order, without what has been undone since."""
        batches: list[Batch] = []
        for waiting in chosen:
            batch = replace(waiting.batch, puts=self._alive(waiting))
            if batches and not batch.cuts and not batches[-1].cuts:
                _merge(batches[-1], batch)
            else:
                batches.append(_own(batch))
        return batches

    def _alive(self, waiting: Waiting) -> dict[int, Put]:
        fresh, ended, row_id = self._fresh, self._ended, waiting.row_id
        puts = waiting.batch.puts
        alive = {key: put for key, put in puts.items() if key in fresh}
        if ended:
            # Those that share a message are put nevertheless: the cut counts them down.
            alive = {
                key: put
                for key, put in alive.items()
                if ended.get(key >> POSITION_BITS, 0) <= row_id
                or (isinstance(put, tuple) and put[4])
            }
        return alive

    def drop(self, chosen: list[Waiting]) -> None:
        """The oldest ones are in the tables."""
        fresh = self._fresh
        for waiting in chosen:
            self._waiting.popleft()
            self.bytes -= waiting.size
            for key in waiting.batch.puts:
                fresh.pop(key, None)
        if chosen and self._ended:
            last = chosen[-1].row_id
            self._ended = {log: row_id for log, row_id in self._ended.items() if row_id > last}


def _own(batch: Batch) -> Batch:
    """A copy that can be added to."""
    return replace(
        batch,
        deletes=list(batch.deletes),
        shared=dict(batch.shared),
        references=dict(batch.references),
        returns=dict(batch.returns),
        marks=dict(batch.marks),
        definitions=dict(batch.definitions),
    )


def _merge(batch: Batch, later: Batch) -> None:
    """Both without cuts. What the later one deletes was put by neither: see ``Backlog.add``."""
    batch.puts.update(later.puts)
    batch.deletes += later.deletes
    batch.shared.update(later.shared)
    for key, change in later.references.items():
        batch.references[key] = batch.references.get(key, 0) + change
    batch.returns.update(later.returns)
    batch.marks.update(later.marks)
    batch.definitions.update(later.definitions)
