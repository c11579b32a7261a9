"""Proof that a consumer group did what it promises, from what its handlers really did.

Every member writes a line when it begins with a message and one when it has ended; who publishes
writes what was sent and what was confirmed; who disturbs writes whom it killed, stopped or cut.
``check_group`` then looks at nothing else::

    with GroupLog(folder / "worker-1.log", "worker-1") as log:
        with log.working(queue, number, redelivered=message.redelivered):
            ...

    check_group(read_group_log(folder)).raise_for_faults()

Times are of ``time.monotonic``, which all processes of one Linux machine share.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Literal, get_args

from warren.testing.group_check import Fault, GroupFaults, Line, Phase, Verdict, check_group

__all__ = [
    "Fault",
    "GroupFaults",
    "GroupLog",
    "Line",
    "Phase",
    "Verdict",
    "check_group",
    "read_group_log",
]

Disturbance = Literal["killed", "stopped", "continued", "cut"]


class GroupLog:
    """One process's part of the log. A line is in the file before its method returns."""

    def __init__(self, file: Path, member: str = "") -> None:
        self.member = member
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def __enter__(self) -> GroupLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._file)

    def write(self, *lines: Line) -> None:
        """Append lines, all with one system call: a process that is killed tears one at most."""
        text = "".join(f"{json.dumps(_short(line), separators=(',', ':'))}\n" for line in lines)
        os.write(self._file, text.encode())

    @contextmanager
    def working(self, queue: str, number: int, *, redelivered: bool) -> Iterator[None]:
        """Work on a message; an end is written only if the block does not raise."""
        begin = Line(time.monotonic(), "begin", self.member, queue, number, redelivered)
        self.write(begin)
        yield
        self.write(Line(time.monotonic(), "end", self.member, queue, number))

    def sent(self, queue: str, numbers: Iterable[int]) -> None:
        """Before they are published: from now on they may be seen."""
        now = time.monotonic()
        self.write(*(Line(now, "sent", "", queue, number) for number in numbers))

    def confirmed(self, queue: str, numbers: Iterable[int]) -> None:
        """The broker has them: from now on they may not be lost."""
        now = time.monotonic()
        self.write(*(Line(now, "confirmed", "", queue, number) for number in numbers))

    @contextmanager
    def disturbing(self, how: Disturbance, member: str = "") -> Iterator[None]:
        """While a member is killed, stopped, continued or cut off; all of them if not named.

        The end of the block is when it is done; of a cut, when the member must have noticed.
        """
        self.write(Line(time.monotonic(), how, member))
        try:
            yield
        finally:
            self.write(Line(time.monotonic(), "over", member))


def read_group_log(folder: Path) -> list[Line]:
    """All lines of all files in a folder, by time. A torn last line is passed over."""
    lines: list[Line] = []
    for file in sorted(folder.glob("*.log")):
        for text in file.read_bytes().split(b"\n")[:-1]:
            at, phase, *rest = json.loads(text)
            assert phase in get_args(Phase), phase
            lines.append(Line(at, phase, *rest))
    lines.sort(key=lambda line: line.at)
    return lines


def _short(line: Line) -> list[object]:
    """Its fields as a list, without those at the end that say nothing."""
    values: list[object] = [line.at, line.phase, line.member, line.queue, line.number]
    if line.redelivered:
        return [*values, True]
    return values if line.queue else values[:3]
