"""A member that has to wait before it can leave."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.contract.groups.steps import Workers, eventually

pytestmark = pytest.mark.timeout(180)


async def test_a_dispatcher_that_can_not_leave_yet_goes_on_deciding(
    workers: Workers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What a thread works on can't be cut short; the others must not wait for that."""
    monkeypatch.setattr("warren.groups.group.ANSWERS_S", 0.1)
    await workers.declare(6)
    slow = await workers.join(drain_s=0.1)
    second, third = await workers.join_many(2)
    finished, lost = asyncio.Event(), slow.lost
    slow.work = lambda _: finished.wait()

    async def lost_when_finished(queue: str) -> None:
        await finished.wait()
        await lost(queue)

    monkeypatch.setattr(slow, "lost", lost_when_finished)
    stuck = slow.held
    await workers.publish(1)
    await eventually(
        lambda: stuck == {line.queue for line in workers.lines if line.member == slow.name}
    )
    leaving = asyncio.create_task(workers.leave(slow))
    await eventually(lambda: f"{slow.name} can't leave yet" in caplog.text)
    workers.kill(third)
    await eventually(lambda: second.held == set(workers.queues) - stuck)
    assert not leaving.done()
    finished.set()
    await leaving
    await workers.balanced()
    await workers.all_handled()
    assert "leaves without" not in caplog.text


async def test_a_leave_that_is_cancelled_leaves_no_member_behind(workers: Workers) -> None:
    await workers.declare(2)
    hurried = await workers.join(drain_s=3600.0)
    await workers.balanced()
    hurried.work = lambda _: asyncio.Event().wait()
    await workers.publish(2)
    await eventually(lambda: sum(line.phase == "begin" for line in workers.lines) == 2)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(workers.leave(hurried), 0.1)
    assert not hurried.group.snapshot().connected
    await hurried.group.leave()
    await workers.join()
    await workers.balanced()
    await workers.all_handled()


async def test_who_leaves_a_second_time_waits_for_the_first(workers: Workers) -> None:
    await workers.declare(1)
    (worker,) = await workers.join_many(1)
    finished = asyncio.Event()
    worker.work = lambda _: finished.wait()
    await workers.publish(1)
    await eventually(lambda: any(line.phase == "begin" for line in workers.lines))
    first = asyncio.create_task(workers.leave(worker))
    await eventually(lambda: worker.group.snapshot().releasing)
    second = asyncio.create_task(worker.group.leave())
    done, _ = await asyncio.wait({first, second}, timeout=0.1)
    assert not done
    finished.set()
    await second
    assert not worker.group.snapshot().connected
    await first


async def test_a_connection_that_is_lost_while_leaving_cuts_nothing_short(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workers.declare(1)
    (worker,) = await workers.join_many(1)
    lost, told, finished = worker.lost, asyncio.Event(), asyncio.Event()

    async def lost_slowly(queue: str) -> None:
        told.set()
        await finished.wait()
        await lost(queue)

    monkeypatch.setattr(worker, "lost", lost_slowly)
    worker.work = lambda _: asyncio.Event().wait()
    await workers.publish(1)
    await eventually(lambda: any(line.phase == "begin" for line in workers.lines))
    session: Any = worker.group._session
    leaving = asyncio.create_task(workers.leave(worker))
    await eventually(lambda: worker.group.snapshot().releasing)
    session._connection.link.abort()
    await told.wait()
    done, _ = await asyncio.wait({leaving}, timeout=0.1)
    assert not done
    finished.set()
    await leaving
    assert (worker.name, "lost", workers.queues[0]) in workers.events
    await workers.join()
    await workers.all_handled()


async def test_a_handler_that_leaves_its_own_group_is_cut_short_and_the_member_goes(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.groups.group.ANSWERS_S", 0.1)
    await workers.declare(1)
    worker = await workers.join(drain_s=0.1)
    await workers.balanced()
    worker.work = lambda _: workers.leave(worker)
    await workers.publish(1)
    await eventually(lambda: worker.name not in workers.alive)
    async with asyncio.timeout(20):
        await worker.group.leave()
    assert not worker.group.snapshot().connected
    await workers.join()
    await workers.all_handled()
