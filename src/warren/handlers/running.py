"""What there is while an app runs: connection, group, threads, health endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from warren.client import Connection, connect
from warren.clock import Clock
from warren.groups.coordination.base import GroupState
from warren.groups.group import Group
from warren.handlers.attempts import Shop
from warren.handlers.decoding import Decoders
from warren.handlers.health import HealthServer
from warren.handlers.idle_queues import tell_loop
from warren.handlers.metrics import exposition, group_exposition, rebalance_exposition
from warren.handlers.middleware import Stack
from warren.handlers.outbox import Outbox
from warren.handlers.pace import Pace, Share
from warren.handlers.threads import Threads
from warren.handlers.work import Handler, Work


@dataclass(frozen=True)
class Plan:
    """What an app is to do, as it stands when it is started."""

    url: str
    group: str
    queues: Sequence[str]
    handlers: Sequence[Handler]
    middleware: Stack
    decoders: Decoders
    clock: Clock
    threads: int
    rate_limit: float | None
    health_at: tuple[str, int] | None
    group_options: Mapping[str, Any]


class Running:
    """One run of an app, from ``start`` to ``stop``."""

    outbox: Outbox
    work: Work
    group: Group

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._stopping = False
        self._stopped = asyncio.Event()
        self._health: HealthServer | None = None
        #: What ends with it, the newest first.
        self._ends = AsyncExitStack()

    async def start(self) -> None:
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        if self._stopping:
            await self._stopped.wait()
            return
        self._stopping = True
        try:
            await self._ends.aclose()
        finally:
            self._stopped.set()

    async def _start(self) -> None:
        plan, ends = self._plan, self._ends
        pool = Threads(plan.threads)
        ends.callback(pool.close)
        connection = await connect(plan.url, name=f"{plan.group} letters")
        ends.push_async_callback(connection.close)
        share = self._open(connection, pool)
        ends.push_async_callback(self._end_health)  # it answers until the group is left
        await ends.enter_async_context(self.group)
        if plan.health_at is not None:
            host, port = plan.health_at
            self._health = HealthServer(self.status, self.metrics, host=host, port=port)
            await self._health.start()
        self._keep(tell_loop(plan.queues, lambda: self.group.snapshot().state), "idle queues")
        if share is not None:
            self._keep(share.keep_loop(), "share of the rate")

    def _open(self, connection: Connection, pool: Threads) -> Share | None:
        """Make the parts and join them; returns what keeps the rate, where there is a limit."""
        plan = self._plan
        self.outbox = Outbox(connection, plan.group)
        pace = Pace(plan.rate_limit) if plan.rate_limit else None
        shop = Shop(
            plan.group,
            self._member_name,
            self.outbox,
            plan.clock,
            pool,
            plan.decoders,
            plan.middleware,
            pace,
        )
        share = Share(pace, lambda: self.work.held, self._describe) if pace is not None else None
        self.work = Work(plan.handlers, shop, *([share.moved] if share is not None else []))
        self.group = Group(
            plan.url,
            plan.group,
            plan.queues,
            listener=self.work,
            prefetch=self.work.prefetch,
            **plan.group_options,
        )
        return share

    async def _end_health(self) -> None:
        if self._health is not None:
            await self._health.stop()

    def _keep(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._ends.callback(asyncio.create_task(work, name=name).cancel)

    async def _describe(self) -> GroupState | None:
        return await self.group.describe()

    def _member_name(self) -> str:
        return self.group.member_name

    # -- what is going on ------------------------------------------------------------------------
    def snapshot(self) -> dict[str, Any]:
        return {
            "member": self.group.snapshot(),
            "queues": dict(self.work.counters),
            "in_flight": self.work.in_flight,
            "broken": self.work.broken,
        }

    def status(self) -> dict[str, Any]:
        found, broken = self.group.snapshot(), self.work.broken
        return {
            "healthy": not self._stopping and not broken,
            "ready": found.joined and not self._stopping,
            "group": found.group,
            "member": found.member,
            "queues": len(found.held),
            "in_flight": self.work.in_flight,
            "broken": broken,
        }

    def metrics(self) -> str:
        found = self.group.snapshot()
        gauges = [
            ("queues_held", "Queues this member works on.", len(found.held)),
            ("queues_waiting", "Queues assigned and not held yet.", len(found.waiting)),
            ("connected", "1 while the broker is there.", int(found.connected)),
            ("is_dispatcher", "1 while this member is the dispatcher.", int(found.is_dispatcher)),
            ("in_flight", "Messages whose handler runs.", self.work.in_flight),
        ]
        of_group = group_exposition(found.state) if found.state is not None else ""
        of_member = exposition(found.group, self.work.counters, gauges)
        return of_member + rebalance_exposition(found.group, found.rebalances) + of_group
