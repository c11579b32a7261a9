"""The shop: publishers, a broker, and Spark that makes tables of what they publish."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from warren.amqp import methods
from warren.cli.scenes.ledger import Ledger
from warren.cli.scenes.link import Link
from warren.cli.scenes.shop_events import COUNTRIES, EXCHANGE, QUEUES, RESULTS, shares
from warren.cli.scenes.shop_picture import Picture
from warren.cli.scenes.shop_reckoning import Found, reckon
from warren.cli.scenes.shop_watch import busy_workers, kill_all, workers
from warren.cli.scenes.stage import Stage
from warren.spark.connect import REMOTE

_PATIENCE_S = 300.0
#: Events, events a second, rows a micro-batch.
_LONG, _SHORT = (60_000, 3_000, 12_000), (9_000, 4_000, 3_000)
#: Shares of the events: when a worker at work is killed, and when any if none was seen.
_KILL_AFTER, _KILL_ANY_AFTER = 0.3, 0.6


class Broken(ConnectionError):
    """A process of the demo ended before its time."""


def play(stage: Stage, url: str, number: int, ledger: Ledger) -> None:
    """Publish, read, kill, compare."""
    count, rate, rows = _SHORT if stage.fast else _LONG
    sent_by = shares(count)
    stage.scene(
        number,
        "A shop's events, into tables",
        f"Publishers ({', '.join(sent_by)}; a process each) send {count:,} events of three types, "
        f"some gzip'd, some broken, into {len(QUEUES)} queues, one a country. Spark reads the "
        "queues into a table for each type and publishes back what was sold. In the middle of it, "
        "one of Spark's worker processes is killed. The same, to copy: examples/shop-pyspark.",
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warren-demo-")))
        link = stack.enter_context(Link(url))
        _declare(link)
        cast = stack.enter_context(_Cast(url, folder))
        picture = Picture(stage, sent_by)
        for name, numbers in sent_by.items():
            share = (numbers.start, numbers.stop, rate / len(sent_by))
            pid = cast.start(name, "shop_publisher", url, name, *share)
            picture.hired(name, pid)
        cast.start("spark", "shop_job", url, folder, rows)
        show = _Show(cast, picture, link, urlsplit(url).port or 5672)
        with stage.live(picture.draw):
            show.run(count)
        stage.say("")
        reckon(stage, number + 1, Found(link, folder, picture), ledger)


def _declare(link: Link) -> None:
    for exchange in (EXCHANGE, RESULTS):
        link.call(
            methods.ExchangeDeclare(exchange=exchange, type="topic"), methods.ExchangeDeclareOk
        )
    bindings = [(name, EXCHANGE, f"{c}.*") for name, c in zip(QUEUES, COUNTRIES, strict=True)]
    for name, exchange, key in [*bindings, (RESULTS, RESULTS, "#")]:
        link.queue(name)
        link.call(
            methods.QueueBind(queue=name, exchange=exchange, routing_key=key), methods.QueueBindOk
        )


class _Cast:
    """The processes of the scene, and what they say, line by line. None outlives the block."""

    def __init__(self, url: str, folder: Path) -> None:
        self._folder = folder
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.said: queue.SimpleQueue[tuple[str, str | None]] = queue.SimpleQueue()

    def __enter__(self) -> _Cast:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.processes.values():
            kill_all(process.pid)
        for process in self.processes.values():
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()

    def start(self, name: str, module: str, *arguments: object) -> int:
        with open(self._folder / f"{name}.log", "w") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", f"warren.cli.scenes.{module}", *map(str, arguments)],
                # The demo has a Spark of its own.
                env={name: value for name, value in os.environ.items() if name != REMOTE},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # Ctrl-C is for the demo, which ends the others
            )
        self.processes[name] = process
        threading.Thread(target=self._listen, args=(name, process), daemon=True, name=name).start()
        return process.pid

    def _listen(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with suppress(ValueError):  # closed while we read: the scene is over
            for line in process.stdout:
                self.said.put((name, line))
        self.said.put((name, None))

    def tell(self, name: str, word: str) -> None:
        pipe = self.processes[name].stdin
        assert pipe is not None
        with suppress(BrokenPipeError):
            print(word, file=pipe, flush=True)

    def last_words(self, name: str) -> str:
        lines = (self._folder / f"{name}.log").read_text(errors="replace").strip().splitlines()
        return "\n".join(lines[-8:])


class _Show:
    """What happens between the start of the processes and the last row."""

    def __init__(self, cast: _Cast, picture: Picture, link: Link, port: int) -> None:
        self._cast, self._picture, self._link, self._port = cast, picture, link, port
        self._publishing = set(picture.published)
        self._done = False
        self._looked_at = 0.0

    def run(self, count: int) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not self._done:
            if time.monotonic() > deadline:
                raise Broken(f"not done after {_PATIENCE_S:.0f} s")
            is_due = self._picture.victim is None and _KILL_AFTER * count < self._picture.read
            with suppress(queue.Empty):
                # A worker is connected for some hundredths of a second: look often.
                self._hear(*self._cast.said.get(timeout=0.001 if is_due else 0.02))
            self._look()
            if is_due and self._picture.read < count:
                self._kill(anybody=self._picture.read > _KILL_ANY_AFTER * count)

    def _hear(self, name: str, line: str | None) -> None:
        if line is None:
            self._ended(name)
        elif name == "spark":
            facts: dict[str, Any] = json.loads(line)
            self._picture.tell(facts)
            self._done = facts["event"] == "done"
        else:
            self._picture.published[name] = int(line)

    def _ended(self, name: str) -> None:
        process = self._cast.processes[name]
        process.wait()
        if process.returncode != 0 or name == "spark":
            raise Broken(f"the process {name} ended:\n{self._cast.last_words(name)}")
        self._publishing.discard(name)
        if not self._publishing:
            self._cast.tell("spark", "finish")

    def _look(self) -> None:
        """How much waits in the queues, a few times a second."""
        now = time.monotonic()
        if now - self._looked_at > 0.25:
            self._looked_at = now
            self._picture.backlog = sum(self._waiting(name) for name in QUEUES)
            self._picture.go_on()

    def _waiting(self, name: str) -> int:
        passive = methods.QueueDeclare(queue=name, passive=True)
        return self._link.call(passive, methods.QueueDeclareOk).message_count

    def _kill(self, *, anybody: bool) -> None:
        """kill -9 a worker that is connected to the broker at this moment, or ``anybody``."""
        spark = self._cast.processes["spark"].pid
        busy = busy_workers(spark, self._port)
        for pid in (busy or (workers(spark) if anybody else []))[:1]:
            with suppress(ProcessLookupError):  # it has just ended: another will come
                os.kill(pid, signal.SIGKILL)
                self._picture.killed(pid, busy=bool(busy))
