"""What a member's own code does to its group."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

import pytest

from tests.contract.groups.steps import Worker, Workers, eventually
from warren.client import Delivery


async def test_a_prefetch_function_that_fails_is_told_and_tried_again(
    workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    good, odd = await workers.declare(2)
    known = {good: 10}
    worker = await workers.join(prefetch=lambda queue: known[queue])

    def problem() -> str:
        state = workers.state()
        found = {each.queue: each.problem for each in state.queues} if state else {}
        return found.get(odd) or ""

    await eventually(lambda: "KeyError" in problem())
    assert worker.held == {good}
    assert sum(record.exc_info is not None for record in caplog.records) == 1

    known[odd] = 10
    await eventually(lambda: worker.held == {good, odd})
    await eventually(lambda: not problem())


async def fails() -> None:
    raise ValueError("not today")


async def cancels_itself() -> None:
    raise asyncio.CancelledError


async def waits_for_what_was_cancelled() -> None:
    task = asyncio.create_task(asyncio.Event().wait())
    task.cancel()
    await task


async def exits() -> None:
    sys.exit(3)


@pytest.mark.parametrize("fail", [fails, cancels_itself, waits_for_what_was_cancelled, exits])
async def test_whatever_a_handler_raises_it_gets_its_message_again_and_order_is_kept(
    workers: Workers, fail: Callable[[], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    (queue,) = await workers.declare(1)
    worker = (await workers.join_many(1))[0]
    worker._retry_s = 0.01
    left = [2]

    async def fail_at_first(_: str) -> None:
        if left[0]:
            left[0] -= 1
            await fail()

    worker.work = fail_at_first
    await workers.publish(5)
    await workers.all_handled()

    done = [line.number for line in workers.lines if line.phase == "end"]
    assert done == [0, 1, 2, 3, 4]
    assert worker.held == {queue}
    assert caplog.text.count(f"the handler of {queue} failed") == 2


def fail_once(worker: Worker, word: str, fail: Callable[[], Awaitable[None]]) -> list[str]:
    """Have a method of the listener do its work and then fail; returns where it did."""
    told: list[str] = []
    before = getattr(worker, word)

    async def failing(queue: str) -> None:
        await before(queue)
        if not told:
            told.append(queue)
            await fail()

    setattr(worker, word, failing)
    return told


@pytest.mark.parametrize("fail", [fails, cancels_itself])
async def test_a_queue_is_claimed_anew_though_its_listener_fails_to_hear_of_its_loss(
    workers: Workers, fail: Callable[[], Awaitable[None]]
) -> None:
    (queue,) = await workers.declare(1)
    (worker,) = await workers.join_many(1)
    told = fail_once(worker, "lost", fail)
    worker.group.give_back(queue, "to try it", retry_s=0)
    await eventually(lambda: told == [queue])
    await workers.balanced()
    await workers.publish(2)
    await workers.all_handled()


@pytest.mark.parametrize("fail", [fails, cancels_itself])
async def test_a_queue_goes_to_the_next_member_though_its_listener_fails_to_hear_of_its_loss(
    workers: Workers, fail: Callable[[], Awaitable[None]]
) -> None:
    await workers.declare(2)
    first = await workers.join(drain_s=0.1)
    await workers.balanced()
    told = fail_once(first, "lost", fail)
    finished = asyncio.Event()
    first.work = lambda _: finished.wait()
    await workers.publish(1)
    await eventually(lambda: sum(line.phase == "begin" for line in workers.lines) == 2)
    second = await workers.join()
    await eventually(lambda: second.held == set(told) != set())
    finished.set()
    await workers.all_handled()
    await workers.balanced()


@pytest.mark.parametrize("fail", [fails, cancels_itself])
async def test_a_listener_that_fails_to_begin_gets_its_queue_again(
    workers: Workers, fail: Callable[[], Awaitable[None]]
) -> None:
    (queue,) = await workers.declare(1)
    (worker,) = await workers.join_many(1)
    told = fail_once(worker, "assigned", fail)
    worker.group.give_back(queue, "to try it", retry_s=0)
    await eventually(lambda: told == [queue])
    await workers.publish(2)
    await workers.all_handled()


@pytest.mark.parametrize("early", [True, False], ids=["there before", "came later"])
async def test_a_message_that_a_listener_fails_over_comes_again_before_the_next(
    workers: Workers, early: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.groups.claims.RETRY_S", 0.01)
    before, left = Worker.message, [2]

    def failing(worker: Worker, delivery: Delivery) -> None:
        if left[0] and int(delivery.body) == 2:
            left[0] -= 1
            raise ValueError("not today")
        before(worker, delivery)

    monkeypatch.setattr(Worker, "message", failing)
    await workers.declare(1)
    if early:
        await workers.publish(5)
    await workers.join_many(1)
    if not early:
        await workers.publish(5)
    await workers.all_handled()
    done = [line.number for line in workers.lines if line.phase == "end"]
    assert list(dict.fromkeys(done)) == [0, 1, 2, 3, 4]
    assert left == [0]


async def test_the_next_member_begins_when_a_cancelled_handler_has_ended(workers: Workers) -> None:
    await workers.declare(2)
    first = await workers.join(drain_s=0.1)
    await workers.balanced()
    cancelled, cleaned_up, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def clean_up_slowly(_: str) -> None:
        try:
            await finished.wait()
        except asyncio.CancelledError:
            cancelled.set()
            await cleaned_up.wait()
            raise

    first.work = clean_up_slowly
    await workers.publish(1)
    await eventually(lambda: sum(line.phase == "begin" for line in workers.lines) == 2)
    second = await workers.join()
    await cancelled.wait()
    with pytest.raises(AssertionError):
        await eventually(lambda: second.held, within_s=0.5)
    cleaned_up.set()
    finished.set()
    await workers.balanced()
    await workers.all_handled()
