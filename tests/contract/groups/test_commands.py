"""``warren group``: the same on both brokers and with both coordinators."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from tests.contract.cli.conftest import Cli, cli, refused
from tests.support.brokers import TestBroker
from tests.support.etcd import Etcd
from tests.support.eventually import eventually
from tests.support.process import ENVIRONMENT
from tests.support.servers import free_ports
from warren.amqp.properties import Properties
from warren.client import Delivery, connect
from warren.groups.group import Group

WITHIN_S = 30
__all__ = ["cli", "refused"]  # fixtures


@dataclass
class Running:
    """A group of two with four queues, in a thread of its own."""

    name: str
    queues: list[str]
    coordinator: str


@pytest.fixture(scope="module", params=["amqp", "etcd"])
def running(request: pytest.FixtureRequest, broker: TestBroker) -> Iterator[Running]:
    """One for all tests: each leaves it as it was, balanced."""
    coordinator = broker.url
    if request.param == "etcd":
        etcd: Etcd = request.getfixturevalue("etcd")
        coordinator = etcd.url.replace("http", "etcd")
    mark = secrets.token_hex(4)
    group = Running(f"g-{mark}", [f"q{number}-{mark}" for number in range(4)], coordinator)
    ready, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=asyncio.run, args=(live(broker, group, ready, stop),))
    thread.start()
    try:
        assert ready.wait(WITHIN_S)
        yield group
    finally:
        stop.set()
        thread.join(WITHIN_S)


async def live(
    broker: TestBroker, group: Running, ready: threading.Event, stop: threading.Event
) -> None:
    async def handle(delivery: Delivery) -> None:
        while delivery.body == b"stay" and not stop.is_set():
            await asyncio.sleep(0.02)

    async with AsyncExitStack() as stack:
        connection = await stack.enter_async_context(connect(broker.url))
        channel = await connection.channel()
        for queue in group.queues:
            await channel.declare_queue(queue)
        for member in ("ann", "bob"):
            place = Group(
                broker.url,
                group.name,
                group.queues,
                listener=handle,
                coordinator=group.coordinator,
                member_name=member,
                session_s=0,
                drain_s=1.0,
                min_interval_s=0.1,
                discover_s=0.5,
                management=broker.management.replace("//", "//guest:guest@"),
            )
            await stack.enter_async_context(place)
        ready.set()
        while not stop.is_set():
            await asyncio.sleep(0.02)
    async with connect(broker.url) as connection:
        channel = await connection.channel()
        for queue in group.queues:
            await channel.delete_queue(queue)


@pytest.fixture
def told(cli: Cli, running: Running) -> Callable[..., str]:
    """Runs ``warren group``, which must succeed; what it printed."""

    def run(command: str, *words: str) -> str:
        said = cli(
            "group", command, *words, "--timeout-s", str(WITHIN_S), "--coordinator",
            running.coordinator,
        )  # fmt: skip
        assert said.code == 0, said
        return said.out

    return run


@pytest.fixture
def state(cli: Cli, running: Running) -> Callable[[], dict[str, object]]:
    def run() -> dict[str, object]:
        said = cli(
            "group", "describe", running.name, "--json", "--coordinator", running.coordinator
        )
        assert said.code == 0, said
        found: dict[str, object] = said.json
        return found

    return run


def holders(state: dict[str, object]) -> dict[str, list[str]]:
    return {each["member"]: sorted(each["queues"]) for each in state["members"]}  # type: ignore[attr-defined]


def balanced(state: Callable[[], dict[str, object]]) -> dict[str, list[str]]:
    """Who holds what, when each holds its two."""

    def check() -> dict[str, list[str]]:
        found = holders(state())
        assert [len(queues) for queues in found.values()] == [2, 2], found
        return found

    return eventually(check, WITHIN_S)


def test_describe_shows_who_holds_what(
    told: Callable[..., str], state: Callable[[], dict[str, object]], running: Running
) -> None:
    balanced(state)
    out = told("describe", running.name)
    lines = [line.split() for line in out.splitlines()]
    assert ["dispatcher", "ann"] in lines
    (ann,) = [line for line in lines if line[:1] == ["ann"]]
    assert ann[1:3] == ["2", "2"]
    assert "dispatcher" in ann
    for queue in running.queues:
        (row,) = [line for line in lines if line[:1] == [queue]]
        assert row[1] in ("ann", "bob")
    assert any(line[-3:] == ["ann", "became", "dispatcher"] for line in lines)


def test_a_part_of_a_group_alone(
    told: Callable[..., str], state: Callable[[], dict[str, object]], running: Running
) -> None:
    balanced(state)
    assert told("describe", running.name, "--members").split()[0] == "MEMBER"
    assert len(told("describe", running.name, "--queues").splitlines()) == 5
    assert "reason" in told("describe", running.name, "--rebalances").lower()


def test_lists_have_the_group(
    told: Callable[..., str], state: Callable[[], dict[str, object]], running: Running
) -> None:
    balanced(state)
    (row,) = [line.split() for line in told("list").splitlines() if running.name in line]
    assert row[:4] == [running.name, "ann", "2", "4"]


def test_watch_tells_again_and_again(told: Callable[..., str], running: Running) -> None:
    lines = told("watch", running.name, "--count", "2", "--every-s", "0.05").splitlines()
    assert len(lines) == 2
    assert "members=" in lines[0]


def test_a_drained_member_holds_nothing_until_that_is_undone(
    told: Callable[..., str], state: Callable[[], dict[str, object]], running: Running
) -> None:
    balanced(state)
    assert told("drain", running.name, "bob") == "bob is drained and may be stopped\n"
    assert holders(state())["bob"] == []
    assert told("drain", running.name, "bob", "--undo") == "bob gets queues again\n"
    balanced(state)


def test_nobody_works_on_a_paused_queue(
    told: Callable[..., str], state: Callable[[], dict[str, object]], running: Running
) -> None:
    balanced(state)
    queue = running.queues[0]
    assert told("pause", running.name, queue).startswith(f"nobody works on {queue}")
    assert not any(queue in held for held in holders(state()).values())
    assert told("resume", running.name, queue) == f"{queue} is worked on again\n"
    balanced(state)


def test_a_queue_is_moved_to_a_member(
    told: Callable[..., str], state: Callable[[], dict[str, object]], running: Running
) -> None:
    queue = balanced(state)["ann"][0]
    assert told("move", running.name, queue, "bob") == f"bob works on {queue}\n"
    assert queue in holders(state())["bob"]


def test_what_was_asked_is_told_to_programs(
    told: Callable[..., str], state: Callable[[], dict[str, object]], running: Running
) -> None:
    balanced(state)
    queue = running.queues[0]
    asked = {"group": running.name, "queue": queue, "done": True}
    said = json.loads(told("pause", running.name, queue, "--json"))
    assert said == {**asked, "command": "pause"}
    said = json.loads(told("resume", running.name, queue, "--json"))
    assert said == {**asked, "command": "resume"}
    balanced(state)


def test_a_paused_queue_is_shown_as_nobodys(
    told: Callable[..., str], state: Callable[[], dict[str, object]], running: Running
) -> None:
    balanced(state)
    queue = running.queues[0]
    told("pause", running.name, queue)
    lines = [line.split() for line in told("describe", running.name, "--queues").splitlines()]
    (row,) = [line for line in lines if line[:1] == [queue]]
    assert row[1] in ("(ann)", "(bob)")
    assert row[-1] == "paused"
    told("resume", running.name, queue)
    balanced(state)


# -- what goes wrong -----------------------------------------------------------------------------
def test_a_group_that_is_not_there_is_told_with_the_nearest(
    refused: Callable[..., str], state: Callable[[], dict[str, object]], running: Running
) -> None:
    balanced(state)
    where = ("--coordinator", running.coordinator)
    complaint = refused("group", "describe", f"{running.name}x", *where)
    assert complaint.startswith(f"nobody is in group '{running.name}x' at ")
    assert complaint.endswith(f"did you mean '{running.name}'?")
    assert "guest:guest" not in complaint


def test_a_move_that_can_not_happen_is_refused_at_once(
    told: Callable[..., str],
    refused: Callable[..., str],
    state: Callable[[], dict[str, object]],
    running: Running,
) -> None:
    queue = balanced(state)["ann"][0]
    move = ("group", "move", running.name, queue, "bob", "--coordinator", running.coordinator)
    told("pause", running.name, queue)
    assert f"'{queue}' is paused: warren group resume" in refused(*move)
    told("resume", running.name, queue)
    told("drain", running.name, "bob")
    assert "'bob' is drained: warren group drain" in refused(*move)
    told("drain", running.name, "bob", "--undo")
    balanced(state)


def test_a_group_that_nobody_is_in_is_told_in_one_line(broker: TestBroker) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "warren", "group", "describe", "billing-of-nobody"],
        env={**ENVIRONMENT, "WARREN_COORDINATOR": broker.url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"warren: nobody is in group 'billing-of-nobody' .*\n", done.stderr)


def test_a_member_or_queue_that_is_not_there_is_told(
    refused: Callable[..., str], state: Callable[[], dict[str, object]], running: Running
) -> None:
    balanced(state)
    where = ("--coordinator", running.coordinator)
    complaint = refused("group", "drain", running.name, "anne", *where)
    assert complaint == f"group '{running.name}' has no member 'anne'; did you mean 'ann'?"
    complaint = refused("group", "pause", running.name, "zzz", *where)
    assert complaint.startswith(f"group '{running.name}' has no queue 'zzz'; there are: ")


@pytest.mark.parametrize("scheme", ["amqp", "etcd"])
def test_a_coordinator_that_is_not_there_is_told(refused: Callable[..., str], scheme: str) -> None:
    (port,) = free_ports(1)
    where = ("--coordinator", f"{scheme}://user:secret@127.0.0.1:{port}")
    complaint = refused("group", "describe", "billing", *where)
    assert f"127.0.0.1:{port}" in complaint
    assert "secret" not in complaint


def test_a_coordinator_of_no_known_kind_is_told(refused: Callable[..., str]) -> None:
    complaint = refused("group", "list", "--coordinator", "redis://here", code=2)
    assert complaint.startswith("--coordinator (argument): 'redis://here': one of amqp, ")


# -- last, for the first message stays with its member --------------------------------------------
def test_backlog_and_lag_are_told_where_they_are_known(
    cli: Cli,
    broker: TestBroker,
    running: Running,
    state: Callable[[], dict[str, object]],
) -> None:
    balanced(state)

    async def publish() -> None:
        async with connect(broker.url) as connection:
            channel = await connection.channel()
            for body in (b"stay", b"1", b"2"):
                stamped = Properties(timestamp=int(time.time()) - 100)
                await channel.publish(body, routing_key=running.queues[0], properties=stamped)

    asyncio.run(publish())

    def queue() -> dict[str, object]:
        (found,) = [q for q in state()["queues"] if q["queue"] == running.queues[0]]  # type: ignore[attr-defined]
        return dict(found)

    assert eventually(lambda: queue()["messages"] == 3, WITHIN_S, every_s=0.2)
    # RabbitMQ tells the time stamp of the first message that is ready, if at all.
    assert queue()["lag_s"] is None or float(str(queue()["lag_s"])) >= 99
