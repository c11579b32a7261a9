"""Carries out at the broker what ``member.py`` decides: claims, drains and releases queues."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warren.client.connection import Connection
from warren.client.kinds import queue_kind
from warren.errors import AccessRefused, NotFound, Refusal, WarrenError
from warren.groups.holding import Holding
from warren.groups.listener import is_own_failure
from warren.groups.member import Do, Member, Step
from warren.groups.spares import Spares

if TYPE_CHECKING:
    from warren.groups.listener import Listener

log = logging.getLogger(__name__)

#: Queues, a channel each, on one connection; brokers allow 2,047 channels by default.
ROOM = 2_000
#: Channels to leave to others: on the first connection a coordinator has its own and a dispatcher
#: looks for queues and wills; on each, what kind a queue is may have to be found out.
RESERVE_FIRST, RESERVE = 16, 2
#: After so many refusals in a row it is worth asking whether the queue takes no exclusive
#: consumer at all, because it has a single active one. Before, its holder is just going.
ASK_AFTER = 3
#: Before a queue is claimed anew whose listener failed over a message: it may do so again.
RETRY_S = 1.0
#: A rate is the mean of about this many seconds.
RATE_S = 10.0


class Claims:
    """The queues of one member on one connection (or on more, if there are very many)."""

    def __init__(
        self,
        member: Member,
        listener: Listener,
        connection: Connection,
        *,
        prefetch: Callable[[str], int],
        poke: Callable[[], None],
        more: Callable[[], Connection],
    ) -> None:
        self._member, self._listener, self._poke = member, listener, poke
        self._connections, self._more = [connection], more
        self._prefetch = prefetch
        self._growing = asyncio.Lock()
        self._spares = Spares(self._room)
        self._holdings: dict[str, Holding] = {}
        #: The steps of each queue that have not ended, in their order.
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        #: Those that end something: not to be cut short.
        self._endings: set[asyncio.Task[None]] = set()
        self._refusals: dict[str, int] = {}
        self._single_active: set[str] = set()
        self._rates: dict[str, float] = {}
        self._counted: dict[str, tuple[Holding, int]] = {}
        self._counted_at = time.monotonic()

    def carry_out(self, step: Step) -> None:
        """Start with a step; steps of one queue come one after the other."""
        do = {
            Do.CLAIM: self._claim,
            Do.WORK: self._work,
            Do.DRAIN: self._drain,
            Do.RELEASE: self._release,
            Do.FORGET: self._forget,
        }[step.do]
        tasks = self._tasks.setdefault(step.queue, [])
        is_ending = step.do in (Do.RELEASE, Do.FORGET)
        if tasks and is_ending:
            # The drain time is over, or the queue is: nothing to wait for.
            for task in {*tasks} - self._endings | {tasks[-1]}:
                task.cancel()
        task = asyncio.create_task(
            self._after(tuple(tasks), do, step), name=f"{step.do.name} {step.queue}"
        )
        tasks.append(task)
        if is_ending:
            self._endings.add(task)
        task.add_done_callback(lambda done: self._done(step.queue, done))

    def give_back(self, queue: str, reason: str) -> None:
        """Close the queue's channel: all that is not acknowledged goes back, in order."""
        holding = self._holdings.get(queue)
        if holding is not None:
            self._lost(holding, reason)

    def rates(self) -> Mapping[str, float]:
        """Messages a second by queue, smoothed."""
        now = time.monotonic()
        passed, self._counted_at = now - self._counted_at, now
        rates, counted = {}, {}
        for queue, holding in self._holdings.items():
            same, before = self._counted.get(queue, (None, 0))
            fresh = holding.received - (before if same is holding else 0)
            rate = fresh / passed if passed > 0 else 0.0
            share = min(passed / RATE_S, 1.0)
            known = self._rates.get(queue, rate)
            rates[queue] = known + (rate - known) * share
            counted[queue] = (holding, holding.received)
        self._rates, self._counted = rates, counted
        return {queue: round(rate, 3) for queue, rate in rates.items() if rate >= 0.001}

    async def finished(self) -> None:
        """Wait for what is being ended, and can't be cut short."""
        while self._endings:
            await asyncio.wait(set(self._endings))

    async def close(self) -> None:
        """Cut everything short; what runs is lost."""
        tasks = {task for each in self._tasks.values() for task in each}
        for task in tasks - self._endings:
            task.cancel()
        if tasks := tasks | self._endings:
            await asyncio.wait(tasks)  # a gather that is cancelled would cancel them
        # All at once: one that has to wait for a thread must not keep the others.
        held = [holding.forget() for holding in self._holdings.values()]
        await asyncio.gather(*held, return_exceptions=True)
        self._holdings.clear()
        await self._spares.close()
        for connection in self._connections[1:]:
            await connection.close(wait=False)

    # -- steps -----------------------------------------------------------------------------------
    async def _after(
        self,
        before: Sequence[asyncio.Task[None]],
        do: Callable[[str], Coroutine[Any, Any, None]],
        step: Step,
    ) -> None:
        if before:
            await asyncio.wait(before)
        try:
            await do(step.queue)
        except BaseException as error:
            if not is_own_failure(error):
                raise
            log.exception("%s of %s failed", step.do.name.lower(), step.queue)
            reason = str(error) or type(error).__name__
            self.give_back(step.queue, f"{step.do.name.lower()} failed: {reason}")
        self._poke()

    def _done(self, queue: str, task: asyncio.Task[None]) -> None:
        self._endings.discard(task)
        tasks = self._tasks[queue]
        tasks.remove(task)
        if not tasks:
            del self._tasks[queue]

    async def _claim(self, queue: str) -> None:
        holding = Holding(queue, self._listener, lost=self._taken, failed=self._failed)
        try:
            await self._ask_for(holding)
        except WarrenError as error:
            self._refused(queue, str(error))
            return
        except Exception as error:  # the user's own code: how many to prefetch
            if queue not in self._refusals:  # told once, it is tried again and again
                log.exception("%s can't be claimed", queue)
            self._refused(queue, f"{type(error).__name__}: {error}")
            return
        self._refusals.pop(queue, None)
        self._holdings[queue] = holding
        self._spares.held(len(self._holdings))
        self._member.claimed(queue, time.monotonic())

    def _refused(self, queue: str, reason: str) -> None:
        self._refusals[queue] = self._refusals.get(queue, 0) + 1
        self._member.refused(queue, reason, time.monotonic())

    async def _ask_for(self, holding: Holding) -> None:
        queue = holding.queue
        channel = await self._spares.take(self._prefetch(queue))
        exclusive = queue not in self._single_active
        try:
            await holding.claim(channel, exclusive=exclusive)
        except AccessRefused:
            worth_asking = exclusive and self._refusals.get(queue, 0) % 10 == ASK_AFTER
            if worth_asking and await _is_single_active(channel.connection, queue):
                self._single_active.add(queue)
            raise
        except NotFound:
            self._single_active.discard(queue)
            raise

    async def _work(self, queue: str) -> None:
        await self._holdings[queue].begin()

    async def _drain(self, queue: str) -> None:
        await self._holdings[queue].drain()
        self._member.drained(queue, time.monotonic())

    async def _release(self, queue: str) -> None:
        holding = self._holdings.pop(queue, None)
        try:
            if holding is not None:
                await holding.release()
        finally:
            self._member.released(queue, time.monotonic())

    async def _forget(self, queue: str) -> None:
        holding = self._holdings.pop(queue, None)
        if holding is not None:
            await holding.forget()

    def _taken(self, holding: Holding, reason: str) -> None:
        """By the broker: if it comes back, it may be of another kind."""
        self._single_active.discard(holding.queue)
        self._lost(holding, reason)

    def _lost(self, holding: Holding, reason: str) -> None:
        if self._holdings.get(holding.queue) is holding:
            log.debug("%s is lost: %s", holding.queue, reason)
            self._member.lost(holding.queue, reason, time.monotonic())
            self._poke()

    def _failed(self, holding: Holding, reason: str) -> None:
        asyncio.get_running_loop().call_later(RETRY_S, self._lost, holding, reason)

    async def _room(self) -> Connection:
        """A connection with a channel to spare."""
        found = self._with_room()
        if found is None:
            async with self._growing:
                found = self._with_room()
                if found is None:
                    found = await self._more().open()
                    self._connections.append(found)
        return found

    def _with_room(self) -> Connection | None:
        first, *more = self._connections
        self._connections = [first, *(each for each in more if each.state == "open")]
        # Asking for a channel on a connection that is down tells why, by its error.
        if first.state != "open":
            return first
        if len(first.channels) < _room_on(first, RESERVE_FIRST):
            return first
        more = self._connections[1:]
        # One at least: there is no other way to hold a queue.
        return next((c for c in more if len(c.channels) < max(_room_on(c, RESERVE), 1)), None)


def _room_on(connection: Connection, reserve: int) -> int:
    return min(ROOM, connection.channel_max - reserve)


async def _is_single_active(connection: Connection, queue: str) -> bool:
    """False also if that can't be found out."""
    try:
        return (await queue_kind(connection, queue)).single_active
    except Refusal:
        return False
