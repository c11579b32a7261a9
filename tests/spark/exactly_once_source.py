"""``format("rabbitmq")`` for the proof of exactly once: on a disk that refuses, with tasks that can
be met at a step, and notes of the rules that were used.

It is pickled by value, with all it needs: executors of a cluster don't find this package.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition

from tests.spark.exactly_once_steps import PRUNED, come_to, note
from warren.errors import LedgerUnusable
from warren.spark import portions
from warren.spark.columns import DDL
from warren.spark.drain import doubt
from warren.spark.drain.drain import Drain
from warren.spark.driver import need_ledger
from warren.spark.ledger.files import LocalFiles
from warren.spark.ledger.ledger import Ledger, Shelf, Shelves
from warren.spark.plan import Offset
from warren.spark.source import QueueStreamReader

#: What a disk refuses: a segment before it is there, one that is there, or a mark.
FULL_AT = ["segment", "written", "mark"]


class RefusingFiles(LocalFiles):
    """A disk that is full for as long as a file says so, for what is written in it."""

    def put_new(self, name: str, data: bytes | bytearray) -> bool:
        return self._put_all([name], data)[0]

    def put_shared(self, names: Sequence[str], data: bytes | bytearray) -> list[bool]:
        return self._put_all(names, data)

    def _put_all(self, names: Sequence[str], data: bytes | bytearray) -> list[bool]:
        self._refuse("segment")
        made = super().put_shared(names, data)
        assert made is not None
        note(self._beside, "written by another attempt first", made.count(False))
        self._refuse("written")
        return made

    def put_empty(self, names: Sequence[str]) -> None:
        self._refuse("mark")
        super().put_empty(names)

    def _refuse(self, what: str) -> None:
        full = self._beside / "disk-full"
        if full.exists() and full.read_text() == what:
            (self._beside / "disk-refused").touch()
            raise LedgerUnusable(self.place, f"[Errno {errno.ENOSPC}] No space left on device")

    @property
    def _beside(self) -> Path:
        return Path(self.place).parent


def watched(drain: Drain, folder: Path) -> Drain:
    """The same drain, whose steps are told."""
    clear, cleared, write, rows = drain._clear, drain._cleared, drain._writers.write, drain.rows
    choice = random.Random()
    portions._SMALL_BYTES = choice.choice([0, 1 << 20])  # each segment's rows at once, or not

    def told_clear(*given: Any) -> None:
        come_to(folder, "before clearing")
        clear(*given)

    def told_cleared(*given: Any) -> Iterator[Any]:
        come_to(folder, "before cleared")  # acknowledged, not marked
        yield from cleared(*given)

    def told_write(segments: Sequence[Any]) -> list[bool]:
        begin = {job.queue: job.range.start for job in drain._group}
        later = sum(each.start > begin[each.queue] for each in segments)
        note(folder, "segments behind the first of a range", later)
        return write(segments)

    def told_rows(ranges: Any) -> Iterator[Any]:
        """A Spark that is slow over some of them: meanwhile what the broker says is heard."""
        for batch in rows(ranges):
            yield batch
            if choice.random() < 0.5:
                drain.keep_alive()
                note(folder, "read on while Spark had rows", 1)

    drain.rows = told_rows  # type: ignore[method-assign]
    drain._probe = lambda point, _: come_to(folder, point)
    drain._clear, drain._cleared = told_clear, told_cleared  # type: ignore[method-assign]
    drain._writers.write = told_write  # type: ignore[method-assign]
    return drain


def note_comparisons(folder: Path) -> None:
    """Have this process note what is compared with the ledger, and what is dropped."""
    if hasattr(doubt, "noted"):
        return
    doubt.noted = True  # type: ignore[attr-defined]
    in_doubt, settled = doubt.match_in_doubt, doubt.match_settled

    def match_in_doubt(returned: Any, segments: Any, **options: Any) -> Any:
        found = in_doubt(returned, segments, **options)
        note(folder, "compared with segments in doubt", len(segments))
        note(folder, "dropped, in doubt", len(found.dropped))
        return found

    def match_settled(returned: Any, recent: Any, **options: Any) -> Any:
        found = settled(returned, recent, **options)
        note(folder, "compared with settled segments", 1)
        note(folder, "dropped, settled", len(found))
        return found

    doubt.match_in_doubt = match_in_doubt
    doubt.match_settled = match_settled


class WatchedReader(QueueStreamReader):
    @property
    def _folder(self) -> Path:
        return Path(need_ledger(self._options)).parent

    def drain(self, ledger: Ledger, run: str) -> Drain:
        note_comparisons(self._folder)
        drain = super().drain(Ledger(RefusingFiles(ledger.place)), run)
        return watched(drain, self._folder)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from super().read(partition)
        come_to(self._folder, "after the last row")

    def commit(self, end: Offset) -> None:
        ledger = Ledger.at(need_ledger(self._options))
        doubtful = {stem: shelf.in_doubt for stem, shelf in ledger.shelves().items()}
        super().commit(end)
        kept = ledger.shelves() if any(doubtful.values()) else Shelves()
        gone = sum(
            not kept.get(stem, Shelf()).has(start)
            for stem, starts in doubtful.items()
            for start in starts
        )
        note(self._folder, PRUNED, gone)


class WatchedSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "rabbitmq_watched"

    def schema(self) -> str:
        return DDL

    def streamReader(self, schema: Any) -> QueueStreamReader:
        return WatchedReader(dict(self.options), schema)
