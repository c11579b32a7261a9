from __future__ import annotations

import asyncio
from typing import Any

import pytest

from warren.handlers.lane import TURNS, Lane
from warren.handlers.policy import Handling


class Item:
    """Stands in for a delivery: a lane never looks inside."""

    def __init__(self, key: str, number: int) -> None:
        self.key, self.number = key, number


def started(work: Any, *, concurrency: int = 1, key: Any = None) -> Lane:
    handling = Handling(("q",), concurrency=concurrency, key=key, ordered=False)
    lane = Lane("q", handling, key)
    lane.start(work)
    return lane


def feed(lane: Lane, count: int, keys: str = "a") -> None:
    for number in range(count):
        lane.feed(Item(keys[number % len(keys)], number))  # type: ignore[arg-type]


async def test_one_worker_keeps_the_order() -> None:
    done: list[int] = []
    finished = asyncio.Event()

    async def work(item: Any) -> None:
        await asyncio.sleep(0)
        done.append(item.number)
        if len(done) == 50:
            finished.set()

    tested = started(work)
    feed(tested, 50)
    await asyncio.wait_for(finished.wait(), 5)
    assert done == list(range(50))
    assert await tested.stop(1)


async def test_no_more_run_at_once_than_asked_for() -> None:
    gate, most = asyncio.Event(), 0

    async def work(item: Any) -> None:
        nonlocal most
        most = max(most, tested.in_flight)
        await gate.wait()

    tested = started(work, concurrency=4)
    feed(tested, 20)
    while tested.in_flight < 4:
        await asyncio.sleep(0)
    gate.set()
    while tested.in_flight:
        await asyncio.sleep(0)
    assert most == 4
    assert await tested.stop(1)


async def test_with_a_key_other_keys_go_on_and_the_order_of_each_is_kept() -> None:
    done: dict[str, list[int]] = {"a": [], "b": [], "c": []}
    held = asyncio.Event()

    async def work(item: Any) -> None:
        if item.key == "a":
            await held.wait()
        await asyncio.sleep(0)
        done[item.key].append(item.number)

    tested = started(work, concurrency=2, key=lambda item: item.key)
    feed(tested, 30, keys="abc")
    while len(done["b"]) + len(done["c"]) < 20:
        await asyncio.sleep(0)
    assert done["a"] == []
    held.set()
    while len(done["a"]) < 10:
        await asyncio.sleep(0)
    assert all(numbers == sorted(numbers) for numbers in done.values())
    assert await tested.stop(1)


async def test_stopping_finishes_what_runs_and_begins_nothing() -> None:
    begun: list[int] = []
    gate = asyncio.Event()

    async def work(item: Any) -> None:
        begun.append(item.number)
        await gate.wait()

    tested = started(work)
    feed(tested, 3)
    while not begun:
        await asyncio.sleep(0)
    stop = asyncio.create_task(tested.stop(5))
    await asyncio.sleep(0)
    gate.set()
    assert await stop is True
    assert begun == [0]


async def test_what_takes_too_long_to_stop_is_cancelled() -> None:
    cancelled = asyncio.Event()

    async def work(item: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    tested = started(work)
    feed(tested, 1)
    while not tested.in_flight:
        await asyncio.sleep(0)
    assert await tested.stop(0.01) is False
    assert cancelled.is_set()


async def test_a_handler_that_never_waits_lets_others_have_a_turn() -> None:
    done = 0

    async def work(item: Any) -> None:
        nonlocal done
        done += 1

    tested = started(work)
    feed(tested, 10 * TURNS)
    await asyncio.sleep(0)
    assert done == TURNS
    assert await tested.stop(1)


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_an_idle_lane_stops_at_once(concurrency: int) -> None:
    async def work(item: Any) -> None:
        raise AssertionError

    tested = started(work, concurrency=concurrency)
    await asyncio.sleep(0)
    assert await tested.stop(5)


async def test_with_a_key_a_stopped_lane_begins_none_that_waits_behind_the_running_one() -> None:
    gate, begun = asyncio.Event(), []

    async def work(item: Any) -> None:
        begun.append(item.number)
        await gate.wait()

    tested = started(work, concurrency=2, key=lambda item: item.key)
    feed(tested, 5)
    # Both workers have had their turn: one runs the first, the other put the rest behind it.
    for _ in range(20):
        await asyncio.sleep(0)
    stopping = asyncio.create_task(tested.stop(30))
    await asyncio.sleep(0)
    gate.set()
    assert await stopping
    assert begun == [0]


class OutOfTime(BaseException): ...


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (LookupError("a bug"), "a bug"),
        (OutOfTime("late"), "the handler raised OutOfTime: late"),
        (asyncio.CancelledError(), "the handler raised CancelledError"),
    ],
)
async def test_an_error_of_the_work_ends_the_lane_and_is_told(
    error: BaseException, said: str
) -> None:
    told: list[tuple[str, str]] = []
    begun: list[int] = []

    async def work(item: Any) -> None:
        begun.append(item.number)
        raise error

    lane = Lane("q", Handling(("q",)), None, lambda queue, error: told.append((queue, str(error))))
    lane.start(work)
    feed(lane, 3)
    await asyncio.wait_for(lane.stopping.wait(), 10)
    assert await lane.stop(10)
    assert (told, begun, lane.in_flight) == ([("q", said)], [0], 0)
