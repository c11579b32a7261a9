"""``spark.read``: drain what is there, once; or look at it and leave it (``peek``)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from warren.client.blocking import BlockingConnection
from warren.client.blocking_reader import Tap, count_ready
from warren.errors import AccessRefused, QueueBusy, WarrenError
from warren.spark.ahead import AHEAD, ahead
from warren.spark.deliveries import to_batch
from warren.spark.drain import Drain
from warren.spark.drain_job import Range, slices
from warren.spark.driver import default_tasks, need_ledger
from warren.spark.ledger import Ledger
from warren.spark.options import SourceOptions
from warren.spark.plan import shares, spread
from warren.spark.queues import Catalog, require_there
from warren.spark.selection import Selection

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
    """Every action on the DataFrame is a read of its own, and drains what has come since."""

    def __init__(self, given: Mapping[str, str], schema: StructType) -> None:
        self._options = SourceOptions.parse(given)
        self._selection = Selection(schema)
        if not self._options.peek:
            need_ledger(self._options)

    # -- when it is planned ----------------------------------------------------------------------
    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        with BlockingConnection.open(options.endpoints, name="warren spark driver") as link:
            queues = Catalog(options).queues(link)
            counts = count_ready(link, list(queues))
        ready = shares(require_there(options, counts), options.max_messages)
        start = dict.fromkeys(ready, 0) if options.peek else self._ends(ready)
        end = {queue: start[queue] + count for queue, count in ready.items()}
        run = f"read {secrets.token_hex(8)}"
        tasks = options.min_partitions or default_tasks()
        found = [
            BatchPartition([Range(*each, queues[each[0]].mode, True) for each in task], run)
            for task in spread(start, end, tasks)
        ]
        return found or [BatchPartition([], run)]

    def _ends(self, queues: Mapping[str, int]) -> dict[str, int]:
        """Where the ledger ends; what it no longer needs goes."""
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
        if self._options.peek:
            return peek(self._options, partition.ranges)
        ledger = Ledger.at(need_ledger(self._options))
        drain = Drain(self._options, ledger, run=partition.run, own_only=True)
        return ahead(drain.rows(partition.ranges), AHEAD)


def peek(options: SourceOptions, ranges: Sequence[Range]) -> Iterator[pa.RecordBatch]:
    """Look at the messages of queues; they go back in order, flagged redelivered."""
    for wanted in ranges:
        with BlockingConnection.open(options.endpoints, name="warren spark peek") as link:
            tap = link.begin_channel(Tap)
            tap.start(wanted.queue, wanted.mode, min(_MOST_PEEKED, wanted.end - wanted.start))
            deadline = time.monotonic() + options.drain_timeout_s
            while tap.is_open and not (tap.done and tap.consuming):
                if link.pump(_QUIET_S):
                    deadline = time.monotonic() + options.drain_timeout_s
                elif time.monotonic() > deadline:
                    break
                else:
                    tap.ask()
            if not tap.is_open:
                raise _refused(wanted.queue, tap.refusal)
            tap.close()
        yield from slices(to_batch(tap.took, wanted.queue, 0, int(time.time() * 1e6)))


def _refused(queue: str, refusal: WarrenError | None) -> WarrenError:
    if isinstance(refusal, AccessRefused):
        return QueueBusy(queue, 0.0)
    assert refusal is not None
    return refusal
