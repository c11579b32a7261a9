"""Ends the servers of a test run when the run is over, however it ended.

The run ends them itself when it can. For the times when it can't (kill -9, a crash), this file
also runs as a small process beside the servers that waits for the run's process to go.

A process belongs to a run when its environment says so: that holds for whatever a server starts
in its turn, and needs no list of pids that a crash could leave half written.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path

SERVER = "WARREN_TEST_SERVER"


def processes(**environment: str) -> set[int]:
    """Pids of live processes that were started with these environment variables."""
    wanted = {f"{key}={value}".encode() for key, value in environment.items()}
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:  # gone meanwhile, or somebody else's
            continue
        if wanted <= set(variables):
            found.add(int(entry.name))
    return found


def end_processes(within_s: float = 10.0, **environment: str) -> None:
    """Kill the processes started with these variables and return when there are none."""
    deadline = time.monotonic() + within_s
    while found := processes(**environment):
        if time.monotonic() > deadline:
            raise TimeoutError(f"still running after SIGKILL: {sorted(found)}")
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.01)


def sweep(folder: Path) -> None:
    """End every server of the run and remove its folder."""
    end_processes(**{SERVER: str(folder)})
    shutil.rmtree(folder, ignore_errors=True)


def main(folder: str, owner: str) -> None:
    try:
        gone = os.pidfd_open(int(owner))
    except ProcessLookupError:
        pass
    else:
        select.select([gone], [], [])
    sweep(Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
