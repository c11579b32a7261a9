"""Worker processes: real ones, with a pid, that can be killed for real.

A worker lives no longer than the demo, however that ends: it is killed when its scene is over, and
when there was no time for that, it loses its connection to the broker and goes.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from warren.cli.scenes.link import TIMEOUT_S


@dataclass(frozen=True)
class Event:
    """Something that a worker told."""

    worker: str
    kind: str
    facts: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.facts[name]


class Crew:
    """The workers of a scene and what they tell, in one line of events."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._retired: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        everybody = [*self._processes.values(), *self._retired]
        for process in everybody:
            process.kill()
        for process in everybody:
            process.wait()

    def hire(self, name: str, task: str, *arguments: object) -> int:
        """Start a worker; returns its pid. A former worker of this name has to be dead."""
        command = [sys.executable, "-m", "warren.cli.scenes.worker", task, self._url]
        if name in self._processes:
            self._retired.append(self._processes.pop(name))
        process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            # Ctrl-C is for the demo, which then ends its workers: in an order of its own.
            process_group=0,
        )
        self._processes[name] = process
        threading.Thread(target=self._listen, args=(name, process), daemon=True).start()
        return process.pid

    def kill(self, name: str) -> float:
        """kill -9; returns the time at which it was done."""
        at = time.monotonic()
        os.kill(self._processes[name].pid, signal.SIGKILL)
        return at

    def next(self, timeout_s: float = TIMEOUT_S) -> Event:
        """What a worker tells next.

        Raises:
            TimeoutError: nobody said anything.
            ConnectionError: a worker came to grief.
        """
        try:
            event = self._events.get(timeout=max(0.0, timeout_s))
        except queue.Empty:
            raise TimeoutError(f"the workers were silent for {timeout_s:.0f} s") from None
        if event.kind == "failed":
            raise ConnectionError(f"worker {event.worker}: {event['why']}")
        return event

    def wait_for(self, kind: str, timeout_s: float = TIMEOUT_S) -> Event:
        """Skip what is told until this."""
        while (event := self.next(timeout_s)).kind != kind:
            pass
        return event

    def _listen(self, name: str, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as told:
            for line in told:
                facts = json.loads(line)
                self._events.put(Event(name, facts.pop("kind"), facts))
        self._events.put(Event(name, "gone", {"code": process.wait()}))
