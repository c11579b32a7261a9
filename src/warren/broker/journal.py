"""What the broker writes down, gathered into batches: while one is being synced, the next grows.

A batch carries everything that happened since the one before. Whatever must not be said before it
is true (a confirm, tx.commit-ok, declare-ok of something durable) waits behind the batch's number:
the connection's output is held back until ``committed`` has reached it.

A message that is acknowledged before its batch was handed over is never written at all.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from warren.broker.queues.ready import Entry
from warren.store.base import LAST_POSITION, Batch, Row, Store, entry_id

if TYPE_CHECKING:
    from warren.broker.core import BrokerCore
    from warren.broker.message import Message

log = logging.getLogger(__name__)

#: Octets that may wait for the disk before publishers are made to wait, too.
MOST_WAITING = 64 << 20
#: How long to wait before a batch that could not be written is tried again.
RETRY_MS = 1000
SHARED = -1


class Journal:
    """The broker's side of the store."""

    def __init__(self, core: BrokerCore, store: Store) -> None:
        self._core = core
        self.store = store
        self._batch = Batch(1)
        self._writing: Batch | None = None
        #: Every batch up to this number is safe.
        self.committed = 0
        #: Called with every number that became safe; set by the shell.
        self.on_committed: Callable[[], None] = lambda: None
        #: How the store's thread gets back to the broker's; set by the shell.
        self.call_back: Callable[[Callable[[], None]], None] = lambda act: act()
        self._last_shared = store.last_shared()
        self._waiting_for_disk = False
        #: The batch that has the newest definition.
        self.last_definition = 0
        self.failed = ""

    @property
    def number(self) -> int:
        """The batch that what happens now belongs to."""
        return self._batch.number

    @property
    def barrier(self) -> int:
        """The batch that must be safe before all that happened is."""
        return self._batch.number - 1 if self._batch.empty else self._batch.number

    # -- entries ---------------------------------------------------------------------------------
    def put(self, log_id: int, entry: Entry) -> None:
        """A queue has taken a message that must survive."""
        position, message, expires_at, returns = entry
        batch = self._batch
        address = message.address
        wall = self._to_wall_ms(expires_at) if expires_at else 0
        shared = message.shared
        row: Row
        if shared:
            if shared == SHARED:
                self._last_shared += 1
                shared = message.shared = self._last_shared
                batch.shared[shared] = (address.exchange, address.routing_key, message.content)
                batch.bytes_waiting += len(message.content)
            batch.references[shared] = batch.references.get(shared, 0) + 1
            row = (None, None, None, wall, returns, shared)
        else:
            row = (address.exchange, address.routing_key, message.content, wall, returns, 0)
            batch.bytes_waiting += len(message.content)
        batch.puts[entry_id(log_id, position)] = row

    def forget(self, log_id: int, position: int, message: Message) -> None:
        """The entry is done with."""
        key = entry_id(log_id, position)
        batch = self._batch
        row = batch.puts.pop(key, None)
        if row is None:
            batch.deletes.append(key)
        elif row[2] is not None:
            batch.bytes_waiting -= len(row[2])
        if message.shared > 0:
            batch.references[message.shared] = batch.references.get(message.shared, 0) - 1

    def cut(self, log_id: int, start: int, last: int) -> None:
        """Everything from one position to another is gone: the queue was purged, or deleted."""
        first, end = entry_id(log_id, start), entry_id(log_id, last)
        batch = self._batch
        for key in [key for key in batch.puts if first <= key <= end]:
            shared = batch.puts.pop(key)[5]
            if shared:
                batch.references[shared] = batch.references.get(shared, 0) - 1
        batch.cuts.append((first, end))

    def end_log(self, log_id: int) -> None:
        self.cut(log_id, 0, LAST_POSITION)
        self._batch.marks.pop(log_id, None)

    def mark(self, log_id: int, position: int) -> None:
        """Messages up to there have been given out: they come back flagged redelivered."""
        self._batch.marks[log_id] = position

    def read(self, log_id: int, after: int, limit: int) -> list[tuple[int, Row]]:
        return self.store.read(log_id, after, limit)

    def held(self, size: int) -> None:
        """So many octets are in memory again."""
        self._core.held_bytes += size

    # -- definitions -----------------------------------------------------------------------------
    def define(self, kind: str, key: list[Any], value: dict[str, Any] | None) -> None:
        """Remember (or, with None, forget) something that was declared."""
        self.last_definition = self._batch.number
        text = None if value is None else json.dumps(value)
        self._batch.definitions[kind, json.dumps(key)] = text

    def definitions(self) -> list[tuple[str, list[Any], dict[str, Any]]]:
        return [
            (kind, json.loads(key), json.loads(value))
            for kind, key, value in self.store.definitions()
        ]

    # -- batches ---------------------------------------------------------------------------------
    def flush(self) -> None:
        """Hand the batch over, unless the one before is still being written."""
        if self._writing is not None or self._batch.empty:
            self._watch_disk()
            return
        batch, self._batch = self._batch, Batch(self._batch.number + 1)
        self._writing = batch
        self._write(batch)

    def _write(self, batch: Batch) -> None:
        self.store.commit(batch, lambda error: self.call_back(lambda: self._written(batch, error)))

    def _written(self, batch: Batch, error: Exception | None) -> None:
        if error is not None:
            self._say_failed(str(error))
            self._core.timers.after(RETRY_MS, lambda: self._write(batch))
            return
        if self.failed:
            log.warning("the disk takes writes again")
            self.failed = ""
        self.committed = batch.number
        self._writing = None
        self._watch_disk()
        self._core.batch_committed()
        self.on_committed()

    def _say_failed(self, reason: str) -> None:
        if not self.failed:
            log.error("nothing can be written (%s): publishers are blocked until it can", reason)
        self.failed = reason
        self._core.disk_alarm(True)

    def _watch_disk(self) -> None:
        """Publishers wait when the disk can't follow, or fails."""
        if self.failed:
            return
        waiting = self._batch.bytes_waiting
        if waiting > MOST_WAITING and not self._waiting_for_disk:
            self._waiting_for_disk = True
            self._core.disk_alarm(True)
        elif self._waiting_for_disk and waiting <= MOST_WAITING // 2:
            self._waiting_for_disk = False
        if not self._waiting_for_disk:
            self._core.disk_alarm(False)

    @property
    def idle(self) -> bool:
        """True when everything that happened is safe."""
        return self._writing is None and self._batch.empty

    def close(self) -> None:
        self.store.close()

    # -- time ------------------------------------------------------------------------------------
    def _to_wall_ms(self, deadline_ms: int) -> int:
        clock = self._core.clock
        return clock.wall_ms() + deadline_ms - clock.monotonic_ms()

    def to_deadline_ms(self, wall_ms: int) -> int:
        """A wall-clock expiry on the clock that runs now; never 0, which means none."""
        clock = self._core.clock
        return max(1, clock.monotonic_ms() + wall_ms - clock.wall_ms())
