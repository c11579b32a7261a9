"""What starting any foreign server for a test run has in common.

A server is started by the first test that needs it, once for the run: under xdist the workers
share it. It lives in the run's folder, listens on loopback only, and is gone when the run is.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.support import guard

_RUN, _OWNER = "WARREN_TEST_RUN", "WARREN_TEST_RUN_OWNER"
_children: list[subprocess.Popen[bytes]] = []


class ServerEnded(Exception):
    """A server ended by itself; carries the last lines it wrote."""


@dataclass(frozen=True)
class Run:
    """One test run, seen alike by each of its processes."""

    folder: Path
    owner: int

    @classmethod
    def begin(cls) -> Run:
        """For the process that owns the run; those it starts find the run in their environment."""
        run = cls(
            Path(tempfile.gettempdir(), f"warren-test-{os.getpid()}-{secrets.token_hex(4)}"),
            os.getpid(),
        )
        os.environ[_RUN], os.environ[_OWNER] = str(run.folder), str(run.owner)
        run._take_temporary_files()
        return run

    def _take_temporary_files(self) -> None:
        """What is killed leaves its temporary files: they go with the run, too."""
        # Folders of tests that failed are wanted after it.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
        self.folder.mkdir(mode=0o700)
        place = self.folder / "tmp"
        place.mkdir(mode=0o700)
        os.environ["TMPDIR"] = tempfile.tempdir = str(place)
        # For a session of Spark that says nothing else; Java doesn't know the variable above.
        os.environ["SPARK_SUBMIT_OPTS"] = f"-Djava.io.tmpdir={place}"

    @classmethod
    def current(cls) -> Run:
        return cls(Path(os.environ[_RUN]), int(os.environ[_OWNER]))

    def shared(self, name: str, start: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        """What ``start`` told of the server when the first process of the run started it.

        ``start`` gets a new folder. If it fails, it fails at once for the others too.
        """
        with open(self.folder / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            told = self.folder / f"{name}.json"
            if not told.exists():
                told.write_text(json.dumps(self._start(name, start)))
            answer: dict[str, Any] = json.loads(told.read_text())
        if "failed" in answer:
            pytest.fail(f"{name} did not start: {answer['failed']}", pytrace=False)
        return answer

    def _start(self, name: str, start: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        self.spawn([sys.executable, "-IS", guard.__file__, str(self.folder), str(self.owner)])
        folder = self.folder / name
        (folder / "log").mkdir(parents=True)
        try:
            return start(folder)
        except (OSError, ValueError, AssertionError, ServerEnded) as error:
            return {"failed": f"{type(error).__name__}: {error}"}

    def spawn(
        self, command: Sequence[str], *, env: dict[str, str] | None = None, log: Path | None = None
    ) -> None:
        """Start a process that ends with the run; what it prints goes to ``log``."""
        with open(log or os.devnull, "ab") as output:
            child = subprocess.Popen(
                command,
                env={**(os.environ if env is None else env), guard.SERVER: str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C is for the tests; the servers go after them
            )
        _children.append(child)

    def keep_logs(self, to: Path) -> None:
        """Copy the servers' logs, in place of those of an earlier run."""
        shutil.rmtree(to, ignore_errors=True)
        for log in self.folder.glob("**/log"):
            shutil.copytree(log, to / log.parent.relative_to(self.folder))

    def end(self) -> None:
        """End the servers and remove the folder."""
        guard.sweep(self.folder)
        for child in _children:
            child.wait(10)


def free_ports(count: int) -> list[int]:
    """Ports on loopback that nobody listens on.

    From below the range out of which the system gives ports to outgoing connections: one of
    those could take the port before the server does.
    """
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            sock = socket.socket()
            try:
                sock.bind(("127.0.0.1", random.randrange(11000, 32000)))
            except OSError:
                sock.close()
            else:
                held.append(sock)
        return [sock.getsockname()[1] for sock in held]
    finally:
        for sock in held:
            sock.close()


def missing(what: str, how: str) -> NoReturn:
    """A service is not on this machine: skip at home, fail in CI."""
    words = f"{what} is not installed ({how})"
    if os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(words, pytrace=False)
    pytest.skip(words)
