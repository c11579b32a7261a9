"""What only the etcd coordinator does; what all coordinators do is in contract/groups."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.etcd import Etcd
from tests.support.etcd_process import EtcdProcess, etcd_process
from tests.support.servers import free_ports
from warren.errors import Fenced, NoSuchGroup
from warren.groups.coordination.base import (
    Assigned,
    Assignment,
    Command,
    Commanded,
    Deposed,
    Elected,
    Event,
    GroupState,
    Left,
    MemberState,
    QueueState,
    Reachable,
    Rebalance,
    Report,
    Reported,
    Stamp,
    Unreachable,
)
from warren.groups.coordination.etcd import EtcdCoordinator, list_groups, open_client
from warren.groups.coordination.etcd_client import EtcdClient
from warren.groups.coordination.etcd_url import EtcdAddress

T = TypeVar("T", bound=Event)
LOGGER = "warren.groups"
WITHIN_S = 30


class Member:
    """A member that does what its coordinator says, and remembers what it was told."""

    def __init__(self, url: str, group: str, name: str, **report: Any) -> None:
        self.coordinator = EtcdCoordinator(url, group)
        self.told: list[Event] = []
        self.name = name
        self._report = Report(name, **report)

    async def join(self) -> Member:
        await self.coordinator.join(self._report, self.told.append)
        membership = self.coordinator._membership
        self.life = None if membership is None else membership.life
        return self

    async def until(self, kind: type[T], check: Callable[[T], bool] = lambda _: True) -> T:
        """The first event of a kind for which ``check`` holds; events before it are forgotten."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                for at, event in enumerate(self.told):
                    if isinstance(event, kind) and check(event):
                        del self.told[: at + 1]
                        return event
                await asyncio.sleep(0.01)


class Group:
    def __init__(self, url: str) -> None:
        self.url, self.name = url, f"g-{secrets.token_hex(4)}"
        self.members: list[Member] = []

    async def join(self, name: str, **report: Any) -> Member:
        self.members.append(Member(self.url, self.name, name, **report))
        return await self.members[-1].join()

    async def empty(self) -> None:
        for member in self.members:
            await member.coordinator.leave()


@pytest.fixture
async def group(etcd: Etcd) -> AsyncIterator[Group]:
    group = Group(f"{etcd.url}?ttl_s=2".replace("http", "etcd"))
    yield group
    await group.empty()
    async with client_of(group) as client:
        assert not (await client.list(f"/warren/{group.name}/")).entries


def client_of(group: Group) -> EtcdClient:
    return open_client(EtcdAddress.parse(group.url))


async def keys_of(group: Group) -> dict[str, bytes]:
    prefix = f"/warren/{group.name}/"
    async with client_of(group) as client:
        listing = await client.list(prefix)
    return {key.removeprefix(prefix): entry.value for key, entry in listing.entries.items()}


async def eventually_keys(group: Group, check: Callable[[dict[str, bytes]], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not check(await keys_of(group)):
            await asyncio.sleep(0.05)


STATE = GroupState(
    group="g",
    generation=7,
    members=(
        MemberState("w1", quota=2, queues=("a/b", "ключ"), rate=1.5, where="here"),
        MemberState("w2", quota=1, queues=("c",), drained=True),
    ),
    queues=(
        QueueState("a/b", "w1", messages=3, consumers=1, rate=0.5),
        QueueState("c", "w2", paused=True, problem="no such queue"),
    ),
    rebalances=(Rebalance(7, 1_700_000_000.5, "w2 joined", 1),),
)


# -- what is to be seen in etcd ------------------------------------------------------------------
async def test_the_state_of_a_group_is_readable_in_etcd(group: Group) -> None:
    one = await group.join("w1", held=("a/b", "ключ"))
    await one.until(Elected)
    await one.coordinator.publish([Assignment("w1", Stamp(7, 1), ("a/b", "ключ"))], STATE)
    keys = await keys_of(group)
    assert json.loads(keys["dispatcher"]) == {"member": "w1", "life": ""}
    assert json.loads(keys["members/w1"])["held"] == ["a/b", "ключ"]
    assert json.loads(keys["quotas/w1"])["quota"] == 2
    assert (keys["claims/a/b"], keys["claims/ключ"]) == (b"w1", b"w1")
    shown = json.loads(keys["queues/a/b"])
    assert {key: shown[key] for key in ("name", "messages", "consumers")} == {
        "name": "a/b",
        "messages": 3,
        "consumers": 1,
    }


async def test_who_has_not_joined_reads_the_same_state(group: Group) -> None:
    one = await group.join("w1")
    await one.until(Elected)
    person = EtcdCoordinator(group.url, group.name)
    await one.coordinator.publish([], STATE)
    found = await person.read()
    await person.close()
    assert found == STATE._replace(dispatcher="w1")


async def test_a_state_that_shrinks_leaves_nothing_behind(group: Group) -> None:
    one = await group.join("w1")
    await one.until(Elected)
    await one.coordinator.publish([Assignment("w2", Stamp(7, 1), ("c",))], STATE)
    smaller = GroupState("g", members=STATE.members[:1], queues=STATE.queues[:1])
    await one.coordinator.publish([], smaller)
    keys = await keys_of(group)
    assert not {"quotas/w2", "queues/c", "assignments/w2"} & set(keys)


async def test_claims_follow_what_is_held(group: Group) -> None:
    one = await group.join("w1", held=("a", "b"))
    two = await group.join("w2")
    # The next holder claims before the former one lets go: its claim stays.
    await two.coordinator.report(Report("w2", held=("b",)))
    await one.coordinator.report(Report("w1", held=("c",)))
    keys = await keys_of(group)
    claims = {key: value for key, value in keys.items() if key.startswith("claims/")}
    assert claims == {"claims/b": b"w2", "claims/c": b"w1"}


async def test_many_queues_take_several_transactions(group: Group) -> None:
    queues = tuple(f"q{number}" for number in range(300))
    one = await group.join("w1", held=queues)
    await one.until(Elected)
    state = GroupState("g", queues=tuple(QueueState(queue, "w1") for queue in queues))
    await one.coordinator.publish([], state)
    await one.coordinator.report(Report("w1"))
    keys = await keys_of(group)
    assert sum(key.startswith("queues/") for key in keys) == 300
    assert not any(key.startswith("claims/") for key in keys)


async def test_groups_are_found(group: Group) -> None:
    await group.join("w1")
    nested = Group(group.url)
    nested.name = f"{group.name}/inside"
    await nested.join("w1")
    found = await list_groups(group.url)
    assert {group.name, nested.name} <= set(found)
    assert len(found) == len(set(found))
    await nested.empty()
    assert nested.name not in await list_groups(group.url)


# -- who is there --------------------------------------------------------------------------------
async def test_the_dispatcher_hears_who_comes_reports_and_goes(group: Group) -> None:
    one = await group.join("w1")
    assert [r.member for r in (await one.until(Elected)).members] == ["w1"]
    two = await group.join("w2", weight=2.0)
    assert (await one.until(Reported, lambda e: e.report.member == "w2")).report.weight == 2.0
    await two.coordinator.report(Report("w2", held=("a",)))
    await one.until(Reported, lambda e: e.report.held == ("a",))
    await two.coordinator.leave()
    assert await one.until(Left) == Left("w2", died=False)


async def test_a_member_that_is_not_heard_of_has_died(group: Group) -> None:
    one = await group.join("w1")
    two = await group.join("w2")
    for task in list(two.coordinator._tasks):  # hung: its lease is not renewed
        task.cancel()
    assert await one.until(Left) == Left("w2", died=True)


async def test_the_next_one_takes_over_with_what_was_known(group: Group) -> None:
    one = await group.join("w1")
    await one.until(Elected)
    two = await group.join("w2", held=("a",))
    await one.coordinator.publish([Assignment("w2", Stamp(9, 1), ("a",))], STATE)
    assert (await two.until(Assigned)).assignment == Assignment("w2", Stamp(9, 1), ("a",))
    await one.coordinator.leave()
    elected = await two.until(Elected)
    assert elected.generation == 9
    assert [report.held for report in elected.members] == [("a",)]
    assert elected.state is not None
    assert elected.state.queues == STATE.queues


async def test_a_dispatcher_that_was_replaced_overwrites_nothing(group: Group) -> None:
    one = await group.join("w1")
    await one.until(Elected)
    two = await group.join("w2")
    for task in list(one.coordinator._tasks):  # hung
        task.cancel()
    await two.until(Elected)
    await two.coordinator.publish([Assignment("w2", Stamp(5, 1), ("new",))])
    await one.coordinator.publish([Assignment("w2", Stamp(4, 9), ("old",))], STATE)
    assert isinstance(one.told[-1], Deposed)
    keys = await keys_of(group)
    assert json.loads(keys["assignments/w2"])["queues"] == ["new"]
    assert "state" not in keys


async def test_a_member_whose_lease_ran_out_registers_again(group: Group) -> None:
    one = await group.join("w1")
    await one.until(Elected)
    two = await group.join("w2", held=("a",))
    membership = two.coordinator._membership
    assert membership is not None
    async with client_of(group) as client:
        await client.revoke(membership.lease)
    await one.until(Left)
    assert (await one.until(Reported)).report == Report("w2", held=("a",))
    await eventually_keys(group, lambda keys: keys.get("claims/a") == b"w2")


async def test_a_second_process_of_the_same_name_is_refused(group: Group) -> None:
    await group.join("w1", static=True)
    other = Member(group.url, group.name, "w1")
    with pytest.raises(Fenced, match=f"another process is in group '{group.name}' as 'w1'"):
        await other.join()


async def test_a_name_is_free_again_when_its_lease_has_run_out(group: Group) -> None:
    one = await group.join("w1", static=True)
    await one.until(Elected)
    await one.coordinator.publish([Assignment("w1", Stamp(3, 1), ("a",))])
    for task in list(one.coordinator._tasks):  # killed
        task.cancel()
    again = await group.join("w1", static=True)
    await again.until(Elected)
    await again.coordinator.publish([Assignment("w1", Stamp(4, 1), ("b",))])
    # What its former life was assigned is not told to the new one.
    assert (await again.until(Assigned)).assignment.queues == ("b",)


async def test_what_others_write_there_is_passed_over(group: Group) -> None:
    async with client_of(group) as client:
        root = f"/warren/{group.name}/"
        for key in ("members/ghost", "assignments/w1", "assignments/ghost", "commands/1", "state"):
            await client.put(root + key, b"not what a member writes")
        one = await group.join("w1")
        assert [r.member for r in (await one.until(Elected)).members] == ["w1"]
        for key in ("members/ghost2", "assignments/w1", "commands/2"):
            await client.put(root + key, b"[]")
        await one.coordinator.publish([Assignment("w1", Stamp(1, 1), ("a",))])
        assert (await one.until(Assigned)).assignment.queues == ("a",)
        person = EtcdCoordinator(group.url, group.name)
        await person.command(Command("pause", queue="a"))
        await person.close()
        assert (await one.until(Commanded)).command.queue == "a"
        await client.delete_all(f"{root}members/ghost")


async def test_a_member_does_not_lock_itself_out(group: Group) -> None:
    one = await group.join("w1")
    await one.until(Elected)
    membership = one.coordinator._membership
    assert membership is not None
    membership.lease = 0  # it believes that its lease ran out, and it did not
    membership.nudge()
    async with asyncio.timeout(WITHIN_S):
        while not membership.lease:
            await asyncio.sleep(0.01)
    await one.until(Elected)


# -- commands ------------------------------------------------------------------------------------
async def test_what_a_person_asks_reaches_the_dispatcher_once(group: Group) -> None:
    one = await group.join("w1")
    person = EtcdCoordinator(group.url, group.name)
    for queue in ("a", "b"):
        await person.command(Command("pause", queue=queue))
    await person.close()
    heard = [(await one.until(Commanded)).command for _ in range(2)]
    assert heard == [Command("pause", queue="a"), Command("pause", queue="b")]
    await eventually_keys(group, lambda keys: not any("commands/" in key for key in keys))


async def test_nobody_can_be_asked_in_a_group_without_members(group: Group) -> None:
    person = EtcdCoordinator(group.url, group.name)
    with pytest.raises(NoSuchGroup):
        await person.command(Command("pause", queue="a"))
    assert await person.read() is None
    await person.close()


# -- etcd goes and comes back --------------------------------------------------------------------
@pytest.fixture
async def private(tmp_path: Path) -> AsyncIterator[tuple[EtcdProcess, Group]]:
    with etcd_process(tmp_path) as server:
        group = Group(f"{server.url}?ttl_s=2&timeout_s=1")
        yield server, group
        await group.empty()


@pytest.mark.slow
async def test_etcd_gone_and_back_is_told_and_nobody_has_to_do_anything(
    private: tuple[EtcdProcess, Group],
) -> None:
    server, group = private
    one = await group.join("w1", held=("a",))
    two = await group.join("w2")
    await one.until(Elected)
    server.kill()
    for member in (one, two):
        await member.until(Unreachable)
    await one.until(Deposed)
    await one.coordinator.report(Report("w1", held=("a", "b")))
    await one.coordinator.publish([], STATE)  # goes nowhere, and does not raise
    server.start()
    for member in (one, two):
        await member.until(Reachable)
    await eventually_keys(
        group, lambda keys: {"claims/a", "claims/b", "members/w2", "dispatcher"} <= set(keys)
    )
    assert not [event for event in one.told + two.told if isinstance(event, Unreachable)]


@pytest.mark.slow
async def test_a_member_that_joins_while_etcd_is_away_is_in_when_it_is_back(
    private: tuple[EtcdProcess, Group],
) -> None:
    server, group = private
    server.kill()
    one = await group.join("w1", held=("a",))
    await one.until(Unreachable)
    server.start()
    await one.until(Reachable)
    assert (await one.until(Elected)).members == (Report("w1", held=("a",)),)


async def test_an_etcd_that_does_not_answer_is_told_once_with_its_endpoint(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (port,) = free_ports(1)
    with caplog.at_level(logging.INFO, logger=LOGGER):
        member = await Member(f"etcd://127.0.0.1:{port}", "g", "m").join()
        await member.until(Unreachable)
        for _ in range(3):  # further tries
            member.coordinator._failed("it does not answer")
        await member.coordinator.close()
    (told,) = [each for each in caplog.records if each.name.startswith(LOGGER)]
    assert told.levelname == "WARNING"
    assert f"127.0.0.1:{port}" in told.getMessage()
    assert "goes on trying" in told.getMessage()
