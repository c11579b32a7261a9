"""Writing the segments of many queues, and their marks, at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from warren.spark.ledger.ledger import Ledger, Settled
from warren.spark.ledger.segment import Segment

#: A disk syncs some files as fast as one, and an object store has many answers under way.
_WRITERS = 16
#: Segments under so many octets share a file, up to so many in all. A queue's last segment is kept
#: for long, and with it what it shares its file with.
_SMALL_BYTES = 1 << 20
_SHARED_BYTES = 4 << 20
T = TypeVar("T")
U = TypeVar("U")


class SegmentWriters:
    """Threads, started when there is more than one file to write."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._threads: ThreadPoolExecutor | None = None

    def write(self, segments: Sequence[Segment]) -> list[bool]:
        """Make all of them; of each, False if another was first. Raises LedgerGone."""
        files = files_of(segments) if self._ledger.files.shares else [[each] for each in segments]
        ours = {
            (segment.queue, segment.start): is_new
            for held, made in zip(files, self._at_once(self._write, files), strict=True)
            for segment, is_new in zip(held, made, strict=True)
        }
        self._ledger.require_there()  # behind the writing: nothing is acknowledged yet
        return [ours[segment.queue, segment.start] for segment in segments]

    def mark(self, settled: Sequence[Settled]) -> None:
        """Mark all of them settled."""
        marks = [settled] if self._ledger.files.shares else [[each] for each in settled]
        list(self._at_once(self._ledger.settle_all, marks))

    def _at_once(self, write: Callable[[T], U], files: Sequence[T]) -> Iterator[U]:
        if len(files) < 2:
            return map(write, files)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_WRITERS, "warren ledger")
        return self._threads.map(write, files)

    def _write(self, held: Sequence[Segment]) -> list[bool]:
        if len(held) == 1:
            return [self._ledger.write(held[0])]
        return self._ledger.write_together(held)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()


def files_of(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Which segments lie in one file."""
    large: list[list[Segment]] = []
    shared: list[list[Segment]] = [[]]
    room = _SHARED_BYTES
    for segment in segments:
        octets = segment.octets
        if octets >= _SMALL_BYTES:
            large.append([segment])
            continue
        if octets > room:
            shared.append([])
            room = _SHARED_BYTES
        shared[-1].append(segment)
        room -= octets
    return large + [held for held in shared if held]
