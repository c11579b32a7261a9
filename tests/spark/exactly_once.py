"""The proof of exactly once: load, random kills, and a count at the end.

    python -m tests.spark.exactly_once --kills 100 --seed 1

Publishers send numbered messages to several queues, with confirms, while a Spark job writes them
to a table, and one after another is killed: the Python worker of a task, an executor (on a
cluster), the driver, the connections, the broker (kill -9, its queues are durable), and for a while
the disk refuses to take a segment. At the end every number that was confirmed must be in the table
once, in the order of its queue, nothing must be left in the queues and nothing in doubt.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.spark import tables
from tests.support import guard
from tests.support.bulk import Bulk
from tests.support.process import BrokerProcess
from tests.support.proxy import Proxy
from tests.support.wire import Closed, Connection, Gone
from warren.spark.ledger import Ledger

ROOT = Path(__file__).parents[2]
OURS = "WARREN_EXACTLY_ONCE"
OVER = (Gone, Closed, OSError, TimeoutError)
LOCAL = "local[2,4]"


@dataclass
class Source:
    """What one queue's publisher knows."""

    queue: str
    sent: int = 0
    confirmed: set[int] = field(default_factory=set)


@dataclass
class Verdict:
    """What came of it."""

    published: int
    in_table: int
    lost: int
    doubled: int
    unordered: int
    left: int
    in_doubt: int
    kills: Counter[str]

    @property
    def good(self) -> bool:
        return not (self.lost or self.doubled or self.unordered or self.left or self.in_doubt)


class Publisher(threading.Thread):
    """Numbers to one queue at a steady pace; after a broken connection it goes on with new ones:
    what was not confirmed may be in the queue or not."""

    def __init__(self, source: Source, url: Callable[[], str], stop: threading.Event) -> None:
        super().__init__(name=f"publish {source.queue}", daemon=True)
        self.source, self._url, self._halt = source, url, stop

    def run(self) -> None:
        while not self._halt.is_set():
            with contextlib.suppress(*OVER):
                self._publish(Bulk(self._url()))
            self._halt.wait(0.1)

    def _publish(self, link: Bulk) -> None:
        try:
            while not self._halt.is_set():
                numbers = range(self.source.sent, self.source.sent + 50)
                self.source.sent += 50
                link.publish(self.source.queue, numbers)
                self.source.confirmed.update(numbers)
                self._halt.wait(0.1)
        finally:
            link.close()


class Harness:
    """A broker, a proxy before it, a Spark job, publishers; and what can be done to them."""

    def __init__(self, folder: Path, *, seed: int, queues: int = 3, master: str = LOCAL) -> None:
        self.folder = folder
        self.master = master
        self.random = random.Random(seed)
        self.broker = BrokerProcess(folder / "broker")
        self.sources = [Source(f"numbers{index}") for index in range(queues)]
        self.kills: Counter[str] = Counter()
        self._stop = threading.Event()
        self._job: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Harness:
        self.broker.start()
        connection = Connection.open(self.broker.url)
        for source in self.sources:
            connection.channel().declare(source.queue, durable=True)
        connection.close()
        host, port = _address(self.broker.url)
        self.proxy = Proxy(host, port)
        self.proxy.__enter__()
        self.publishers = [
            Publisher(source, lambda: self.broker.url, self._stop) for source in self.sources
        ]
        self.start_job()
        for publisher in self.publishers:
            publisher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        guard.end_processes(**{OURS: str(self.folder)})
        if self._job is not None:
            self._job.wait(20)
        for publisher in self.publishers:
            publisher.join(30)
        self.proxy.__exit__(None, None, None)
        self.broker.kill()

    # -- the job ---------------------------------------------------------------------------------
    def start_job(self) -> None:
        names = ",".join(source.queue for source in self.sources)
        with open(self.folder / "job.log", "ab") as log:
            self._job = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.spark.exactly_once_job", self.master),
                    *(self.proxy.url, names, str(self.folder)),
                ],
                cwd=ROOT,
                env={**os.environ, OURS: str(self.folder), "PYTHONWARNINGS": "ignore"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def rows(self) -> int:
        return len(tables.numbers(self.folder / "table"))

    def await_progress(self, more: int = 1, within_s: float = 300.0) -> None:
        """Return when the table has grown: a kill of something that stands still proves nothing."""
        goal = self.rows() + more
        deadline = time.monotonic() + within_s
        while self.rows() < goal:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no row came in {within_s:g} s; see {self.folder}/job.log")
            time.sleep(0.2)

    # -- what can happen -------------------------------------------------------------------------
    def task(self) -> None:
        """Kill the Python worker of a task."""
        workers = _python_workers(guard.processes(**{OURS: str(self.folder)}))
        if workers:
            _kill(self.random.choice(sorted(workers)))

    def driver(self) -> None:
        """Kill the driver, and start another from the checkpoint."""
        assert self._job is not None
        guard.end_processes(**{OURS: str(self.folder)})
        self._job.wait(20)
        self.start_job()

    def connection(self) -> None:
        """Cut every connection of the job."""
        self.proxy.cut()

    def kill_broker(self) -> None:
        """kill -9 of the broker; it comes back from its data folder."""
        self.broker.kill()
        self.broker.start("--port", str(_address(self.broker.url)[1]))

    def disk(self) -> None:
        """The ledger's disk is full for a moment."""
        (self.folder / "disk-full").touch()
        time.sleep(1.5)
        (self.folder / "disk-full").unlink()

    def executor(self) -> None:
        """Kill an executor of the cluster."""
        found = [
            pid
            for pid in guard.processes(**{guard.SERVER: _run_folder()})
            if b"CoarseGrainedExecutorBackend" in _command(pid)
        ]
        if found:
            _kill(self.random.choice(sorted(found)))

    def disturb(self, what: str) -> None:
        self.kills[what] += 1
        {"broker": self.kill_broker}.get(what, getattr(self, what))()

    # -- the count -------------------------------------------------------------------------------
    def finish(self, within_s: float = 300.0) -> Verdict:
        """Stop publishing, let the job read to the end, and count."""
        self._stop.set()
        for publisher in self.publishers:
            publisher.join(30)
        deadline = time.monotonic() + within_s
        while self._left() or not self._all_confirmed_there():
            if time.monotonic() > deadline:
                break
            time.sleep(0.3)
        self._settle(deadline)
        return self._judge()

    def _left(self) -> int:
        connection = Connection.open(self.broker.url)
        channel = connection.channel()
        left = sum(channel.count(source.queue) for source in self.sources)
        connection.close()
        return left

    def _all_confirmed_there(self) -> bool:
        return all(
            source.confirmed <= set(tables.numbers(self.folder / "table", source.queue))
            for source in self.sources
        )

    def _in_doubt(self) -> int:
        shelves = Ledger.at(str(self.folder / "ledger")).shelves()
        return sum(len(shelf.in_doubt) for shelf in shelves.values())

    def _settle(self, deadline: float) -> None:
        """Segments in doubt are cleared up by the next drain: send each queue one more message."""
        connection = Connection.open(self.broker.url)
        while self._in_doubt() and time.monotonic() < deadline:
            for source in self.sources:
                bulk = Bulk(self.broker.url)
                bulk.publish(source.queue, [source.sent])
                source.confirmed.add(source.sent)
                source.sent += 1
                bulk.close()
            time.sleep(1.0)
        connection.close()
        while not self._all_confirmed_there() and time.monotonic() < deadline:
            time.sleep(0.2)

    def _judge(self) -> Verdict:
        lost = doubled = unordered = in_table = published = 0
        for source in self.sources:
            found = tables.numbers(self.folder / "table", source.queue)
            counts = Counter(found)
            published += len(source.confirmed)
            in_table += len(found)
            lost += len(source.confirmed.difference(counts))
            doubled += sum(count - 1 for count in counts.values())
            unordered += sum(a > b for a, b in pairwise(found))
        return Verdict(
            published, in_table, lost, doubled, unordered, self._left(), self._in_doubt(),
            self.kills,
        )  # fmt: skip


def _address(url: str) -> tuple[str, int]:
    host, _, port = url.rpartition("@")[2].rstrip("/").partition(":")
    return host, int(port)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _python_workers(pids: set[int]) -> set[int]:
    """The children of Spark's daemon: they run tasks."""
    daemons = {pid for pid in pids if b"pyspark.daemon" in _command(pid)}
    return {pid for pid in daemons if _parent(pid) in daemons}


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _run_folder() -> str:
    from tests.support.servers import Run

    return str(Run.current().folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--queues", type=int, default=5)
    parser.add_argument("--cluster", action="store_true", help="on a standalone cluster")
    options = parser.parse_args()
    kinds = ["task", "driver", "connection", "broker", "disk"]
    master = LOCAL
    if options.cluster:
        from tests.support import spark_cluster
        from tests.support.servers import Run

        run = Run.begin()
        master = spark_cluster.cluster().url
        kinds.append("executor")
    print(f"seed {options.seed}", flush=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        Harness(Path(folder), seed=options.seed, queues=options.queues, master=master) as harness,
    ):
        for number in range(options.kills):
            harness.await_progress(harness.random.randrange(1, 400))
            time.sleep(harness.random.random() * 0.5)
            what = kinds[number] if number < len(kinds) else harness.random.choice(kinds)
            harness.disturb(what)
            print(f"{number + 1}: {what}, {harness.rows()} rows", flush=True)
        harness.await_progress()
        verdict = harness.finish()
    if options.cluster:
        run.end()
    print(verdict)
    return 0 if verdict.good else 1


if __name__ == "__main__":
    sys.exit(main())
