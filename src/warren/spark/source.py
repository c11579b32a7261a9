"""The streaming source: what Spark calls on the driver and in tasks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import TracebackType
from typing import Any

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

from warren.errors import ConfigError, WarrenError
from warren.spark.ahead import AHEAD, ahead
from warren.spark.drain.drain import Drain
from warren.spark.drain.runs import run_of
from warren.spark.driver import Driver, QueuePartition, need_ledger
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.machine import require_seen
from warren.spark.left_out import LEFT_OUT, leave_out
from warren.spark.options import SOURCE, SourceOptions
from warren.spark.plainly import plainly
from warren.spark.plan import Offset
from warren.spark.selection import Selection
from warren.spark.stream import STREAM, stream_rows


@plainly
class QueueStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads queues through a ledger.

    Made in several processes and pickled to tasks: it connects when it is asked something, and
    nothing hangs on ``commit`` or ``stop`` being called.
    """

    def __init__(self, given: Mapping[str, str], schema: StructType) -> None:
        self._driver: Driver | None = None
        self._refused: WarrenError | None = None
        # With a schema of the user's, load() has not looked. And Spark (4.3) loses what is raised
        # here, for it then stops a reader that it has not got: so it is told when it asks.
        try:
            self._parsed = SourceOptions.parse(given)
            self._selection = Selection(schema)
        except WarrenError as error:
            self._refused = error

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_driver": None}

    @property
    def _options(self) -> SourceOptions:
        if self._refused is not None:
            raise self._refused
        return self._parsed

    @property
    def driver(self) -> Driver:
        if self._options.peek:
            raise ConfigError(
                "peek", "readStream takes what it reads: look with spark.read", SOURCE
            )
        if self._options.replay:
            raise ConfigError(
                "replay", "readStream reads again what it needs by itself: for spark.read", SOURCE
            )
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
        if isinstance(sys.exc_info()[1], EOFError):
            # Java has hung up, as at Ctrl-C. Spark's Python tries to tell it so, which fails, and
            # tells the user instead, in three tracebacks.
            sys.excepthook = _tell_unless_hung_up

    # -- in a task -------------------------------------------------------------------------------
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, QueuePartition)
        return self._selection.cut(self._rows(partition))

    def _rows(self, partition: QueuePartition) -> Iterator[pa.RecordBatch]:
        streams = [each for each in partition.ranges if each.mode == STREAM]
        left_out = [each for each in partition.ranges if each.mode == LEFT_OUT]
        queues = [each for each in partition.ranges if each.mode not in (STREAM, LEFT_OUT)]
        rows = stream_rows(self._options, streams)
        if not queues and not left_out:
            return rows
        ledger = Ledger.at(need_ledger(self._options))
        require_seen(ledger, partition.ledger_id, partition.driver)
        query = query_id()
        if query:
            ledger.claim(f"query {query}")
        run = run_of(query, partition.source)
        rows = chain(rows, leave_out(ledger, left_out, run))
        if not queues:
            return rows
        drain = self.drain(ledger, run)
        return chain(rows, ahead(drain.rows(queues), AHEAD, drain.keep_alive))

    def drain(self, ledger: Ledger, run: str) -> Drain:
        context = TaskContext.get()
        # Of a stage that is run again as a whole, attempts are counted from 0 again, and Python is
        # not told of the stage's own count (Spark 4.3).
        retried = context is None or context.attemptNumber() > 0
        return Drain(self._options, ledger, run=run, retried=retried)


def _tell_unless_hung_up(
    kind: type[BaseException], error: BaseException, where: TracebackType | None
) -> None:
    if not isinstance(error, BrokenPipeError | ConnectionResetError):
        sys.__excepthook__(kind, error, where)


def query_id() -> str:
    """The id of the streaming query whose task this is; "" outside of one."""
    context = TaskContext.get()
    return (context.getLocalProperty("sql.streaming.queryId") or "") if context else ""
