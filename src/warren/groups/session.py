"""One life of a member: a connection, the coordinator it joined with, the claims on it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warren.client.connection import Connection, connect
from warren.errors import ManagementError, WarrenError
from warren.groups.claims import Claims
from warren.groups.coordination.base import (
    Assignment,
    Command,
    Elected,
    Event,
    GroupState,
    Reachable,
    Report,
    Unreachable,
    coordinator_for,
)
from warren.groups.discovery import Discovery
from warren.groups.seat import Seat

if TYPE_CHECKING:
    from warren.groups.listener import Listener

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Place:
    """Where and how a member works: what does not change from one life to the next."""

    url: str
    coordinator: str
    listener: Listener
    discovery: Discovery
    prefetch: Callable[[str], int]
    heartbeat_s: int
    discover_s: float


class Session:
    """Runs a ``Seat`` on a real broker until the connection is lost."""

    def __init__(self, place: Place, seat: Seat) -> None:
        self._place, self._seat = place, seat
        self.ended = asyncio.Event()
        #: Nothing is held and nothing is under way.
        self.empty = asyncio.Event()
        self._connection = self._new_connection("")
        self._coordinator = coordinator_for(place.coordinator, seat.group, self._connection)
        self._claims = Claims(
            seat.member,
            place.listener,
            self._connection,
            prefetch=place.prefetch,
            poke=self.poke,
            more=lambda: self._new_connection(" (more)"),
        )
        self._stopped = False
        self._stopping: asyncio.Task[None] | None = None
        #: The coordinator has us among the members, or had before it went out of reach.
        self._registered = False
        self._unreachable = False
        self._poked: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._said = asyncio.Event()
        self._report: Report | None = None
        self._assignments: dict[str, Assignment] = {}
        self._state: GroupState | None = None
        self._look_again = asyncio.Event()

    # -- life ------------------------------------------------------------------------------------
    async def start(self, *, check_queues: bool = False) -> None:
        """Connect and join the group."""
        await self._connection.open()
        self._connection.on_lost(self._lost)
        try:
            if check_queues:
                await self._place.discovery.check(self._connection)
            await self._coordinator.join(self._seat.member.report(), self._hear)
            self._registered = not self._unreachable
        except BaseException:
            self._silence()
            await self._coordinator.close()
            await self._connection.close(wait=False)
            raise
        self._start(self._speak_loop(), "voice")
        self._start(self._discover_loop(), "discovery")
        self.poke()

    async def stop(self) -> None:
        """Say goodbye and let go of everything that is still there.

        May be called twice, and cancelled: it goes on, and the next call waits for it.
        """
        self._silence()
        if self._stopping is None:
            work, name = self._stop(), f"stop of {self._seat.name}"
            self._stopping = asyncio.create_task(work, name=name)
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        async with AsyncExitStack() as ends:  # each, whatever became of the one before
            ends.push_async_callback(self._connection.close)
            ends.push_async_callback(self._coordinator.leave)
            await self._claims.close()

    def _silence(self) -> None:
        """The seat outlives us: from now on its steps are for the next session to carry out."""
        self._stopped = True
        for handle in (self._poked, self._timer):
            if handle is not None:
                handle.cancel()

    @property
    def connected(self) -> bool:
        return self._connection.state == "open"

    @property
    def joined(self) -> bool:
        """Connected and in the group; a coordinator that goes away later changes nothing."""
        return self.connected and self._registered

    async def finished(self) -> None:
        """Wait until the listener is done with all that it has to let go of."""
        await self._claims.finished()

    def give_back(self, queue: str, reason: str) -> None:
        self._claims.give_back(queue, reason)

    async def command(self, command: Command) -> None:
        await self._coordinator.command(command)

    async def read(self) -> GroupState | None:
        return await self._coordinator.read()

    def _new_connection(self, suffix: str) -> Connection:
        return connect(
            self._place.url,
            name=f"{self._seat.group} {self._seat.name}{suffix}",
            heartbeat_s=self._place.heartbeat_s,
            reconnect=False,
        )

    def _lost(self, error: WarrenError) -> None:
        self._seat.disconnected(str(error), time.monotonic())
        self.poke()
        self.ended.set()
        self.empty.set()

    # -- the pump --------------------------------------------------------------------------------
    def poke(self) -> None:
        """Something happened: see what follows, once, when the loop is done with what it does."""
        if self._poked is None and not self._stopped:
            self._poked = asyncio.get_running_loop().call_soon(self._pump)

    def _hear(self, event: Event) -> None:
        if self.ended.is_set():  # a coordinator that does not go with the connection, such as etcd
            return
        self._seat.hear(event, time.monotonic())
        if isinstance(event, Elected):
            self._look_again.set()
        elif isinstance(event, Unreachable):
            self._unreachable = True
        elif isinstance(event, Reachable):
            self._registered, self._unreachable = True, False
        self.poke()

    def _pump(self) -> None:
        self._poked = None
        now = time.monotonic()
        if self._seat.report_is_due(now):
            self._seat.rates = self._claims.rates()
        output = self._seat.take_output(now)
        for step in output.steps:
            self._claims.carry_out(step)
        self._report = output.report or self._report
        self._assignments.update((each.member, each) for each in output.assignments)
        self._state = output.state or self._state
        if output.report or output.assignments or output.state:
            self._said.set()
        if self._seat.member.idle:
            self.empty.set()
        else:
            self.empty.clear()
        self._set_timer(self._seat.next_deadline())

    def _set_timer(self, deadline: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if deadline is not None:
            delay = max(deadline - time.monotonic(), 0.001)
            self._timer = asyncio.get_running_loop().call_later(delay, self.poke)

    # -- tasks -----------------------------------------------------------------------------------
    async def _speak_loop(self) -> None:
        """Say what there is to say, the newest only: a slow coordinator makes nothing pile up."""
        while True:
            await self._said.wait()
            self._said.clear()
            report, self._report = self._report, None
            assignments, self._assignments = list(self._assignments.values()), {}
            state, self._state = self._state, None
            try:
                if assignments or state:
                    await self._coordinator.publish(assignments, state)
                if report is not None:
                    await self._coordinator.report(report)
            except WarrenError as error:
                log.warning("%s could not tell its group: %s", self._seat.name, error)

    async def _discover_loop(self) -> None:
        """While this member is the dispatcher: ask the broker what queues there are."""
        while True:
            try:
                async with asyncio.timeout(self._place.discover_s):
                    await self._look_again.wait()
            except TimeoutError:
                pass
            self._look_again.clear()
            if self._seat.dispatcher is None:
                continue
            try:
                facts = await self._place.discovery.find(self._connection)
            except (ManagementError, WarrenError) as error:
                log.warning("can't look for the queues of %s: %s", self._seat.group, error)
                continue
            self._seat.queues_are(facts, time.monotonic())
            self.poke()

    def _start(self, work: Coroutine[Any, Any, None], what: str) -> None:
        task = asyncio.create_task(work, name=f"{what} of {self._seat.name}")
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)
