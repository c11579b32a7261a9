"""``format("rabbitmq")`` whose processes die at a step, as by kill -9, when a file says so."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition

from tests.spark.drains import tell_clearing
from tests.spark.exactly_once_steps import STEPS
from warren.spark.batch import QueueReader
from warren.spark.columns import DDL
from warren.spark.drain.drain import Drain
from warren.spark.driver import need_ledger
from warren.spark.ledger.files import LocalFiles
from warren.spark.ledger.ledger import Ledger
from warren.spark.plan import Offset
from warren.spark.sink.writer import BatchWriter, Published
from warren.spark.source import QueueStreamReader

#: Where a process can die: in a task, in the order of what it does; in the driver's reader.
IN_A_TASK = STEPS
IN_THE_READER = ["before commit", "in prune", "after commit"]


def crash_at(ledger: str, *points: str) -> Path:
    """Have the next process die that comes to the first of ``points``, then one at the second, and
    so on; the file is gone when all have."""
    order = Path(ledger).with_name("crash-at")
    order.write_text("\n".join(points))
    return order


def die_if_asked(ledger: str, point: str) -> None:
    order = Path(ledger).with_name("crash-at")
    points = order.read_text().splitlines() if order.exists() else []
    if points[:1] != [point]:
        return
    if points[1:]:
        order.write_text("\n".join(points[1:]))
    else:
        order.unlink()
    os.kill(os.getpid(), signal.SIGKILL)


def crashing(drain: Drain) -> Drain:
    """The same drain, made as ever, that dies when it is asked to."""
    place = drain._ledger.place
    drain._probe = lambda point, _: die_if_asked(place, point)
    return tell_clearing(drain)


class CrashingFiles(LocalFiles):
    """Dies when a file is gone: between a segment and its mark."""

    def delete(self, name: str) -> None:
        super().delete(name)
        die_if_asked(self.place, "in prune")


class CrashingReader(QueueStreamReader):
    def drain(self, ledger: Ledger, run: str) -> Drain:
        return crashing(super().drain(ledger, run))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from super().read(partition)
        die_if_asked(need_ledger(self._options), "after the last row")

    def commit(self, end: Offset) -> None:
        die_if_asked(need_ledger(self._options), "before commit")
        # A process of its own: nobody else's ledger is opened like this.
        Ledger.at = lambda place: Ledger(CrashingFiles(place))  # type: ignore[method-assign, assignment, misc]
        super().commit(end)
        die_if_asked(need_ledger(self._options), "after commit")


class CrashingBatchReader(QueueReader):
    def drain(self, ledger: Ledger, run: str) -> Drain:
        return crashing(super().drain(ledger, run))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from super().read(partition)
        die_if_asked(need_ledger(self._options), "after the last row")


class CrashingWriter(BatchWriter):
    """Dies when all rows are confirmed: Spark never hears of them."""

    ledger = ""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Published:
        done = super().write(iterator)
        die_if_asked(self.ledger, "after the last confirm")
        return done


class CrashingSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "rabbitmq_crashing"

    def schema(self) -> str:
        return DDL

    def reader(self, schema: Any) -> CrashingBatchReader:
        return CrashingBatchReader(dict(self.options), schema)

    def writer(self, schema: Any, overwrite: bool) -> CrashingWriter:
        given = dict(self.options)
        ledger = given.pop("ledger")  # the order to die lies beside it
        writer = CrashingWriter(given, schema, overwrite)
        writer.ledger = ledger
        return writer

    def streamReader(self, schema: Any) -> CrashingReader:
        return CrashingReader(dict(self.options), schema)
