"""``warren broker`` as a process with a data folder: killed, stopped, started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.wire import Connection

SRC = Path(__file__).parents[2] / "src"
COMMAND = [sys.executable, "-m", "warren", "broker", "--port", "0"]
ENVIRONMENT = {
    # asyncio's debug mode writes to stderr what a busy machine makes slow.
    key: value
    for key, value in os.environ.items()
    if not key.startswith("WARREN_") and key != "PYTHONASYNCIODEBUG"
} | {"PYTHONPATH": str(SRC)}


class BrokerProcess:
    """The broker of one data folder, through all of its lives."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.options = options
        self.file = folder / "warren.db"
        self.log = folder.with_name(f"{folder.name}.log")
        self.url = ""
        self._process: subprocess.Popen[str] | None = None
        self._connections: list[Connection] = []

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, *options: str) -> None:
        """Start it, with further options, and wait until it listens."""
        command = [*COMMAND, "--data", str(self.folder), *self.options, *options]
        with open(self.log, "a") as errors:
            self._process = subprocess.Popen(
                command,
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        match = re.match(r"warren broker listens on 127\.0\.0\.1:(\d+) ", line)
        assert match, line + self.log.read_text()
        self.url = f"amqp://guest:guest@127.0.0.1:{match[1]}/"

    def connect(self) -> Connection:
        """A connection; all of them are closed when the broker ends."""
        self._connections.append(Connection.open(self.url))
        return self._connections[-1]

    def kill(self) -> None:
        """kill -9."""
        self.end(signal.SIGKILL)

    def stop(self) -> None:
        """End it as an operator does."""
        assert self.end(signal.SIGTERM) == 0, self.log.read_text()

    def end(self, how: signal.Signals) -> int | None:
        if self._process is None:
            return None
        process, self._process = self._process, None
        process.send_signal(how)
        process.communicate(timeout=20)
        for connection in self._connections:
            connection.wire.close()
        self._connections.clear()
        return process.returncode


@contextmanager
def broker_process(folder: Path, *options: str) -> Iterator[BrokerProcess]:
    """A running broker; it is killed in the end, if it still runs."""
    broker = BrokerProcess(folder, *options)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


def run_refused(folder: Path) -> str:
    """What a broker says that can't start on a folder: one line, no traceback, exit code 2."""
    command = [*COMMAND, "--data", str(folder)]
    done = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, done.stdout) == (2, ""), done
    assert re.fullmatch(r"warren: .+\n", done.stderr), done.stderr
    return done.stderr.removeprefix("warren: ").rstrip("\n")
