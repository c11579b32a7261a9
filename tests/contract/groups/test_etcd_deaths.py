"""Members that meet in etcd hear of a death from the broker, long before its lease has run out."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest

from tests.contract.groups.steps import eventually
from tests.integration.groups.test_etcd_coordinator import Member
from tests.support.brokers import TestBroker
from tests.support.etcd import Etcd
from warren.client import Connection, connect
from warren.errors import NotFound
from warren.groups.coordination import etcd_deaths
from warren.groups.coordination.amqp_words import Names
from warren.groups.coordination.base import Elected, Left, Reported
from warren.groups.coordination.etcd import EtcdCoordinator


class Joined(Member):
    """A member with a connection to the broker."""

    connection: Connection

    async def connect(self, broker: TestBroker) -> Joined:
        self.connection = await connect(broker.url, reconnect=False)
        coordinator = self.coordinator
        self.coordinator = EtcdCoordinator(coordinator.url, coordinator.group, self.connection)
        await self.join()
        return self

    def die(self) -> None:
        """As by kill -9: no goodbye, neither to the broker nor to etcd."""
        for task in list(self.coordinator._tasks):
            task.cancel()
        self.connection.link.abort()


@pytest.fixture
async def members(broker: TestBroker, etcd: Etcd) -> AsyncIterator[list[Joined]]:
    group = f"g-{secrets.token_hex(4)}"
    url = f"{etcd.url}?ttl_s=60".replace("http", "etcd")
    members = [Joined(url, group, f"w{number}") for number in range(3)]
    for member in members:
        await member.connect(broker)
    yield members
    for member in members:
        await member.coordinator.leave()
    for member in members:
        await member.connection.close()
    await _nothing_is_left(broker, group, members)


async def _nothing_is_left(broker: TestBroker, group: str, members: list[Joined]) -> None:
    # A queue goes with its last consumer, which RabbitMQ may take a moment to see.
    async with connect(broker.url) as connection, asyncio.timeout(30):
        for member in members:
            assert member.life is not None
            will = Names(group).will(member.name, member.life)
            while True:
                channel = await connection.channel()
                try:
                    await channel.declare_queue(will, passive=True)
                    await channel.close()
                    await asyncio.sleep(0.05)
                except NotFound:
                    break


async def _knows(dispatcher: Joined, member: Joined) -> None:
    elected = await dispatcher.until(Elected)
    if member.name not in {report.member for report in elected.members}:
        await dispatcher.until(Reported, lambda event: event.report.member == member.name)


async def test_a_member_that_dies_is_missed_at_once(members: list[Joined]) -> None:
    one, two, _ = members
    await _knows(one, two)
    two.die()
    assert await one.until(Left) == Left("w1", died=True)


@pytest.fixture
def renewing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wills are renewed all the time."""
    monkeypatch.setattr(etcd_deaths, "RENEW_S", 0.05)


@pytest.mark.usefixtures("renewing")
async def test_a_will_that_was_renewed_is_as_good(members: list[Joined]) -> None:
    one, two, _ = members
    await _knows(one, two)
    deaths = two.coordinator._deaths
    assert deaths is not None
    await eventually(lambda: deaths._held is not None and deaths._held.delivery_tag >= 4)
    assert not [event for event in one.told if isinstance(event, Left)]

    two.die()
    assert await one.until(Left) == Left("w1", died=True)


async def test_a_dispatcher_that_dies_is_replaced_at_once(members: list[Joined]) -> None:
    one, two, three = members
    await one.until(Elected)
    one.die()
    async with asyncio.timeout(30):
        while not any(isinstance(event, Elected) for event in two.told + three.told):
            await asyncio.sleep(0.01)
    (elected,) = [event for event in two.told + three.told if isinstance(event, Elected)]
    assert [report.member for report in elected.members] == ["w1", "w2"]


async def test_a_goodbye_is_no_death(members: list[Joined]) -> None:
    one, two, _ = members
    await _knows(one, two)
    await two.coordinator.leave()
    assert await one.until(Left) == Left("w1", died=False)
    two.coordinator = EtcdCoordinator(one.coordinator.url, one.coordinator.group, two.connection)
    await two.join()
    await one.until(Reported, lambda event: event.report.member == "w1")
    assert not any(isinstance(event, Left) for event in one.told)
