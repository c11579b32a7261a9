"""What every coordinator must do, whatever it is made of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.contract.groups.steps import eventually
from tests.support.brokers import TestBroker
from warren.client import Connection, connect
from warren.errors import ConfigError, Fenced, NoSuchGroup
from warren.groups.coordination.base import (
    Assigned,
    Assignment,
    Command,
    Commanded,
    Coordinator,
    Elected,
    Event,
    GroupState,
    Left,
    QueueState,
    Report,
    Reported,
    Stamp,
    coordinator_for,
)

pytestmark = pytest.mark.timeout(120)


class Seated:
    """A member that writes down what it is told."""

    def __init__(self, coordinator: Coordinator, connection: Connection, name: str) -> None:
        self.coordinator, self.connection, self.name = coordinator, connection, name
        self.told: list[Event] = []

    async def join(self, **options: Any) -> Seated:
        await self.coordinator.join(Report(self.name, **options), self.told.append)
        return self

    def heard(self, kind: type) -> list[Any]:
        return [event for event in self.told if isinstance(event, kind)]

    @property
    def reports(self) -> dict[str, Report]:
        """The newest report of every member, as this one was told."""
        found = [r for each in self.heard(Elected) for r in each.members]
        found += [each.report for each in self.heard(Reported)]
        return {report.member: report for report in found}


class Room:
    """Members of one group."""

    def __init__(self, url: str, broker: TestBroker, group: str) -> None:
        self.url, self.broker, self.group = url, broker, group
        self.seated: list[Seated] = []

    async def seat(self, name: str) -> Seated:
        connection = await connect(self.broker.url, reconnect=False)
        member = Seated(coordinator_for(self.url, self.group, connection), connection, name)
        self.seated.append(member)
        return member

    async def join(self, name: str, **options: Any) -> Seated:
        return await (await self.seat(name)).join(**options)

    def reader(self) -> Coordinator:
        return coordinator_for(self.url, self.group)

    async def dispatcher(self) -> Seated:
        await eventually(lambda: any(each.heard(Elected) for each in self.seated))
        return next(each for each in self.seated if each.heard(Elected))

    async def close(self) -> None:
        for member in self.seated:
            await member.coordinator.leave()
            await member.connection.close()


@pytest.fixture(params=["memory", "amqp", "etcd"])
async def room(
    request: pytest.FixtureRequest, broker: TestBroker, name: Callable[[str], str]
) -> AsyncIterator[Room]:
    url = {"memory": "memory://test", "amqp": broker.url}.get(request.param)
    if url is None:
        url = request.getfixturevalue("etcd").url.replace("http", "etcd") + "?ttl_s=5"
    room = Room(url, broker, name("group"))
    yield room
    await room.close()


async def test_one_of_those_who_joined_is_elected(room: Room) -> None:
    members = [await room.join(name) for name in ("a", "b", "c")]
    dispatcher = await room.dispatcher()
    await eventually(lambda: dispatcher.reports.keys() == {"a", "b", "c"})
    assert sum(bool(member.heard(Elected)) for member in members) == 1


async def test_a_report_reaches_the_dispatcher(room: Room) -> None:
    await room.join("a")
    dispatcher = await room.dispatcher()
    other = await room.join("b", weight=2.0)
    report = Report("b", 2.0, stamp=Stamp(3, 1), held=("q",), refused={"r": "no"}, rates={"q": 1.5})
    await other.coordinator.report(report)
    await eventually(lambda: dispatcher.reports.get("b") == report)


async def test_an_assignment_reaches_its_member_and_no_other(room: Room) -> None:
    first = await room.join("a")
    await room.dispatcher()
    second = await room.join("b")
    await eventually(lambda: first.reports.keys() == {"a", "b"})
    assignment = Assignment("b", Stamp(1, 1), ("q1", "q2"))
    await first.coordinator.publish([assignment])
    await eventually(lambda: second.heard(Assigned) == [Assigned(assignment)])
    assert first.heard(Assigned) == []


async def test_the_dispatcher_hears_who_leaves_and_who_dies(room: Room) -> None:
    await room.join("a")
    dispatcher = await room.dispatcher()
    leaver, dier = await room.join("b"), await room.join("c")
    await eventually(lambda: dispatcher.reports.keys() == {"a", "b", "c"})
    await leaver.coordinator.leave()
    await eventually(lambda: Left("b", died=False) in dispatcher.heard(Left))
    dier.connection.link.abort()
    await dier.coordinator.close()
    await eventually(lambda: any(each.member == "c" for each in dispatcher.heard(Left)))
    assert len(dispatcher.heard(Left)) == 2


async def test_another_takes_over_when_the_dispatcher_has_gone(room: Room) -> None:
    await room.join("a")
    first = await room.dispatcher()
    second = await room.join("b", weight=3.0)
    await eventually(lambda: first.reports.keys() == {"a", "b"})
    state = GroupState("g", "a", 7, queues=(QueueState("q", "b", paused=True),))
    await first.coordinator.publish([Assignment("b", Stamp(7, 1), ("q",))], state)
    await eventually(lambda: second.heard(Assigned))
    await second.coordinator.report(Report("b", 3.0, stamp=Stamp(7, 1), held=("q",)))
    await eventually(lambda: first.reports["b"].held == ("q",))
    first.connection.link.abort()
    await first.coordinator.close()
    await eventually(lambda: second.heard(Elected))
    elected = second.heard(Elected)[0]
    assert elected.generation >= 7
    assert [report.held for report in elected.members if report.member == "b"] == [("q",)]
    assert elected.state is not None
    assert elected.state.queues[0].paused


async def test_a_name_is_one_members_only(room: Room) -> None:
    await room.join("a")
    await room.dispatcher()
    twin = await room.seat("a")
    with pytest.raises(Fenced, match="member_name"):
        await twin.join()


async def test_a_name_is_free_again_when_its_member_has_gone(room: Room) -> None:
    await room.join("a")
    dispatcher = await room.dispatcher()
    before = await room.join("b")
    await eventually(lambda: "b" in dispatcher.reports)
    await before.coordinator.leave()
    await (await room.seat("b")).join(weight=5.0)
    await eventually(lambda: dispatcher.reports["b"].weight == 5.0)
    # Its first life has ended before its second began.
    order = [e for e in dispatcher.told if isinstance(e, (Left, Reported))]
    last = max(at for at, e in enumerate(order) if isinstance(e, Left))
    assert any(isinstance(e, Reported) and e.report.weight == 5.0 for e in order[last:])


async def test_nobody_in_a_group_is_no_state_and_takes_no_command(room: Room) -> None:
    reader = room.reader()
    assert await reader.read() is None
    with pytest.raises(NoSuchGroup, match="start a member"):
        await reader.command(Command("pause", queue="q"))
    await reader.close()


async def test_a_person_reads_what_the_dispatcher_shows_and_commands_it(room: Room) -> None:
    await room.join("a")
    dispatcher = await room.dispatcher()
    state = GroupState(room.group, "a", 3, queues=(QueueState("q", "a", 5, 1, 0.5),))
    await dispatcher.coordinator.publish([Assignment("a", Stamp(3, 1), ("q",))], state)
    reader = room.reader()
    async with asyncio.timeout(30):
        while (shown := await reader.read()) is None or not shown.queues:
            await asyncio.sleep(0.05)
    assert (shown.dispatcher, shown.generation) == ("a", 3)
    assert shown.queues[0] == state.queues[0]
    await reader.command(Command("move", member="a", queue="q"))
    await eventually(lambda: dispatcher.heard(Commanded))
    assert dispatcher.heard(Commanded)[0].command == Command("move", member="a", queue="q")
    await reader.close()


async def test_nothing_is_told_after_leaving(room: Room) -> None:
    first = await room.join("a")
    await room.dispatcher()
    await first.coordinator.leave()
    await first.coordinator.leave()  # twice does no harm
    count = len(first.told)
    second = await room.join("b")
    await eventually(lambda: second.heard(Elected))
    assert len(first.told) == count


def test_an_unknown_coordinator_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="amqp, amqps, etcd"):
        coordinator_for("zookeeper://localhost", "g")
