"""What the proof of exactly once is played on: a broker behind proxies, a Spark job, publishers."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from tests.spark import exactly_once_load as load
from tests.spark.exactly_once_brokers import Target
from tests.spark.exactly_once_load import Publisher, Source
from tests.spark.tables import GrowingTable
from tests.support import guard
from tests.support.proxy import Proxy
from tests.support.servers import Run
from tests.support.spark_cluster import quick_home
from warren.cli.scenes.shop_watch import connected

ROOT = Path(__file__).parents[2]
OURS = "WARREN_EXACTLY_ONCE"
#: Messages that may wait in the queues.
BACKLOG = 15_000
#: Messages of a segment at most, chosen anew for each job: a range has one, a few or many of them.
PREFETCH = [20_000, 400, 60]
#: Soon enough to notice a frozen connection, late enough for a busy machine.
HEARTBEAT_S = 8


class Stage:
    """All of it; begins when it is entered."""

    def __init__(
        self, folder: Path, *, seed: int, queues: int, master: str, target: Target
    ) -> None:
        self.folder, self.master, self.target = folder, master, target
        self.random = random.Random(seed)
        kinds = target.queues
        self.sources = [
            Source(f"numbers-{seed}-{index}", kinds[index % len(kinds)]) for index in range(queues)
        ]
        self.table = GrowingTable(folder / "table")
        self.proxies: list[Proxy] = []
        self.publishers: list[Publisher] = []
        self._stop = threading.Event()
        self._job: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Stage:
        self.target.start()
        connection = load.connected(self.target.urls)
        for source in self.sources:
            connection.channel().declare(
                source.queue, durable=True, arguments=source.kind.arguments
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
        self.end_job()
        for publisher in self.publishers:
            publisher.join(30)
        for proxy in self.proxies:
            proxy.__exit__(None, None, None)
        self.target.end()

    # -- publishers ------------------------------------------------------------------------------
    def stop_publishing(self) -> None:
        self._stop.set()
        for publisher in self.publishers:
            publisher.join(30)

    def _room(self) -> bool:
        """No more is published than is read in good time, however busy the machine is."""
        sent = sum(source.sent for source in self.sources)
        # Whoever waits for a task to kill does not look at the table meanwhile.
        return sent < self.table.last_count + BACKLOG or sent < self.table.count() + BACKLOG

    # -- the job ---------------------------------------------------------------------------------
    @property
    def is_local(self) -> bool:
        return self.master.startswith("local")

    def start_job(self) -> None:
        names = ",".join(source.queue for source in self.sources)
        uris = ",".join(f"{proxy.url}?heartbeat={HEARTBEAT_S}" for proxy in self.proxies)
        prefetch = self.random.choice(PREFETCH)
        with open(self.folder / "job.log", "ab") as log:
            self._job = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.spark.exactly_once_job", self.master),
                    *(uris, names, str(self.folder), str(prefetch)),
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

    def end_job(self, but: int | None = None) -> None:
        """Kill the job's processes, ``but`` one of them perhaps."""
        deadline = time.monotonic() + 10
        while (found := guard.processes(**{OURS: str(self.folder)}) - {but}) and but:
            assert time.monotonic() < deadline, f"still running: {sorted(found)}"
            for pid in found:
                load.kill(pid)
            time.sleep(0.01)
        if but is None:
            guard.end_processes(**{OURS: str(self.folder)})
        if self._job is not None:
            self._job.wait(20)

    def last_words(self) -> str:
        return (self.folder / "job.log").read_text(errors="replace")[-3000:]

    def await_progress(self, more: int = 1, within_s: float = 300.0) -> None:
        """Return when the table has grown: a kill of something that stands still proves nothing."""
        goal = self.table.count() + more
        deadline = time.monotonic() + within_s
        while self.table.count() < goal:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"no row came in {within_s:g} s; the job's last words: {self.last_words()}"
                )
            time.sleep(0.2)

    def workplaces(self) -> set[int]:
        """Processes of the job: its driver's, or of the cluster's executors."""
        if self.is_local:
            return guard.processes(**{OURS: str(self.folder)})
        return guard.processes(**{guard.SERVER: str(Run.current().folder)})

    def draining(self) -> list[int]:
        """The Python workers of tasks that are at their queues: others are idle."""
        workers = load.python_workers(self.workplaces())
        return [pid for proxy in self.proxies for pid in connected(workers, proxy.port)]
