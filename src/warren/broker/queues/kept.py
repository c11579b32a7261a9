"""The store's side of a queue: what of it is written down, and what clients have seen of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warren.broker.queues.ready import Entry, PagedReady
from warren.broker.queues.restore import restore_entry
from warren.store.base import LogSummary, entry_id

if TYPE_CHECKING:
    from warren.broker.connection import BrokerConnection
    from warren.broker.core import BrokerCore
    from warren.broker.journal import Journal

#: Entries read from the disk at a time.
_PAGE = 1000
#: The mark of what was seen runs ahead by 1 << 10 at most, see ``Kept.given_out``.
_MOST_WAITS = 14


class Kept:
    """One queue's log in the store. Without a log (``log_id`` 0) nothing is ever asked of it."""

    __slots__ = (
        "_core",
        "_given_out",
        "_log_id",
        "_marked",
        "_older",
        "_seen_before",
        "_waits",
        "first_id",
        "newest",
        "newest_batch",
    )

    def __init__(self, core: BrokerCore, log_id: int) -> None:
        self._core = core
        self._log_id = log_id
        #: The id of position 0; never written.
        self.first_id = entry_id(log_id, 0)
        self._given_out = 0  # the highest position any consumer has seen
        self._seen_before = 0  # the same, of the broker's life before this one
        self._marked = self._waits = 0  # what the store is told of it, see ``given_out``
        #: The newest entry written, the batch it is in, and the newest in a batch before that.
        self.newest = self.newest_batch = self._older = 0

    @property
    def _journal(self) -> Journal:
        journal = self._core.journal
        assert journal is not None
        return journal

    # -- writing ---------------------------------------------------------------------------------
    def put(self, entry: Entry, *, transient: bool = False) -> None:
        journal = self._journal
        if self.newest_batch != journal.number:
            self.begin(journal.number)
        self.newest = entry[0]
        journal.put(self._log_id, entry, transient=transient)

    def begin(self, batch: int) -> None:
        """From now on, what is put gets into this batch."""
        self.newest_batch, self._older = batch, self.newest

    def forget(self, entry: Entry) -> None:
        """An entry is done with."""
        self._core.journal.forget(self._log_id, entry[0], entry[1])  # type: ignore[union-attr]

    def returned(self, position: int, returns: int) -> None:
        """An entry was given back, so often by now."""
        self._journal.returned(self._log_id, position, returns)

    def cut(self, start: int, last: int) -> None:
        """Everything from one position to another is gone."""
        self._journal.cut(self._log_id, start, last)

    # -- reading ---------------------------------------------------------------------------------
    def load(self, ready: PagedReady, after: int) -> list[Entry]:
        """Read on from the disk; what is not there yet is still in memory."""
        if ready.paged > len(ready.on_their_way):
            return self._read(after)
        entries = [entry for _, entry in ready.on_their_way]
        for entry in entries:
            self._core.hold(entry[1])
        return entries

    def _read(self, after: int) -> list[Entry]:
        journal, seen = self._journal, self._seen_before
        rows = journal.read(self._log_id, after, _PAGE)
        return [restore_entry(journal, position, row, seen) for position, row in rows]

    def recover(self, summary: LogSummary) -> None:
        """Take up again what the store has."""
        self.newest = summary.last
        self._seen_before = self._given_out = self._marked = summary.mark

    def read_all(self, journal: Journal) -> list[Entry]:
        """Everything there is, while the broker starts."""
        entries: list[Entry] = []
        after = 0
        while rows := journal.read(self._log_id, after, _PAGE):
            entries += [restore_entry(journal, at, row, self._seen_before) for at, row in rows]
            after = rows[-1][0]
        return entries

    # -- what was seen ---------------------------------------------------------------------------
    def given_out(self, position: int, connection: BrokerConnection | None) -> None:
        """A client is about to see entries up to there.

        After a crash they must come back flagged redelivered, so the store has a mark of what was
        seen. An entry that is not written yet gets its mark in the same batch. Of one that is, the
        client hears when the mark is safe. After a few waits in a row the mark runs ahead, further
        each time, so that few deliveries of a long backlog wait.
        """
        if position <= self._given_out:
            return
        self._given_out = position
        if position <= self._marked or self.newest <= self._marked:
            return
        journal = self._journal
        older = self._older if self.newest_batch == journal.number else self.newest
        backlog = older > self._marked
        if backlog:
            self._marked = position + ((1 << self._waits) >> 4)
            self._waits = min(self._waits + 1, _MOST_WAITS)
            if connection is not None:
                connection.hold_until(journal.number)
        else:
            self._marked, self._waits = position, 0
        journal.mark(self._log_id, self._marked, alone=backlog)

    def stop(self) -> None:
        """The broker stops: the mark need not run ahead."""
        if self._marked > self._given_out:
            self._marked = self._given_out
            self._journal.mark(self._log_id, self._marked, alone=True)
