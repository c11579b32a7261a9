"""A broker that is short of memory takes no publishes; the work goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.contract.groups.steps import Workers, eventually
from warren.client import Channel
from warren.groups.coordination import etcd_deaths
from warren.groups.coordination.amqp import AmqpCoordinator

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """What kinds of messages were published; wills are renewed all the time."""
    said: list[str | None] = []
    publish = Channel.publish

    def listen(channel: Channel, body: bytes, **options: Any) -> Any:
        if (properties := options.get("properties")) is not None:
            said.append(properties.type)
        return publish(channel, body, **options)

    monkeypatch.setattr(Channel, "publish", listen)
    monkeypatch.setattr(etcd_deaths, "RENEW_S", 0.1)
    monkeypatch.setattr(AmqpCoordinator, "renew_s", 0.1)
    return said


async def test_work_goes_on_while_the_broker_takes_no_publishes(
    workers: Workers, said: list[str | None]
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
        said.clear()
        await eventually(lambda: "renewed" in said)
        goes_on.set()
        await workers.all_handled()
    finally:
        await loop.run_in_executor(None, workers.broker.memory_alarm, False)
