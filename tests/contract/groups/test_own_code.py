"""What a member's own code does to its group."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

import pytest

from tests.contract.groups.steps import Workers, eventually


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
