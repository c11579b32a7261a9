from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from warren.errors import GroupError
from warren.groups.coordination.base import GroupState, QueueState
from warren.handlers.pace import Pace, Share


def waiting(pace: Pace, stopping: asyncio.Event | None = None) -> asyncio.Task[bool]:
    async def turn() -> bool:
        return await pace(stopping or asyncio.Event())

    return asyncio.create_task(turn())


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_nothing_goes_without_a_share_and_all_go_once_there_is_one() -> None:
    pace = Pace(1000.0)
    turns = [waiting(pace) for _ in range(5)]
    await settle()
    assert not any(turn.done() for turn in turns)
    pace.share_is(0.5)
    assert await asyncio.wait_for(asyncio.gather(*turns), 10) == [True] * 5


async def test_a_share_that_grows_wakes_who_waits_for_a_slow_one() -> None:
    pace = Pace(1000.0)
    pace.share_is(1e-9)
    first, second = waiting(pace), waiting(pace)
    await settle()
    assert (first.done(), second.done()) == (True, False)
    pace.share_is(1.0)
    assert await asyncio.wait_for(second, 10)


async def test_who_is_stopped_goes_away_and_the_next_gets_the_turn() -> None:
    pace, stopping = Pace(1000.0), asyncio.Event()
    stopped, other = waiting(pace, stopping), waiting(pace)
    await settle()
    stopping.set()
    assert await asyncio.wait_for(stopped, 10) is False
    pace.share_is(1.0)
    assert await asyncio.wait_for(other, 10)


class Noted(Pace):
    def __init__(self) -> None:
        super().__init__(1.0)
        self.shares: list[float] = []

    def share_is(self, share: float) -> None:
        self.shares.append(share)


@pytest.mark.parametrize("unknown", [GroupState("g"), None, GroupError("no connection")])
async def test_a_share_is_what_is_held_of_all_and_waits_until_that_is_known(
    unknown: GroupState | GroupError | None,
) -> None:
    noted, held = Noted(), ["a"]
    all_four = GroupState("g", queues=tuple(QueueState(name) for name in "abcd"))
    answers: Sequence[GroupState | GroupError | None] = [unknown, all_four]
    asked = 0

    async def describe() -> GroupState | None:
        nonlocal asked
        answer = answers[min(asked, 1)]
        asked += 1
        if isinstance(answer, GroupError):
            raise answer
        return answer

    share = Share(noted, lambda: held, describe)
    keeping = asyncio.create_task(share.keep_loop())
    async with asyncio.timeout(20):
        while not noted.shares:
            await asyncio.sleep(0.01)
    assert noted.shares[0] == 0.25
    assert asked >= 2
    held.append("b")
    share.moved()
    assert noted.shares[-1] == 0.5
    held.clear()
    share.moved()
    assert noted.shares[-1] == 0.0
    keeping.cancel()
