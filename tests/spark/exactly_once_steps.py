"""What the proof of exactly once and the job that it kills tell each other, in files of one folder.

The proof asks to be told when a task comes to a step of its drain (``Order``): the task stops there
until the proof has done what it wants to do, or at once ends processes that it was told. The job
notes which rules it has used (``note``).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

#: Steps at which a task can be met: those of a drain, which has read the ledger when it connects,
#: and two of clearing up.
STEPS = [
    "before connecting",
    "before segment",
    "after segment",
    "before ack",
    "after ack",
    "before settled",
    "after the last row",
]
#: These are come to only when something is in doubt, or may have been forgotten.
CLEARING = ["before clearing", "before cleared"]
#: How often what happened: each line of the job's notes adds to one of them.
RULES = [
    "compared with segments in doubt",
    "dropped, in doubt",
    "compared with settled segments",
    "dropped, settled",
    "written by another attempt first",
    "segments behind the first of a range",
    "read on while Spark had rows",
]
#: This must not happen.
PRUNED = "segments in doubt pruned"
_ORDER, _REACHED, _NOTES = "step-order", "step-reached", "rules"
#: A task that was met waits so long, if nobody ends it.
_MEETING_S = 2.0


class Order:
    """To be told when a task comes to ``step``; ``ends`` dies in the same moment.

    ``detached``: the task's process is to outlive those that started it. (The system ends what is
    stopped when the last of its session that could have it go on is gone.)
    """

    def __init__(
        self, folder: Path, step: str, *, ends: Iterable[int] = (), detached: bool = False
    ) -> None:
        self._order, self._reached = folder / _ORDER, folder / _REACHED
        self._reached.unlink(missing_ok=True)
        hidden = folder / f"{_ORDER}.tmp"
        hidden.write_text(json.dumps({"step": step, "ends": list(ends), "detached": detached}))
        hidden.rename(self._order)

    def await_task(self, within_s: float) -> int | None:
        """The process that is there; None if none came in time, and none will."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError, ValueError):
                return int(self._reached.read_text())
            time.sleep(0.005)
        self._order.unlink(missing_ok=True)
        return None

    def done(self) -> None:
        """Let it go on."""
        self._order.unlink(missing_ok=True)
        self._reached.unlink(missing_ok=True)


def come_to(folder: Path, step: str) -> None:
    """In a task: it is at ``step``."""
    order, reached = folder / _ORDER, folder / _REACHED
    try:
        wanted = json.loads(order.read_text())
    except (FileNotFoundError, ValueError):
        return
    if wanted["step"] != step:
        return
    mine = folder / f"{_ORDER}-{os.getpid()}"
    try:
        order.rename(mine)  # of two tasks, one is met
    except FileNotFoundError:
        return
    for pid in wanted["ends"]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if wanted["detached"]:
        os.setsid()
    mine.write_text(str(os.getpid()))
    mine.rename(reached)
    deadline = time.monotonic() + _MEETING_S
    while reached.exists() and not wanted["ends"] and time.monotonic() < deadline:
        time.sleep(0.005)


def note(folder: Path, rule: str, times: int) -> None:
    """In a task: a rule was used. One short write, so that lines of many processes stay whole."""
    if times:
        with open(folder / _NOTES, "ab", buffering=0) as notes:
            notes.write(f"{rule}\t{times}\n".encode())


def rules_used(folder: Path) -> Counter[str]:
    used = Counter(dict.fromkeys([*RULES, PRUNED], 0))
    if (folder / _NOTES).exists():
        for line in (folder / _NOTES).read_text().splitlines():
            rule, _, times = line.partition("\t")
            used[rule] += int(times)
    return used
