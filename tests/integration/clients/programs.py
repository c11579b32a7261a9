"""Programs beside the test: threads and processes that are gone when the test is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel

from tests.support import guard
from tests.support.servers import Run

DEADLINE_S = 30.0
ROOT = Path(__file__).parents[3]


class Consumer:
    """A pika program in a thread: it sets up what it wants to consume, then consumes.

    When the constructor returns, the broker has registered its consumers.
    """

    def __init__(self, url: str, set_up: Callable[[BlockingChannel], Any]) -> None:
        self.ready: Future[Any] = Future()
        self._connection: pika.BlockingConnection
        self._channel: BlockingChannel
        self._thread = threading.Thread(target=self._run, args=(url, set_up), daemon=True)
        self._thread.start()
        self.ready.result(DEADLINE_S)

    def _run(self, url: str, set_up: Callable[[BlockingChannel], Any]) -> None:
        try:
            self._connection = pika.BlockingConnection(pika.URLParameters(url))
            self._channel = self._connection.channel()
            self.ready.set_result(set_up(self._channel))
        except BaseException as error:
            self.ready.set_exception(error)
            raise
        with self._connection:
            self._channel.start_consuming()

    def wait_done(self) -> None:
        """Until it has left ``start_consuming`` by itself."""
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "the consumer still runs"

    def stop(self) -> None:
        """As Ctrl-C ends the tutorials' programs."""
        if self._thread.is_alive() and self._connection.is_open:
            self._connection.add_callback_threadsafe(self._channel.stop_consuming)
        self.wait_done()


class Process:
    """A program in a process of its own, with the processes it starts; prints to a file."""

    def __init__(
        self, command: Sequence[str], output: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self._output = output
        with open(output, "wb") as file:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                # The run's mark: what a broken run leaves behind is swept with its servers.
                env={**os.environ, **(env or {}), guard.SERVER: str(Run.current().folder)},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def printed(self) -> str:
        return self._output.read_text(errors="replace")

    def has_printed(self, words: str) -> bool:
        """Whether it has; an error if it ended without."""
        ended = self._process.poll()
        printed = self.printed
        if words in printed:
            return True
        if ended is not None:
            raise ChildProcessError(f"ended with {ended} before {words!r}:\n{printed}")
        return False

    def terminate(self) -> None:
        self._process.terminate()

    def wait(self, within_s: float = DEADLINE_S) -> int:
        return self._process.wait(within_s)

    def kill(self) -> None:
        """``kill -9`` of the program and of all it started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(DEADLINE_S)


def script(source: str, *arguments: str) -> list[str]:
    """The command that runs a small Python program."""
    return [sys.executable, "-u", "-c", textwrap.dedent(source), *arguments]
