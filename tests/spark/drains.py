"""Draining without Spark: numbered messages in, what a task would hand out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.wire import Channel
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range
from warren.spark.ledger.files import Files
from warren.spark.ledger.ledger import Ledger
from warren.spark.options import SourceOptions


class Crash(Exception):
    """What stands for kill -9: nothing behind it runs."""


def publish(channel: Channel, queue: str, numbers: Iterable[int], **properties: Any) -> None:
    for number in numbers:
        channel.publish(queue, b"%d" % number, **properties)
    channel.sync()


class Task:
    """Attempts at draining one queue, each as a task of its own."""

    def __init__(self, url: str, folder: Path | Files, **options: str) -> None:
        self.options = SourceOptions.parse({"uri": url, "queues": "-", **options})
        self.ledger = Ledger.at(str(folder)) if isinstance(folder, Path) else Ledger(folder)
        self.ledger.create()

    def run(
        self, queue: str, start: int, end: int, *, mode: str = "exclusive",
        suspicious: bool = False, **settings: Any,
    ) -> list[int]:  # fmt: skip
        """The numbers that one attempt hands out."""
        wanted = Range(queue, start, end, mode, suspicious)
        return numbers(self.batches([wanted], **settings))

    def batches(self, ranges: list[Range], **settings: Any) -> list[pa.RecordBatch]:
        drain = Drain(self.options, self.ledger, **settings)
        return list(drain.rows(ranges))

    def crash(self, queue: str, start: int, end: int, point: str, **more: Any) -> None:
        """One attempt that dies at a point, its connection with it."""
        mode = more.pop("mode", "exclusive")
        self.crash_many([Range(queue, start, end, mode)], point, **more)

    def crash_many(self, ranges: list[Range], point: str, nth: int = 1, **more: Any) -> None:
        """The same of several queues, when ``nth`` of them have come to that point."""
        left = nth

        def probe(at: str, _: str) -> None:
            nonlocal left
            left -= at == point
            if not left:
                drain.connection.abandon()
                raise Crash(point)

        drain = tell_clearing(Drain(self.options, self.ledger, probe=probe, **more))
        try:
            for _ in drain.rows(ranges):
                pass
        except Crash:
            return
        raise AssertionError(f"it never came to {point!r}")

    def in_doubt(self, queue: str) -> list[int]:
        return self.ledger.shelves().of(queue).in_doubt


def tell_clearing(drain: Drain) -> Drain:
    """Have its probe see, too, what it does about segments in doubt: before it acknowledges what
    came back, and when the broker has read that, before the mark."""
    clear, cleared = drain._clear, drain._cleared

    def told_clear(job: Any, tap: Any) -> None:
        drain._probe("before clearing", job.queue)
        clear(job, tap)

    def told_cleared(job: Any, tap: Any) -> Iterator[Any]:
        drain._probe("before cleared", job.queue)
        yield from cleared(job, tap)

    drain._clear, drain._cleared = told_clear, told_cleared  # type: ignore[method-assign]
    return drain


def numbers(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return [int(body) for batch in batches for body in batch.column("body").to_pylist()]
