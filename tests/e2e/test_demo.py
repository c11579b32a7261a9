"""``warren demo`` as a stranger runs it, and as a stranger ends it."""

from __future__ import annotations

import os
import pty
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.guard import end_processes, processes

SRC = Path(__file__).parents[2] / "src"
DEMO = (sys.executable, "-m", "warren", "demo")
BROKER = ("--scene", "broker")
RECONCILIATION = re.compile(
    r"reconciliation: (\d+) published \+ (\d+) copies = (\d+) consumed \+ (\d+) dead-lettered "
    r"\+ (\d+) expired \+ (\d+) returned; (\d+) lost, (\d+) doubled: it adds up"
)

SHOP = re.compile(
    r"reconciliation: (\d+) published = (\d+) in orders \+ (\d+) in payments \+ (\d+) in "
    r"shipments \+ (\d+) quarantined; (\d+) lost, (\d+) doubled, (\d) worker killed: it adds up"
)


class Marked:
    """An environment by which a demo and all that it starts can be found."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(8)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(SRC),
            "TERM": "xterm-256color",
            "WARREN_DEMO_TEST": self._mark,
        }

    def processes(self) -> set[int]:
        return processes(WARREN_DEMO_TEST=self._mark)

    def end(self) -> None:
        end_processes(WARREN_DEMO_TEST=self._mark)


@pytest.fixture
def marked() -> Iterator[Marked]:
    marked = Marked()
    yield marked
    marked.end()


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


def test_the_demo_adds_up(marked: Marked) -> None:
    with running(marked, *BROKER, "--fast") as demo:
        said = demo.communicate(timeout=50)[0]

    assert demo.returncode == 0, said
    found = RECONCILIATION.search(said)
    assert found is not None, said
    published, copies, *fates, lost, doubled = map(int, found.groups())
    assert published + copies == sum(fates)
    assert (lost, doubled) == (0, 0)
    assert min(published, copies, *fates) > 0  # each has been shown
    assert "\x1b" not in said
    assert not marked.processes()


@pytest.mark.parametrize("scene", range(1, 7))
def test_ctrl_c_at_any_moment_ends_it_cleanly(marked: Marked, scene: int) -> None:
    with running(marked, *BROKER, "--fast") as demo:
        read_until(demo, f"{scene} ·")
        demo.send_signal(signal.SIGINT)
        said = demo.communicate(timeout=30)[0]

    assert demo.returncode == 130 or (scene == 6 and demo.returncode == 0)  # over already
    assert "Traceback" not in said
    eventually(lambda: not marked.processes())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_the_demo(marked: Marked, number: signal.Signals) -> None:
    with running(marked, *BROKER) as demo:
        read_until(demo, "3 ·")
        eventually(lambda: len(marked.processes()) == 3)  # the demo and two workers
        demo.send_signal(number)
        demo.communicate(timeout=30)

    eventually(lambda: not marked.processes())


def test_ctrl_c_on_a_terminal_gives_the_cursor_back(marked: Marked) -> None:
    terminal, theirs = pty.openpty()
    with subprocess.Popen(
        [*DEMO, *BROKER, "--fast"], stdout=theirs, stderr=theirs, env=marked.environment
    ) as demo:
        os.close(theirs)
        said = b""
        while b"\x1b[?25l" not in said:  # a live picture hides the cursor
            said += os.read(terminal, 4096)
        demo.send_signal(signal.SIGINT)
        said += rest(terminal)
    os.close(terminal)

    assert demo.returncode == 130
    assert said.rindex(b"\x1b[?25h") > said.rindex(b"\x1b[?25l")
    assert b"Traceback" not in said


# -- the shop, with Spark -------------------------------------------------------------------------
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(420)
def test_the_shop_adds_up_although_a_worker_is_killed(marked: Marked) -> None:
    with running(marked, "--fast") as demo:
        said = demo.communicate(timeout=400)[0]

    assert demo.returncode == 0, said
    found = SHOP.search(said)
    assert found is not None, said
    published, *tables, lost, doubled, _ = map(int, found.groups())
    assert published == sum(tables)
    assert (lost, doubled) == (0, 0)
    assert min(published, *tables) > 0
    assert "rows/s" in said
    assert "Traceback" not in said
    eventually(lambda: not marked.processes(), within_s=20)


@pytest.mark.spark
@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_of_the_shop_outlives_the_demo(marked: Marked, number: signal.Signals) -> None:
    with running(marked, "--fast") as demo:
        read_until(demo, "1 ·")
        eventually(lambda: len(marked.processes()) >= 4, 60)  # demo, publisher, Spark and its JVM
        demo.send_signal(number)
        said = demo.communicate(timeout=30)[0]

    assert "Traceback" not in said
    eventually(lambda: not marked.processes(), within_s=60)


def rest(terminal: int) -> bytes:
    """What is still to be read, until the other side has been closed."""
    said = b""
    try:
        while data := os.read(terminal, 4096):
            said += data
    except OSError:  # how Linux says that the last one hung up
        pass
    return said
