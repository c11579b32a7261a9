"""A coordinator for members in one process: for tests, and for trying groups out.

``memory://name``: all that use the same name in one process meet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from warren.errors import Fenced, NoSuchGroup
from warren.groups.coordination.base import (
    Assigned,
    Assignment,
    Command,
    Commanded,
    Coordinator,
    Elected,
    Event,
    GroupState,
    Left,
    Report,
    Reported,
)


class _Meeting:
    """The members of one group, in the order in which they came; the first is the dispatcher."""

    def __init__(self) -> None:
        self.members: dict[str, MemoryCoordinator] = {}
        self.reports: dict[str, Report] = {}
        self.state: GroupState | None = None
        self.generation = 0

    @property
    def dispatcher(self) -> MemoryCoordinator | None:
        return next(iter(self.members.values()), None)

    def elect(self) -> None:
        if (chosen := self.dispatcher) is not None:
            chosen.hear(Elected(self.generation, tuple(self.reports.values()), self.state))


_MEETINGS: dict[tuple[str, str], _Meeting] = {}


class MemoryCoordinator(Coordinator):
    """One member's line to the others in the same process."""

    def __init__(self, url: str, group: str, connection: Any = None) -> None:
        super().__init__(url, group, connection)
        self._member: str | None = None
        self._tell: Callable[[Event], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def _meeting(self) -> _Meeting:
        return _MEETINGS.setdefault((self.url, self.group), _Meeting())

    def hear(self, event: Event) -> None:
        """Tell the member, after what it was told before and never from within its own call."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._hear, event)

    def _hear(self, event: Event) -> None:
        if self._tell is not None:
            self._tell(event)

    async def join(self, report: Report, tell: Callable[[Event], None]) -> None:
        meeting = self._meeting
        if report.member in meeting.members:
            raise Fenced(self.group, report.member)
        self._member, self._tell = report.member, tell
        self._loop = asyncio.get_running_loop()
        meeting.members[report.member] = self
        meeting.reports[report.member] = report
        if meeting.dispatcher is self:
            meeting.elect()
        elif meeting.dispatcher is not None:
            meeting.dispatcher.hear(Reported(report))

    async def report(self, report: Report) -> None:
        meeting = self._meeting
        if self._member in meeting.members and meeting.dispatcher is not None:
            meeting.reports[report.member] = report
            meeting.dispatcher.hear(Reported(report))

    async def publish(
        self, assignments: Sequence[Assignment], state: GroupState | None = None
    ) -> None:
        meeting = self._meeting
        if meeting.dispatcher is not self:
            return
        meeting.state = state or meeting.state
        for each in assignments:
            meeting.generation = max(meeting.generation, each.stamp.generation)
            if each.member in meeting.members:
                meeting.members[each.member].hear(Assigned(each))

    async def leave(self) -> None:
        self._go(died=False)

    async def close(self) -> None:
        self._go(died=True)

    async def read(self) -> GroupState | None:
        meeting = _MEETINGS.get((self.url, self.group))
        return None if meeting is None else meeting.state

    async def command(self, command: Command) -> None:
        meeting = _MEETINGS.get((self.url, self.group))
        if meeting is None or meeting.dispatcher is None:
            raise NoSuchGroup(self.group)
        meeting.dispatcher.hear(Commanded(command))

    def _go(self, *, died: bool) -> None:
        member, self._member, self._tell = self._member, None, None
        if member is None:
            return
        meeting = self._meeting
        was_dispatcher = meeting.dispatcher is self
        del meeting.members[member], meeting.reports[member]
        if not meeting.members:
            del _MEETINGS[(self.url, self.group)]
        elif was_dispatcher:
            meeting.elect()
        elif meeting.dispatcher is not None:
            meeting.dispatcher.hear(Left(member, died))
