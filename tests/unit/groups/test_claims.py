"""Steps of one queue, without a broker."""

from __future__ import annotations

import asyncio
from typing import Any

from warren.groups.claims import Claims
from warren.groups.coordination.base import Report
from warren.groups.listener import Listener
from warren.groups.member import Do, Member, Step


class Channel:
    """Takes whatever it is told."""

    is_open, prefetch = True, 1

    async def consume(self, queue: str, callback: Any, **options: Any) -> None: ...

    async def close(self) -> None: ...


class Connection:
    """One with channels for all."""

    state, channel_max = "open", 2047

    def __init__(self) -> None:
        self.channels: list[Channel] = []

    async def channel(self, **options: Any) -> Channel:
        self.channels.append(Channel())
        return self.channels[-1]


class Slow(Listener):
    """Can't begin before something has happened that never happens."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def assigned(self, queue: str) -> None:
        self.heard.append("assigned")
        try:
            await asyncio.Event().wait()
        finally:
            self.heard.append("cut short")

    async def lost(self, queue: str) -> None:
        self.heard.append("lost")


def claims_of(listener: Listener) -> Claims:
    connection: Any = Connection()
    return Claims(
        Member(Report("me")),
        listener,
        connection,
        prefetch=lambda queue: 1,
        poke=lambda: None,
        more=lambda: connection,
    )


async def until_heard(listener: Slow, word: str) -> None:
    async with asyncio.timeout(20):
        while word not in listener.heard:
            await asyncio.sleep(0)


async def test_a_release_cuts_short_also_what_the_drain_waits_for() -> None:
    listener = Slow()
    claims = claims_of(listener)
    for do in (Do.CLAIM, Do.WORK, Do.DRAIN):
        claims.carry_out(Step(do, "orders"))
    await until_heard(listener, "assigned")
    claims.carry_out(Step(Do.RELEASE, "orders"))
    await until_heard(listener, "lost")
    assert listener.heard == ["assigned", "cut short", "lost"]
    await claims.close()


async def test_a_release_behind_a_drain_that_has_not_begun_cuts_the_work_short() -> None:
    listener = Slow()
    claims = claims_of(listener)
    for do in (Do.CLAIM, Do.WORK):
        claims.carry_out(Step(do, "orders"))
    await until_heard(listener, "assigned")
    for do in (Do.DRAIN, Do.RELEASE):
        claims.carry_out(Step(do, "orders"))
    await until_heard(listener, "lost")
    assert listener.heard == ["assigned", "cut short", "lost"]
    await claims.close()


async def test_closing_does_not_cut_short_an_ending_that_something_waits_for() -> None:
    ends = asyncio.Event()

    class SlowToEnd(Slow):
        async def assigned(self, queue: str) -> None: ...

        async def lost(self, queue: str) -> None:
            self.heard.append("told")
            await ends.wait()
            self.heard.append("lost")

    listener = SlowToEnd()
    claims = claims_of(listener)
    for do in (Do.CLAIM, Do.WORK):
        claims.carry_out(Step(do, "orders"))
    await asyncio.wait(claims._tasks["orders"])
    for do in (Do.FORGET, Do.CLAIM):
        claims.carry_out(Step(do, "orders"))
    await until_heard(listener, "told")
    closing = asyncio.create_task(claims.close())
    done, _ = await asyncio.wait({closing}, timeout=0.05)
    assert not done
    ends.set()
    await closing
    assert listener.heard == ["told", "lost"]
