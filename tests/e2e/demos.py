"""``warren demo`` in a process, its output to be read, and all that it started to be found."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.guard import end_processes, processes
from tests.support.spark_cluster import QUICK_JAVA

SRC = Path(__file__).parents[2] / "src"
DEMO = (sys.executable, "-m", "warren", "demo")


class Marked:
    """An environment by which a demo and all that it starts can be found."""

    def __init__(self, folder: Path) -> None:
        """``folder``: for the files that one which is killed leaves."""
        self._mark = secrets.token_hex(8)
        self.environment = {
            **os.environ,
            "JDK_JAVA_OPTIONS": QUICK_JAVA,
            "PYTHONPATH": str(SRC),
            "TERM": "xterm-256color",
            "TMPDIR": str(folder),
            "WARREN_DEMO_TEST": self._mark,
        }

    def processes(self) -> set[int]:
        return processes(WARREN_DEMO_TEST=self._mark)

    def end(self) -> None:
        end_processes(WARREN_DEMO_TEST=self._mark)


@contextmanager
def running(marked: Marked, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A demo that plays, its output to be read."""
    with subprocess.Popen(
        [*DEMO, "--plain", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=marked.environment,
    ) as demo:
        yield demo


def read_until(demo: subprocess.Popen[str], words: str) -> None:
    assert demo.stdout is not None
    assert any(words in line for line in demo.stdout), f"the demo ended before {words!r}"
