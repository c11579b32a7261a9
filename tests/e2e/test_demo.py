"""``warren demo`` of the broker as a stranger runs it, and as a stranger ends it."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess

import pytest

from tests.e2e.demos import DEMO, Marked, read_until, running
from tests.support.eventually import eventually

BROKER = ("--scene", "broker")
N = r"([\d,]+)"
RECONCILIATION = re.compile(
    rf"reconciliation: {N} published \+ {N} copies = {N} consumed \+ {N} dead-lettered "
    rf"\+ {N} expired \+ {N} returned; {N} lost, {N} doubled: it adds up"
)


def test_the_demo_adds_up(marked: Marked) -> None:
    with running(marked, *BROKER, "--fast") as demo:
        said = demo.communicate(timeout=50)[0]

    assert demo.returncode == 0, said
    found = RECONCILIATION.search(said)
    assert found is not None, said
    numbers = (int(said.replace(",", "")) for said in found.groups())
    published, copies, *fates, lost, doubled = numbers
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


def rest(terminal: int) -> bytes:
    """What is still to be read, until the other side has been closed."""
    said = b""
    try:
        while data := os.read(terminal, 4096):
            said += data
    except OSError:  # how Linux says that the last one hung up
        pass
    return said
