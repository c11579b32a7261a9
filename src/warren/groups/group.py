"""``Group``: one process's place in a consumer group."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal

from warren.client.backoff import Backoff
from warren.client.delivery import Delivery
from warren.errors import ConfigError, Fenced, GroupError, WarrenError
from warren.groups.causes import Cause
from warren.groups.coordination.base import Command, GroupState, Report
from warren.groups.discovery import Discovery
from warren.groups.dispatcher import Policy
from warren.groups.listener import Listener, Ordered
from warren.groups.member import Claim, Member
from warren.groups.options import check_coordinator, check_listener, check_options
from warren.groups.seat import Seat
from warren.groups.session import Place, Session

log = logging.getLogger(__name__)

#: How long the broker may take to answer when a member leaves, beyond its drain time.
ANSWERS_S = 5.0

_RELEASING = (
    Claim.DRAINING,
    Claim.DRAINING_BACK,
    Claim.RELEASING,
    Claim.RELEASING_BACK,
    Claim.CANCELLING,
)


@dataclass(frozen=True)
class GroupSnapshot:
    """How one member stands: what it holds and what it waits for."""

    group: str
    member: str
    connected: bool
    is_dispatcher: bool
    held: tuple[str, ...]
    #: Assigned and not held yet, with the broker's reason where it refused.
    waiting: Mapping[str, str]
    #: On their way to other members.
    releasing: tuple[str, ...]
    #: Messages a second, by queue.
    rates: Mapping[str, float]
    #: In the group; stays so if the coordinator goes out of reach, for what is held is kept then.
    joined: bool = False
    #: Rebalances that this member decided, whenever it was the dispatcher, by cause.
    rebalances: Mapping[str, int] = field(default_factory=dict)
    #: The whole group, where this member is the dispatcher.
    state: GroupState | None = None


class Group:
    """A place in a group, for as long as the ``async with`` lasts.

    A queue is consumed by one member at a time, whatever happens: the broker sees to that. The
    group sees to it that members hold about the same number of queues, and that the queues of a
    member that has gone are taken over. A lost connection is made good by itself.

    ``queues`` are names and patterns (``orders.*``); ``listener`` is a ``Listener``, or a
    coroutine function that gets one message at a time of each queue. ``member_name`` makes the
    membership static: a member that comes back under its name within ``session_s`` gets its
    queues back, and no others move.

    Raises (on entering):
        ConfigError: an option can't be used.
        ConnectError: the broker can't be reached, or refuses.
        Fenced: another process is a member under this ``member_name``.
    """

    def __init__(
        self,
        url: str,
        name: str,
        queues: Sequence[str],
        *,
        listener: Listener | Callable[[Delivery], Awaitable[None]],
        coordinator: str = "amqp",
        weight: float = 1.0,
        member_name: str | None = None,
        session_s: float = 30.0,
        drain_s: float = 30.0,
        balance: Literal["count", "load"] = "count",
        min_interval_s: float = 3.0,
        load_interval_s: float = 10.0,
        prefetch: int | Callable[[str], int] = 100,
        heartbeat_s: float = 10.0,
        management: str | None = None,
        discover_s: float = 5.0,
    ) -> None:
        _check(name, queues)
        check_listener(listener)
        check_options(
            coordinator=coordinator,
            weight=weight,
            member_name=member_name,
            session_s=session_s,
            drain_s=drain_s,
            balance=balance,
            min_interval_s=min_interval_s,
            load_interval_s=load_interval_s,
            heartbeat_s=heartbeat_s,
            management=management,
            discover_s=discover_s,
        )
        check_coordinator(coordinator, url)
        self.url, self.name = url, name
        self.member_name = member_name or _own_name()
        self.listener = listener if isinstance(listener, Listener) else Ordered(listener)
        self.listener.group = self
        self._place = Place(
            url=url,
            coordinator=url if coordinator == "amqp" else coordinator,
            listener=self.listener,
            discovery=Discovery(queues, url, management),
            prefetch=(lambda _: prefetch) if isinstance(prefetch, int) else prefetch,
            heartbeat_s=beat_s(heartbeat_s),
            discover_s=discover_s,
        )
        identity = Report(
            self.member_name,
            weight=weight,
            static=member_name is not None,
            session_s=session_s if member_name is not None else 0.0,
            where=f"{socket.gethostname()}:{os.getpid()}",
        )
        self._seat = Seat(
            name,
            Member(identity, drain_s=drain_s),
            queues=self._place.discovery.names,
            policy=Policy(balance, min_interval_s, load_interval_s),
            wall_offset_s=time.time() - time.monotonic(),
        )
        #: How long a queue that is given away may take to finish what it is doing.
        self.drain_s = drain_s
        self._session: Session | None = None
        self._task: asyncio.Task[None] | None = None
        self._leaving = False
        self._ending: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    # -- life ------------------------------------------------------------------------------------
    async def __aenter__(self) -> Group:
        session = Session(self._place, self._seat)
        await session.start(check_queues=bool(self._place.discovery.patterns))
        self._session = session
        self._task = asyncio.create_task(self._live_loop(), name=f"group {self.name}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.leave()

    async def leave(self) -> None:
        """Give every queue away in order, say goodbye, close.

        May be called twice: the second call waits for the first. When the first is cancelled, what
        is still running is lost, and the member leaves all the same.
        """
        if self._task is None:
            return
        if self._leaving:
            await self._ended.wait()
            return
        self._leaving = True
        self._seat.leave(time.monotonic())
        try:
            if (session := self._session) is not None:
                session.poke()
                await self._given_away(session)
            await asyncio.shield(self._end())
        except asyncio.CancelledError:
            # Not for ever: a thread that runs on keeps its queue, and us.
            await asyncio.wait({self._end()}, timeout=ANSWERS_S)
            raise

    def _end(self) -> asyncio.Task[None]:
        """Begin to let go of everything, once; a task of its own, so that nothing cuts it short."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._let_go(), name=f"end of {self.member_name}")
        return self._ending

    async def _let_go(self) -> None:
        try:
            assert self._task is not None
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            if self._session is not None:
                await self._session.stop()
        finally:
            self._ended.set()

    async def _given_away(self, session: Session) -> None:
        try:
            async with asyncio.timeout(self.drain_s + ANSWERS_S):
                await session.empty.wait()
        except TimeoutError:
            member = self._seat.member
            if busy := member.queues_in(Claim.RELEASING):
                names = ", ".join(busy)
                log.warning("%s can't leave yet: still at work on %s", self.member_name, names)
                # Alive until then: it may be the dispatcher, and others join and die meanwhile.
                await session.finished()
            if not member.idle:
                log.warning("%s leaves without having released all", self.member_name)

    async def _live_loop(self) -> None:
        """Come back after every loss."""
        while self._session is not None:
            await self._session.ended.wait()
            log.warning("%s has lost its connection and comes back", self.member_name)
            try:
                await self._session.stop()
            except WarrenError as error:  # what is left of it ends with its sockets
                log.warning("%s: %s", self.member_name, error)
            self._session = await self._next_session()

    async def _next_session(self) -> Session:
        backoff, attempt = Backoff(first_s=0.05, most_s=5.0, jitter=0.5), 0
        while True:
            await asyncio.sleep(backoff.delay_s(attempt))
            session = Session(self._place, self._seat)
            try:
                await session.start()
            except Fenced as error:
                log.error("%s", error)  # noqa: TRY400 - the sentence says it all
            except WarrenError as error:
                log.warning("%s can't come back yet: %s", self.member_name, error)
            else:
                return session
            attempt += 1

    # -- what one can ask and order --------------------------------------------------------------
    def snapshot(self) -> GroupSnapshot:
        """How this member stands, now and without asking anybody."""
        member, dispatcher = self._seat.member, self._seat.dispatcher
        waiting = member.queues_in(Claim.CLAIMING, Claim.WAITING)
        return GroupSnapshot(
            group=self.name,
            member=self.member_name,
            connected=self._session is not None and self._session.connected,
            is_dispatcher=dispatcher is not None,
            joined=self._session is not None and self._session.joined,
            held=tuple(member.queues_in(Claim.HELD)),
            waiting={queue: member.reason_of(queue) for queue in waiting},
            releasing=tuple(member.queues_in(*_RELEASING)),
            rates=dict(self._seat.rates),
            rebalances={cause.value: self._seat.rebalances[cause] for cause in Cause},
            state=dispatcher.state() if dispatcher is not None else None,
        )

    async def describe(self) -> GroupState | None:
        """The whole group, as its dispatcher sees it; None if there is none at the moment."""
        if self._seat.dispatcher is not None:
            return self._seat.dispatcher.state()
        return await self._joined.read()

    async def drain(self, member: str) -> None:
        """Empty a member: its queues go to the others, and it gets none until ``undrain``."""
        await self._joined.command(Command("drain", member=member))

    async def undrain(self, member: str) -> None:
        await self._joined.command(Command("undrain", member=member))

    async def pause(self, queue: str) -> None:
        """Have nobody work on a queue until ``resume``; it keeps its place in the balance."""
        await self._joined.command(Command("pause", queue=queue))

    async def resume(self, queue: str) -> None:
        await self._joined.command(Command("resume", queue=queue))

    async def move(self, queue: str, member: str) -> None:
        """Give a queue to a member, and another of its queues away if it has too many then."""
        await self._joined.command(Command("move", member=member, queue=queue))

    def give_back(self, queue: str, reason: str, *, retry_s: float = 1.0) -> None:
        """For listeners: all that is not acknowledged goes back to the queue, in order.

        The queue stays this member's and is claimed anew after ``retry_s``.
        """
        if self._session is not None:
            asyncio.get_running_loop().call_later(retry_s, self._session.give_back, queue, reason)

    @property
    def _joined(self) -> Session:
        if self._session is None or not self._session.connected:
            raise GroupError(f"{self.member_name} is not connected to its group at the moment")
        return self._session


def beat_s(heartbeat_s: float) -> int:
    """The heartbeat that a broker is asked for, so that it gives a hung member up in time.

    It gives a silent peer up after two to three of its own heartbeats, and they are whole seconds:
    1 s is the least.
    """
    return max(1, int(heartbeat_s / 2))


def _check(name: str, queues: Sequence[str]) -> None:
    if not name or len(name.encode()) > 100:
        raise ConfigError("group", f"'{name}': a name of 1 to 100 bytes is needed")
    if isinstance(queues, str):
        raise ConfigError("queues", f"a list is needed, such as ['{queues}']")


def _own_name() -> str:
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{secrets.token_hex(3)}"
