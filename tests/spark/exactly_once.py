"""The proof of exactly once: load, random kills, and a count at the end.

    python -m tests.spark.exactly_once --kills 100 --seed 1
    python -m tests.spark.exactly_once --broker rabbitmq-cluster --cluster

Publishers send numbered messages to several queues, with confirms, while a Spark job writes them
to a table, and one after another is killed: the Python worker of a task, an executor (on a Spark
cluster), the driver, the connections, the broker (kill -9, its queues are durable) or a node of a
cluster of brokers, and for a while the disk refuses to take a segment. At the end every number that
was confirmed must be in the table once, in the order of its queue, nothing must be left in the
queues and nothing in doubt.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from tests.spark import exactly_once_load as load
from tests.spark.exactly_once_brokers import TARGETS, Target, Warren
from tests.spark.exactly_once_load import Publisher, Source
from tests.spark.tables import GrowingTable
from tests.support import guard
from tests.support.bulk import Bulk
from tests.support.eventually import eventually
from tests.support.proxy import Proxy
from tests.support.servers import Run
from tests.support.spark_cluster import quick_home
from warren.cli.scenes.shop_watch import connected
from warren.spark.ledger.ledger import Ledger

ROOT = Path(__file__).parents[2]
OURS = "WARREN_EXACTLY_ONCE"
LOCAL = "local[2,4]"
#: Messages that may wait in the queues.
BACKLOG = 15_000


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


class Harness:
    """A broker, proxies before it, a Spark job, publishers; and what can be done to them."""

    def __init__(
        self, folder: Path, *, seed: int, queues: int = 3, master: str = LOCAL,
        target: Target | None = None,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.master = master
        self.random = random.Random(seed)
        self.target = target or Warren(folder)
        self.sources = [Source(f"numbers-{seed}-{index}") for index in range(queues)]
        self.table = GrowingTable(folder / "table")
        self.kills: Counter[str] = Counter()
        self.proxies: list[Proxy] = []
        self.publishers: list[Publisher] = []
        self._stop = threading.Event()
        self._job: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Harness:
        self.target.start()
        connection = load.connected(self.target.urls)
        for source in self.sources:
            connection.channel().declare(
                source.queue, durable=True, arguments=self.target.arguments
            )
        connection.close()
        for url in self.target.urls:
            parts = urlsplit(url)
            assert parts.hostname is not None
            assert parts.port is not None
            self.proxies.append(Proxy(parts.hostname, parts.port).__enter__())
        self.start_job()
        for source in self.sources:
            self.publishers.append(Publisher(source, self.target.urls, self._stop, self._room))
            self.publishers[-1].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._end_job()
        for publisher in self.publishers:
            publisher.join(30)
        for proxy in self.proxies:
            proxy.__exit__(None, None, None)
        self.target.end()

    # -- the job ---------------------------------------------------------------------------------
    def start_job(self) -> None:
        names = ",".join(source.queue for source in self.sources)
        uris = ",".join(proxy.url for proxy in self.proxies)
        with open(self.folder / "job.log", "ab") as log:
            self._job = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.spark.exactly_once_job", self.master),
                    *(uris, names, str(self.folder)),
                ],
                cwd=ROOT,
                env={
                    **os.environ,
                    OURS: str(self.folder),
                    "PYTHONWARNINGS": "ignore",
                    "SPARK_HOME": quick_home(self.folder),
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _room(self) -> bool:
        """No more is published than is read in good time, however busy the machine is."""
        return sum(source.sent for source in self.sources) < self.table.last_count + BACKLOG

    def _end_job(self) -> None:
        guard.end_processes(**{OURS: str(self.folder)})
        if self._job is not None:
            self._job.wait(20)

    def await_progress(self, more: int = 1, within_s: float = 300.0) -> None:
        """Return when the table has grown: a kill of something that stands still proves nothing."""
        goal = self.table.count() + more
        deadline = time.monotonic() + within_s
        while self.table.count() < goal:
            if time.monotonic() > deadline:
                tail = (self.folder / "job.log").read_text(errors="replace")[-3000:]
                raise TimeoutError(f"no row came in {within_s:g} s; the job's last words: {tail}")
            time.sleep(0.2)

    def _workplaces(self) -> set[int]:
        """Processes of the job: its driver's, or of the cluster's executors."""
        if self.master.startswith("local"):
            return guard.processes(**{OURS: str(self.folder)})
        return guard.processes(**{guard.SERVER: str(Run.current().folder)})

    def _kill_one(self, find: Callable[[set[int]], list[int]]) -> None:
        found = eventually(lambda: find(self._workplaces()), within_s=120, every_s=0.01)
        load.kill(self.random.choice(found))

    # -- what can happen -------------------------------------------------------------------------
    def task(self) -> None:
        """Kill the Python worker of a task that is at its queues: others are idle."""
        self._kill_one(self._draining)

    def _draining(self, pids: set[int]) -> list[int]:
        workers = load.python_workers(pids)
        return [pid for proxy in self.proxies for pid in connected(workers, proxy.port)]

    def executor(self) -> None:
        """Kill an executor of the cluster."""
        self._kill_one(load.executors)

    def driver(self) -> None:
        """Kill the driver, and start another from the checkpoint."""
        self._end_job()
        self.start_job()

    def connection(self) -> None:
        """Cut every connection of the job, while a task has one: the driver always does."""
        eventually(lambda: self._draining(self._workplaces()), within_s=120, every_s=0.01)
        for proxy in self.proxies:
            proxy.cut()

    def broker(self) -> None:
        """kill -9 of the broker, or of one of its nodes; it comes back from its data folder."""
        self.target.kill(self.random)

    node = broker

    def disk(self) -> None:
        """The ledger's disk is full until it has refused a segment."""
        full, refused = self.folder / "disk-full", self.folder / "disk-refused"
        refused.unlink(missing_ok=True)
        full.touch()
        eventually(refused.exists, within_s=120)
        full.unlink()

    @property
    def kinds(self) -> list[str]:
        """What can be killed here."""
        on_cluster = [] if self.master.startswith("local") else ["executor"]
        return ["task", *on_cluster, "driver", "connection", self.target.kind, "disk"]

    def disturb(self, what: str) -> None:
        getattr(self, what)()
        self.kills[what] += 1

    # -- the count -------------------------------------------------------------------------------
    def finish(self, patience_s: float = 180.0) -> Verdict:
        """Stop publishing, let the job read to the end, and count."""
        self._stop.set()
        for publisher in self.publishers:
            publisher.join(30)
        self._await_all(patience_s)
        self._settle(patience_s)
        self._await_all(patience_s)
        return self._judge()

    def _await_all(self, patience_s: float) -> None:
        """Return when all is in the table, or when nothing more comes."""
        rows, deadline = -1, time.monotonic() + patience_s
        while time.monotonic() < deadline:
            confirmed = sum(len(source.confirmed) for source in self.sources)
            if self.table.count() >= confirmed and not self._left() and self._all_there():
                return
            if self.table.last_count > rows:
                rows, deadline = self.table.last_count, time.monotonic() + patience_s
            time.sleep(0.3)

    def _left(self) -> int:
        connection = load.connected(self.target.urls)
        channel = connection.channel()
        left = sum(channel.count(source.queue) for source in self.sources)
        connection.close()
        return left

    def _all_there(self) -> bool:
        found = self.table.numbers()
        return all(
            source.confirmed.issubset(found.get(source.queue, ())) for source in self.sources
        )

    def _in_doubt(self) -> int:
        shelves = Ledger.at(str(self.folder / "ledger")).shelves()
        return sum(len(shelf.in_doubt) for shelf in shelves.values())

    def _settle(self, patience_s: float) -> None:
        """Segments in doubt are cleared up by the next drain: send each queue one more message."""
        deadline = time.monotonic() + patience_s
        while self._in_doubt() and time.monotonic() < deadline:
            for publisher in self.publishers:
                link = Bulk(self.random.choice(self.target.urls))
                publisher.publish(link, 1)
                link.close()
            time.sleep(1.0)

    def _judge(self) -> Verdict:
        lost = doubled = unordered = in_table = published = 0
        table = self.table.numbers()
        for source in self.sources:
            found = table.get(source.queue, [])
            counts = Counter(found)
            published += len(source.confirmed)
            in_table += len(found)
            lost += len(source.confirmed.difference(counts))
            doubled += sum(count - 1 for count in counts.values())
            unordered += _unordered(source, found)
        return Verdict(
            published, in_table, lost, doubled, unordered, self._left(), self._in_doubt(),
            self.kills,
        )  # fmt: skip


def _unordered(source: Source, found: list[int]) -> int:
    """How often a number comes behind a larger one; each place is told."""
    swapped = [(a, b) for a, b in pairwise(found) if a > b]
    for a, b in swapped:
        known = "both confirmed" if {a, b} <= source.confirmed else "not both confirmed"
        print(f"{source.queue}: {b} comes behind {a} ({known})", flush=True)
    return len(swapped)


def soak(harness: Harness, kills: int, kinds: list[str]) -> Verdict:
    """Kill each kind once, then at random; and count."""
    for number in range(kills):
        harness.await_progress(harness.random.randrange(1, 400))
        time.sleep(harness.random.random() * 0.5)
        what = kinds[number] if number < len(kinds) else harness.random.choice(kinds)
        harness.disturb(what)
        print(f"{number + 1}: {what}, {harness.table.count()} rows", flush=True)
    harness.await_progress()
    return harness.finish()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--queues", type=int, default=5)
    parser.add_argument("--broker", choices=TARGETS, default="warren")
    parser.add_argument("--cluster", action="store_true", help="Spark on a standalone cluster")
    parser.add_argument("--only", default="", help="kinds of kills, separated by commas")
    options = parser.parse_args()
    run = Run.begin()
    try:
        return _prove(options)
    finally:
        run.end()


def _prove(options: argparse.Namespace) -> int:
    from tests.support import spark_cluster

    master = spark_cluster.cluster().url if options.cluster else LOCAL
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        target = TARGETS[options.broker](Path(folder))
        settings = {"seed": options.seed, "queues": options.queues, "master": master}
        with Harness(Path(folder), target=target, **settings) as harness:
            kinds = [kind for kind in options.only.split(",") if kind] or harness.kinds
            verdict = soak(harness, options.kills, kinds)
    print(verdict)
    return 0 if verdict.good else 1


if __name__ == "__main__":
    sys.exit(main())
