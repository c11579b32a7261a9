"""The streaming source: what Spark calls on the driver and in tasks."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from warren.client.blocking import BlockingConnection
from warren.client.blocking_reader import count_ready
from warren.errors import ClientError, ConfigError, ConnectionForced
from warren.spark.drain import Drain, Range
from warren.spark.ledger import Ledger
from warren.spark.options import SOURCE, SourceOptions
from warren.spark.plan import Offset, Positions, latest, offset_of, positions_of, spread
from warren.spark.queues import Catalog, QueueInfo, require_there

log = logging.getLogger(__name__)

#: What a message is taken to weigh before any was read.
_UNKNOWN_BYTES = 4096
T = TypeVar("T")


@dataclass
class QueuePartition(InputPartition):
    """A task's ranges."""

    ranges: tuple[Range, ...]
    ledger_id: str

    def __init__(self, ranges: Sequence[Range], ledger_id: str) -> None:
        super().__init__(0)
        self.ranges, self.ledger_id = tuple(ranges), ledger_id


class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads queues through a ledger.

    Made in several processes and pickled to tasks: it connects when it is asked something, and
    nothing hangs on ``commit`` or ``stop`` being called.
    """

    def __init__(self, given: Mapping[str, str], schema: StructType) -> None:
        self._options = SourceOptions.parse(given)
        need_ledger(self._options)
        self._driver: Driver | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_driver": None}

    @property
    def driver(self) -> Driver:
        if self._driver is None:
            self._driver = Driver(self._options)
        return self._driver

    # -- on the driver ---------------------------------------------------------------------------
    def initialOffset(self) -> Offset:  # noqa: N802
        return self.driver.initial()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self._options.max_messages is not None:
            return ReadMaxRows(self._options.max_messages)
        if self._options.max_bytes is not None:
            return ReadMaxBytes(self._options.max_bytes)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.driver.only_what_is_there_now()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        octets = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        if rows is not None:
            octets = self._options.max_bytes
        return self.driver.latest(start, rows, octets)

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        return self.driver.reported

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return self.driver.partitions(start, end)

    def commit(self, end: Offset) -> None:
        self.driver.commit(end)

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.close()

    # -- in a task -------------------------------------------------------------------------------
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, QueuePartition)
        ledger = Ledger.at(need_ledger(self._options))
        ledger.require(partition.ledger_id)
        query = query_id()
        if query:
            ledger.claim(f"query {query}")
        return self.drain(ledger, query).rows(partition.ranges)

    def drain(self, ledger: Ledger, run: str) -> Drain:
        return Drain(self._options, ledger, run=run)


def need_ledger(options: SourceOptions) -> str:
    """The ledger's path; raises ConfigError if none was given."""
    if options.ledger is None:
        raise ConfigError(
            "ledger",
            "name a folder that every executor can reach: what is read from a queue is written "
            "down there before it is acknowledged",
            SOURCE,
        )
    return options.ledger


def query_id() -> str:
    """The id of the streaming query whose task this is; "" outside of one."""
    context = TaskContext.get()
    return (context.getLocalProperty("sql.streaming.queryId") or "") if context else ""


class Driver:
    """What the reader knows on the driver: a connection, the ledger, where the query ends."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._catalog = Catalog(options)
        self._ledger = Ledger.at(need_ledger(options))
        self._link: BlockingConnection | None = None
        self._now_only = False
        self._target: Positions | None = None
        #: A new connection: the broker may have been restarted since the last batch.
        self._suspicious = True
        self.reported: Offset | None = None

    def initial(self) -> Offset:
        """Where a new query begins: at the oldest that the ledger keeps, so that nothing that was
        acknowledged for a query whose checkpoint is lost is lost with it."""
        ledger = self._ledger.create()
        shelves = self._ledger.shelves()
        queues = {queue: shelves.of(queue) for queue in self._queues()}
        return offset_of(
            ledger, {queue: shelf.starts[0] for queue, shelf in queues.items() if shelf.starts}
        )

    def only_what_is_there_now(self) -> None:
        self._now_only, self._target = True, None

    # -- planning --------------------------------------------------------------------------------
    def latest(self, start: Offset, rows: int | None, octets: int | None) -> Offset:
        self._ledger.require(start["ledger"])
        positions = positions_of(start)
        ready = self._ready()
        kept = self._kept(positions)
        if self._now_only and self._target is None:
            self._target = {
                queue: positions.get(queue, 0) + count for queue, count in ready.items()
            }
        everything = {queue: positions.get(queue, 0) + count for queue, count in ready.items()}
        self.reported = offset_of(start["ledger"], {**positions, **everything})
        limit = self._limit(rows, octets, ready)
        ends = latest(positions, ready, limit=limit, target=self._target)
        return offset_of(start["ledger"], {**ends, **kept})

    def _kept(self, positions: Positions) -> Positions:
        """Ends of what the ledger holds beyond ``positions``: a new query on an old ledger reads
        whole segments first, whatever its limit."""
        shelves = self._ledger.shelves()
        ends: Positions = {}
        for queue, position in positions.items():
            starts = shelves.of(queue).starts
            if starts and starts[-1] >= position:
                segment = self._ledger.read(queue, starts[-1])
                if segment is not None:
                    ends[queue] = segment.end
        return ends

    def _limit(self, rows: int | None, octets: int | None, ready: Mapping[str, int]) -> int | None:
        if octets is None:
            return rows
        by_weight = max(1, octets // self._mean_bytes(ready))
        return by_weight if rows is None else min(rows, by_weight)

    def _mean_bytes(self, queues: Mapping[str, int]) -> int:
        """What a message weighed lately."""
        shelves = self._ledger.shelves()
        count = total = 0
        for queue in queues:
            starts = shelves.of(queue).starts
            segment = self._ledger.read(queue, starts[-1]) if starts else None
            if segment is not None:
                count += segment.rows
                total += int(segment.batch.column("body").nbytes)
        return max(1, total // count) if count else _UNKNOWN_BYTES

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        ledger = self._ledger.create() if not start["ledger"] else start["ledger"]
        self._ledger.require(ledger)
        kinds = self._queues()
        tasks = self._options.min_partitions or default_tasks()
        suspicious, self._suspicious = self._suspicious, False
        return [
            QueuePartition(
                [
                    Range(queue, first, last, kinds[queue].mode if queue in kinds else "exclusive",
                          suspicious)
                    for queue, first, last in task
                ],
                ledger,
            )
            for task in spread(positions_of(start), positions_of(end), tasks)
        ]  # fmt: skip

    def commit(self, end: Offset) -> None:
        """Forget what Spark does not need any more."""
        older_than = time.time() - self._options.retention_s
        gone = self._ledger.prune(positions_of(end), older_than=older_than)
        if gone:
            log.debug("%d segments pruned from %s", gone, self._ledger.place)

    # -- the broker ------------------------------------------------------------------------------
    def _ready(self) -> dict[str, int]:
        counts = self._asked(lambda link: count_ready(link, list(self._catalog.queues(link))))
        return require_there(self._options, counts)

    def _queues(self) -> dict[str, QueueInfo]:
        return self._asked(self._catalog.queues)

    def _asked(self, question: Callable[[BlockingConnection], T]) -> T:
        try:
            return question(self._connected())
        except (ClientError, ConnectionForced, TimeoutError):
            self.close()  # it was idle for long, or the broker was restarted: once more
            return question(self._connected())

    def _connected(self) -> BlockingConnection:
        if self._link is None or not self._link.is_open:
            # Nobody sends heartbeats while Spark does something else.
            endpoints = [endpoint.but(heartbeat_s=0) for endpoint in self._options.endpoints]
            self._link = BlockingConnection.open(endpoints, name="warren spark driver")
            self._suspicious = True
        return self._link

    def close(self) -> None:
        if self._link is not None:
            self._link.abandon()
            self._link = None


def default_tasks() -> int:
    """As many tasks as there are cores, as far as the driver's Python can tell."""
    return os.cpu_count() or 2
