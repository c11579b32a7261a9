"""``spark.read``: drain what is there, once; or look at it and leave it (``peek``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from warren.client.blocking import BlockingConnection
from warren.client.blocking_reader import EXCLUSIVE
from warren.errors import LedgerPruned
from warren.spark.ahead import AHEAD, ahead
from warren.spark.cores import default_tasks
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range
from warren.spark.driver import forget, mode_of, need_ledger
from warren.spark.kept import Kept, kept_of, kept_rows
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.machine import Machine, require_seen
from warren.spark.options import SourceOptions
from warren.spark.peek import peek
from warren.spark.plainly import plainly
from warren.spark.plan import shares, shares_of_octets, spread
from warren.spark.queue_info import QueueInfo
from warren.spark.queues import Catalog
from warren.spark.read_plan import (
    ReadPlan,
    ReadTask,
    find_plan,
    new_token,
    prune_plans,
    settle_plan,
)
from warren.spark.selection import Selection
from warren.spark.stream import STREAM, stream_end, stream_rows, stream_start, stream_weight
from warren.spark.weights import Weights


@dataclass
class BatchPartition(InputPartition):
    """What a task reads; ``run`` tells one read from another. Made where the driver is."""

    task: ReadTask
    run: str
    ledger_id: str
    driver: Machine

    def __init__(self, task: ReadTask, run: str, ledger_id: str) -> None:
        super().__init__(0)
        self.task, self.run, self.ledger_id = task, run, ledger_id
        self.driver = Machine.here()


@plainly
class QueueReader(DataSourceReader):
    """What a DataFrame reads is settled by its first action.

    Later actions read the same rows again, from the ledger; so do readers with the same token.
    """

    def __init__(
        self, given: Mapping[str, str], schema: StructType, token: str | None = None
    ) -> None:
        self._options = SourceOptions.parse(given)
        self._selection = Selection(schema)
        self._token = token or new_token()

    # -- when it is planned ----------------------------------------------------------------------
    def partitions(self) -> Sequence[InputPartition]:
        plan = self._planned()
        run = f"read {self._token}"
        tasks = plan.tasks or [ReadTask()]
        return [BatchPartition(task, run, plan.ledger_id) for task in tasks]

    def _planned(self) -> ReadPlan:
        if self._options.peek or self._options.ledger is None:
            return self._plan()
        ledger = Ledger.at(self._options.ledger)
        plan = find_plan(ledger, self._token)
        if plan is not None:
            return plan
        plan = self._plan()
        # Streams alone make no ledger.
        return settle_plan(ledger, self._token, plan) if plan.ledger_id else plan

    def _plan(self) -> ReadPlan:
        options = self._options
        ledger_id, kept = "", dict[str, Kept]()
        with BlockingConnection.open(options.endpoints, name="warren spark driver") as link:
            catalog = Catalog(options)
            queues, ready = catalog.queues(link), catalog.ready(link)
            start = dict.fromkeys(ready, 0)
            if ready and not options.peek:
                ledger = Ledger.at(need_ledger(options))
                ledger_id = ledger.create()
                start, kept = self._in_ledger(ledger, ready)
            for name in (name for name, info in queues.items() if info.kind == STREAM):
                start[name] = stream_start(link, name, options.starting_offset)
                ready[name] = max(0, stream_end(link, name) - start[name])
            if options.max_bytes is not None:
                means = self._means(link, start, ready, queues)
                ready = shares_of_octets(ready, means, options.max_bytes)
        ready = shares(ready, options.max_messages, sum(start.values()))
        end = {queue: start[queue] + count for queue, count in ready.items()}
        begin = start | {queue: each.starts[0] for queue, each in kept.items()}
        found = []
        for task in spread(begin, end, options.min_partitions or default_tasks()):
            names = [queue for queue, _, _ in task]
            ranges = [
                Range(
                    each,
                    start[each],
                    end[each],
                    self._mode(queues[each]),
                    suspicious=True,
                    counts=queues[each].counts,
                )
                for each in names
                if end[each] > start[each]
            ]
            task_kept = [kept[each] for each in names if each in kept]
            found.append(ReadTask(tuple(ranges), tuple(task_kept)))
        return ReadPlan(ledger_id, tuple(found))

    def _means(
        self,
        link: BlockingConnection,
        start: Mapping[str, int],
        ready: Mapping[str, int],
        queues: Mapping[str, QueueInfo],
    ) -> dict[str, int]:
        """What a message of each queue weighed lately; of a stream, what the next ones weigh."""
        weights = Weights()
        streams = {queue for queue in ready if queues[queue].kind == STREAM}
        plain = ready.keys() - streams
        if plain and self._options.ledger is not None:
            weights.of_queues(Ledger.at(self._options.ledger), plain)
        ahead_of = {queue: start[queue] for queue in streams if ready[queue]}
        weights.of_streams(ahead_of, lambda queue, at: stream_weight(link, queue, at))
        return weights.means(ready)

    def _mode(self, info: QueueInfo) -> str:
        """How a queue is held while it is read; to look, any way to have it alone will do."""
        if self._options.peek and info.kind == "quorum" and not info.single_active:
            return EXCLUSIVE
        return mode_of(info)

    def _in_ledger(
        self, ledger: Ledger, queues: Iterable[str]
    ) -> tuple[dict[str, int], dict[str, Kept]]:
        """Where the ledger ends, and what to begin with."""
        ledger.claim("batch reads")
        shelves = ledger.shelves()
        ends: dict[str, int] = {}
        kept: dict[str, Kept] = {}
        replay = self._options.replay
        for queue in queues:
            starts = shelves.of(queue).starts
            last = ledger.read(queue, starts[-1]) if starts else None
            ends[queue] = last.end if last is not None else 0
            if replay is not None:
                found = kept_of(ledger, queue, starts, end=ends[queue], since=replay.since)
                kept |= {queue: found} if found is not None else {}
        if replay is None:  # who reads again may have to do so once more
            forget(ledger, ends, self._options.retention_s)
            prune_plans(ledger)
        return ends, kept

    # -- in a task -------------------------------------------------------------------------------
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, BatchPartition)
        return self._selection.cut(self._rows(partition))

    def _rows(self, partition: BatchPartition) -> Iterator[pa.RecordBatch]:
        task = partition.task
        streams = [each for each in task.ranges if each.mode == STREAM]
        queues = [each for each in task.ranges if each.mode != STREAM]
        rows = stream_rows(self._options, streams)
        if self._options.peek:
            return chain(rows, peek(self._options, queues))
        if not queues and not task.kept:
            return rows
        ledger = Ledger.at(need_ledger(self._options))
        require_seen(ledger, partition.ledger_id, partition.driver)
        require_kept(ledger, queues)
        drain = self.drain(ledger, partition.run)
        drained = ahead(drain.rows(queues), AHEAD, drain.keep_alive)
        return chain(rows, kept_rows(ledger, task.kept), drained)

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
