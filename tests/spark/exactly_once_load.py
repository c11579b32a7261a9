"""Numbers into queues for the proof of exactly once; and processes of a job, to be killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.bulk import Bulk
from tests.support.wire import Closed, Connection
from tests.support.wire_frames import Gone

#: An AssertionError is Bulk's word for a nack: a quorum queue whose leader is dead may send one.
OVER = (Gone, Closed, OSError, TimeoutError, AssertionError)


@dataclass
class Source:
    """What one queue's publisher knows."""

    queue: str
    sent: int = 0
    confirmed: set[int] = field(default_factory=set)


class Publisher(threading.Thread):
    """Numbers to one queue at a steady pace, as long as there is ``room``; after a broken
    connection it goes on with new ones: what was not confirmed may be in the queue or not."""

    def __init__(
        self, source: Source, urls: Sequence[str], stop: threading.Event, room: Callable[[], bool]
    ) -> None:
        super().__init__(name=f"publish {source.queue}", daemon=True)
        self.source, self._urls, self._halt, self._room = source, urls, stop, room
        self._random = random.Random(source.queue)

    def run(self) -> None:
        while not self._halt.is_set():
            with contextlib.suppress(*OVER):
                self._publish(Bulk(self._random.choice(self._urls)))
            self._halt.wait(0.1)

    def _publish(self, link: Bulk) -> None:
        try:
            while not self._halt.is_set():
                if self._room():
                    self.publish(link, 50)
                self._halt.wait(0.1)
        finally:
            link.close()

    def publish(self, link: Bulk, count: int) -> None:
        numbers = range(self.source.sent, self.source.sent + count)
        self.source.sent += count
        link.publish(self.source.queue, numbers)
        self.source.confirmed.update(numbers)


def connected(urls: Sequence[str]) -> Connection:
    """To the first broker that answers."""
    for url in urls[:-1]:
        with contextlib.suppress(*OVER):
            return Connection.open(url)
    return Connection.open(urls[-1])


# -- processes -----------------------------------------------------------------------------------
def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def python_workers(pids: set[int]) -> list[int]:
    """The children of Spark's daemon: they run tasks."""
    daemons = {pid for pid in pids if b"pyspark.daemon" in command(pid)}
    return sorted(pid for pid in daemons if _parent(pid) in daemons)


def executors(pids: set[int]) -> list[int]:
    return sorted(pid for pid in pids if b"CoarseGrainedExecutorBackend" in command(pid))


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
