"""A broker that is short of memory takes no publishes; the work goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.contract.groups.steps import Workers, eventually
from warren.client import Channel
from warren.client.confirm import Confirm
from warren.groups.coordination import etcd_deaths
from warren.groups.coordination.amqp import AmqpCoordinator

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def wills(monkeypatch: pytest.MonkeyPatch) -> list[Confirm]:
    """The wills that were written anew; it happens all the time."""
    wills: list[Confirm] = []
    publish = Channel.publish

    def listen(channel: Channel, body: bytes, **options: Any) -> Confirm:
        confirm = publish(channel, body, **options)
        properties = options.get("properties")
        if properties is not None and properties.type == "renewed":
            wills.append(confirm)
        return confirm

    monkeypatch.setattr(Channel, "publish", listen)
    monkeypatch.setattr(etcd_deaths, "RENEW_S", 0.1)
    monkeypatch.setattr(AmqpCoordinator, "renew_s", 0.1)
    return wills


async def test_work_goes_on_while_the_broker_takes_no_publishes(
    workers: Workers, wills: list[Confirm]
) -> None:
    """Reports and wills wait for the alarm to end; acknowledgements do not."""
    await workers.declare(2)
    worker = (await workers.join_many(1))[0]
    goes_on = asyncio.Event()
    worker.work = lambda _: goes_on.wait()
    await workers.publish(150)  # more than the prefetch: the rest comes only if acks are read
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, workers.broker.memory_alarm, True)
    try:
        await worker.group._session._coordinator.report(worker.group._seat.member.report())
        # One that waits since before the alarm, or one that was written during it.
        waiting = [will for will in wills if not will.done]
        wills.clear()
        await eventually(lambda: wills or any(not will.done for will in waiting))
        goes_on.set()
        await workers.all_handled()
    finally:
        await loop.run_in_executor(None, workers.broker.memory_alarm, False)
