"""What the broker writes down, gathered into batches: while one is being synced, the next grows.

A batch carries everything that happened since the one before. Whatever must not be said before it
is true (a confirm, tx.commit-ok, declare-ok of something durable) waits behind the batch's number:
the connection's output is held back until ``committed`` has reached it.

A message that is acknowledged before its batch was handed over is never written at all. A batch
whose every change was undone that way is not written either; its number counts as safe.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from warren.broker.queues.ready import Entry
from warren.store.base import LAST_POSITION, ROW_OVERHEAD, Batch, Put, Row, Store, as_row, entry_id

if TYPE_CHECKING:
    from warren.broker.core import BrokerCore
    from warren.broker.message import Message

log = logging.getLogger(__name__)

#: Octets that may wait for the disk before publishers are made to wait, too.
MOST_WAITING = 64 << 20
#: So many are worth a write of their own while more comes in.
ENOUGH = 256 << 10
#: How long to wait before a batch that could not be written is tried again.
RETRY_MS = 1000
#: How often the free space is looked at while nothing is written.
SPACE_CHECK_MS = 5000
SHARED = -1


class Journal:
    """The broker's side of the store."""

    def __init__(self, core: BrokerCore, store: Store, free_limit_bytes: int = 0) -> None:
        self._core = core
        self.store = store
        self._free_limit_bytes = free_limit_bytes
        #: What happens now is put into it.
        self.batch = Batch(1)
        self._writing: Batch | None = None
        #: What became of the batch, as the store's thread tells it.
        self._told: deque[tuple[Batch, Exception | None]] = deque()
        #: Every batch up to this number is safe.
        self.committed = 0
        #: Called when more became safe, and when a write failed; set by the shell.
        self.on_committed: Callable[[], None] = lambda: None
        #: How the store's thread gets back to the broker's; set by the shell.
        self.call_back: Callable[[Callable[[], None]], None] = lambda act: act()
        self._last_shared = store.last_shared()
        #: The batch that has the newest definition.
        self.last_definition = 0
        #: Why nothing can be written; empty when it can.
        self.failed = ""
        self._behind = self._short = False

    @property
    def number(self) -> int:
        """The batch that what happens now belongs to."""
        return self.batch.number

    @property
    def barrier(self) -> int:
        """The batch that must be safe before all that happened is."""
        return self.batch.number - 1 if self.batch.empty else self.batch.number

    # -- entries ---------------------------------------------------------------------------------
    def put(self, log_id: int, entry: Entry, *, transient: bool = False) -> None:
        """A queue has taken a message that must survive, or (transient) has no room in memory.

        ``Queue.publish_alone`` does the same in short for messages that need nothing of this.
        """
        position, message, expires_at, returns = entry
        batch = self.batch
        address = message.address
        wall = self._to_wall_ms(expires_at) if expires_at else 0
        shared = message.shared
        row: Row
        if shared:
            if shared == SHARED:
                self._last_shared += 1
                shared = message.shared = self._last_shared
                content = message.content if message.origin is None else message.whole
                batch.shared[shared] = (address.exchange, address.routing_key, content)
                batch.bytes_waiting += len(content)
            batch.references[shared] = batch.references.get(shared, 0) + 1
            row = (message.body_size, wall, returns, transient, shared, None, None, None)
            batch.bytes_waiting += ROW_OVERHEAD
        else:
            content = message.content if message.origin is None else message.whole
            place = (address.exchange, address.routing_key)
            row = (message.body_size, wall, returns, transient, 0, *place, content)
            batch.bytes_waiting += len(content) + ROW_OVERHEAD
        batch.puts[entry_id(log_id, position)] = row

    def forget(self, log_id: int, position: int, message: Message) -> None:
        """The entry is done with."""
        key = entry_id(log_id, position)
        put = self.batch.puts.pop(key, None)
        if put is None:
            self.batch.deletes.append(key)
            if message.shared > 0:
                self._count_down(message.shared)
        else:
            self._unput(put, message)

    def _unput(self, put: Put, message: Message | None = None) -> None:
        """An entry that was never handed over: as if it had not been."""
        row = as_row(put)
        batch, shared, content = self.batch, row[4], row[7]
        batch.bytes_waiting -= ROW_OVERHEAD
        if content is not None:
            batch.bytes_waiting -= len(content)
        if not shared:
            return
        self._count_down(shared)
        if not batch.references[shared] and shared in batch.shared:
            del batch.references[shared]
            batch.bytes_waiting -= len(batch.shared.pop(shared)[2])
            if message is not None:
                message.shared = SHARED  # another queue may be about to take it

    def _count_down(self, shared: int) -> None:
        references = self.batch.references
        references[shared] = references.get(shared, 0) - 1

    def returned(self, log_id: int, position: int, returns: int) -> None:
        """The entry was given back, so often by now."""
        key = entry_id(log_id, position)
        put = self.batch.puts.get(key)
        if put is None:
            self.batch.returns[key] = returns
        else:
            row = as_row(put)
            self.batch.puts[key] = (*row[:2], returns, *row[3:])

    def cut(self, log_id: int, start: int, last: int) -> None:
        """Everything from one position to another is gone: the queue was purged, or deleted."""
        first, end = entry_id(log_id, start), entry_id(log_id, last)
        batch = self.batch
        for key in [key for key in batch.puts if first <= key <= end]:
            self._unput(batch.puts.pop(key))
        batch.cuts.append((first, end))

    def end_log(self, log_id: int) -> None:
        self.cut(log_id, 0, LAST_POSITION)
        self.batch.marks.pop(log_id, None)

    def mark(self, log_id: int, position: int, *, alone: bool) -> None:
        """Messages up to there may have been seen: they come back flagged redelivered.

        Not ``alone`` is a mark of messages in this very batch: it goes where they go.
        """
        self.batch.marks[log_id] = position
        self.batch.marks_matter |= alone

    def read(self, log_id: int, after: int, limit: int) -> list[tuple[int, Row]]:
        return self.store.read(log_id, after, limit)

    def held(self, size: int) -> None:
        """So many octets are in memory again."""
        self._core.held_bytes += size

    # -- definitions -----------------------------------------------------------------------------
    def define(self, kind: str, key: list[Any], value: dict[str, Any] | None) -> None:
        """Remember (or, with None, forget) something that was declared."""
        self.last_definition = self.batch.number
        text = None if value is None else json.dumps(value)
        self.batch.definitions[kind, json.dumps(key)] = text

    def definitions(self) -> list[tuple[str, list[Any], dict[str, Any]]]:
        return [
            (kind, json.loads(key), json.loads(value))
            for kind, key, value in self.store.definitions()
        ]

    # -- batches ---------------------------------------------------------------------------------
    def flush(self) -> None:
        """Hand the batch over, unless the one before is still being written."""
        if self._writing is None:
            if self.batch.empty:
                self._pass_over()
            else:
                batch, self.batch = self.batch, Batch(self.batch.number + 1)
                batch.paged = bool(self._core.waits_for_commit)
                self._writing = batch
                self._write(batch)
        self._judge_disk()

    def _pass_over(self) -> None:
        """The batch has nothing (left) to write: whoever waits for it has waited enough."""
        self.committed = self.batch.number
        self.batch.number += 1

    def flush_early(self) -> None:
        """Somebody is being read from, and others wait for their turn: keep the disk busy."""
        if self.batch.bytes_waiting > ENOUGH:
            self._hear()
            self.flush()

    def _write(self, batch: Batch) -> None:
        self.store.commit(batch, lambda error: self._tell(batch, error))

    def _tell(self, batch: Batch, error: Exception | None) -> None:
        """On the store's thread."""
        self._told.append((batch, error))
        self.call_back(self._hear)

    def _hear(self) -> None:
        while self._told:
            self._written(*self._told.popleft())

    def _written(self, batch: Batch, error: Exception | None) -> None:
        if error is not None:
            if not self.failed:
                log.error("nothing can be written (%s): publishers are blocked until it can", error)
            self.failed = str(error) or type(error).__name__
            self._core.timers.after(RETRY_MS, lambda: self._write(batch))
        else:
            if self.failed:
                log.warning("the disk takes writes again")
                self.failed = ""
            self.committed = batch.number
            self._writing = None
            if self.batch.empty:
                self._pass_over()
            self._core.batch_committed()
        self._measure_space()
        self._judge_disk()
        self.on_committed()

    @property
    def idle(self) -> bool:
        """True when everything that happened is safe."""
        return self._writing is None and self.batch.empty

    def close(self) -> None:
        self.store.close()

    # -- the disk --------------------------------------------------------------------------------
    def watch_space(self) -> None:
        """Look at the free space now, and from now on now and then."""
        self._measure_space()
        self._judge_disk()
        self._core.batch_committed()  # more can be read by now
        self._core.timers.after(SPACE_CHECK_MS, self.watch_space)

    def _measure_space(self) -> None:
        try:
            free = self.store.free_bytes()
        except OSError as error:
            log.warning("the free space can't be told: %s", error)
            return
        short = free < self._free_limit_bytes
        if short and not self._short:
            limit = self._free_limit_bytes
            log.warning("%d octets of disk are free, the limit is %d", free, limit)
        self._short = short

    def _judge_disk(self) -> None:
        """Publishers wait when the disk fails, is nearly full, or can't follow."""
        most = MOST_WAITING // 2 if self._behind else MOST_WAITING
        self._behind = self.batch.bytes_waiting > most
        self._core.disk_alarm(self._behind or self._short or bool(self.failed))

    # -- time ------------------------------------------------------------------------------------
    def _to_wall_ms(self, deadline_ms: int) -> int:
        clock = self._core.clock
        return clock.wall_ms() + deadline_ms - clock.monotonic_ms()

    def to_deadline_ms(self, wall_ms: int) -> int:
        """A wall-clock expiry on the clock that runs now; never 0, which means none."""
        clock = self._core.clock
        return max(1, clock.monotonic_ms() + wall_ms - clock.wall_ms())
