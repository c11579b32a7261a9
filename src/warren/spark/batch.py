"""``spark.read``: drain what is there, once; or look at it and leave it (``peek``)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from warren.client.blocking import BlockingConnection
from warren.client.blocking_reader import EXCLUSIVE, Tap
from warren.errors import AccessRefused, LedgerPruned, QueueBusy, WarrenError
from warren.spark.ahead import AHEAD, ahead
from warren.spark.deliveries import to_batch
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range
from warren.spark.driver import default_tasks, mode_of, need_ledger
from warren.spark.ledger.ledger import Ledger
from warren.spark.options import SourceOptions
from warren.spark.plan import shares, spread
from warren.spark.portions import slices
from warren.spark.queues import Catalog, QueueInfo
from warren.spark.selection import Selection
from warren.spark.stream import STREAM, stream_end, stream_rows, stream_start

#: The most that a queue can be asked to show: AMQP's prefetch has 16 bits.
_MOST_PEEKED = 65_535
_QUIET_S = 0.05


@dataclass
class BatchPartition(InputPartition):
    """A task's ranges; ``run`` tells one read from another."""

    ranges: tuple[Range, ...]
    run: str

    def __init__(self, ranges: Sequence[Range], run: str) -> None:
        super().__init__(0)
        self.ranges, self.run = tuple(ranges), run


class QueueReader(DataSourceReader):
    """What a DataFrame reads is settled by its first action.

    Spark keeps the partitions: later actions read the same rows again, from the ledger.
    """

    def __init__(self, given: Mapping[str, str], schema: StructType) -> None:
        self._options = SourceOptions.parse(given)
        self._selection = Selection(schema)

    # -- when it is planned ----------------------------------------------------------------------
    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        with BlockingConnection.open(options.endpoints, name="warren spark driver") as link:
            catalog = Catalog(options)
            queues, ready = catalog.queues(link), catalog.ready(link)
            start = dict.fromkeys(ready, 0) if options.peek else self._ends(ready)
            for name in (name for name, info in queues.items() if info.kind == STREAM):
                start[name] = stream_start(link, name, options.starting_offset)
                ready[name] = max(0, stream_end(link, name) - start[name])
        ready = shares(ready, options.max_messages)
        end = {queue: start[queue] + count for queue, count in ready.items()}
        run = f"read {secrets.token_hex(8)}"
        tasks = options.min_partitions or default_tasks()
        found = [
            BatchPartition([Range(*each, self._mode(queues[each[0]]), True) for each in task], run)
            for task in spread(start, end, tasks)
        ]
        return found or [BatchPartition([], run)]

    def _mode(self, info: QueueInfo) -> str:
        """How a queue is held while it is read; to look, any way to have it alone will do."""
        if self._options.peek and info.kind == "quorum" and not info.single_active:
            return EXCLUSIVE
        return mode_of(info)

    def _ends(self, queues: Mapping[str, int]) -> dict[str, int]:
        """Where the ledger ends; what it no longer needs goes. Streams need none."""
        if not queues:
            return {}
        ledger = Ledger.at(need_ledger(self._options))
        ledger.create()
        ledger.claim("batch reads")
        shelves = ledger.shelves()
        ends: dict[str, int] = {}
        for queue in queues:
            starts = shelves.of(queue).starts
            last = ledger.read(queue, starts[-1]) if starts else None
            ends[queue] = last.end if last is not None else 0
        ledger.prune(ends, older_than=time.time() - self._options.retention_s)
        return ends

    # -- in a task -------------------------------------------------------------------------------
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, BatchPartition)
        return self._selection.cut(self._rows(partition))

    def _rows(self, partition: BatchPartition) -> Iterator[pa.RecordBatch]:
        streams = [each for each in partition.ranges if each.mode == STREAM]
        queues = [each for each in partition.ranges if each.mode != STREAM]
        return chain(stream_rows(self._options, streams), self._queue_rows(partition.run, queues))

    def _queue_rows(self, run: str, queues: Sequence[Range]) -> Iterator[pa.RecordBatch]:
        if self._options.peek or not queues:
            return peek(self._options, queues)
        ledger = Ledger.at(need_ledger(self._options))
        require_kept(ledger, queues)
        return ahead(self.drain(ledger, run).rows(queues), AHEAD)

    def drain(self, ledger: Ledger, run: str) -> Drain:
        return Drain(self._options, ledger, run=run, own_only=True)


def require_kept(ledger: Ledger, ranges: Sequence[Range]) -> None:
    """Raises LedgerPruned if others have read on since, and what was read here is gone.

    Without this, the range would be filled with what is in the queue now.
    """
    shelves = ledger.shelves()
    for wanted in ranges:
        starts = shelves.of(wanted.queue).starts
        if wanted.start not in starts and any(start > wanted.start for start in starts):
            raise LedgerPruned(ledger.place, wanted.queue)


def peek(options: SourceOptions, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
    """Look at the messages of queues; they go back in order, flagged redelivered."""
    for wanted in ranges:
        with BlockingConnection.open(options.endpoints, name="warren spark peek") as link:
            tap = link.begin_channel(Tap)
            tap.start(wanted.queue, wanted.mode, min(_MOST_PEEKED, wanted.end - wanted.start))
            seen, deadline = 0, time.monotonic() + options.drain_timeout_s
            while tap.is_open and not (tap.done and tap.consuming):
                if not link.pump(_QUIET_S):
                    tap.ask()
                if len(tap.took) > seen:
                    seen, deadline = len(tap.took), time.monotonic() + options.drain_timeout_s
                elif time.monotonic() > deadline:
                    break
            if not tap.is_open:
                raise _refused(wanted.queue, tap.refusal)
            tap.close()
        yield from slices(to_batch(tap.took, wanted.queue, 0, int(time.time() * 1e6)))


def _refused(queue: str, refusal: WarrenError | None) -> WarrenError:
    if isinstance(refusal, AccessRefused):
        return QueueBusy(queue, 0.0)
    assert refusal is not None
    return refusal
