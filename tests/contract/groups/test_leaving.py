"""A member that has to wait before it can leave."""

from __future__ import annotations

import asyncio

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
