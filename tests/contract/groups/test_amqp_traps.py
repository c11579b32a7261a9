"""What a coordinator that lives on the broker has to survive there."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.contract.groups.steps import Workers, eventually
from warren.client import Delivery, Properties
from warren.client.confirm import Confirm
from warren.errors import Unconfirmed
from warren.groups import claims
from warren.groups.coordination import amqp
from warren.groups.coordination.amqp import AmqpCoordinator
from warren.groups.coordination.amqp_words import Names, queue_options
from warren.groups.coordination.base import Command, Deposed, GroupState, Left
from warren.groups.session import Session

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def coordinator() -> str:
    return "amqp"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """All that any member was told by its coordinator."""
    told: list[object] = []
    hear = Session._hear

    def listen(session: Session, event: object) -> None:
        told.append(event)
        hear(session, event)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "_hear", listen)
    return told


async def test_token_and_will_are_renewed_before_the_broker_takes_them_for_stuck(
    workers: Workers, told: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AmqpCoordinator, "renew_s", 0.05)
    await workers.declare(2)
    await workers.join_many(2)
    dispatcher = workers.dispatcher
    assert dispatcher is not None
    coordinator = dispatcher.group._session._coordinator
    tags = set()

    def renewed() -> bool:
        tags.add(coordinator._token.delivery_tag)
        return len(tags) >= 5

    await eventually(renewed)
    assert workers.dispatcher is dispatcher
    assert not [event for event in told if isinstance(event, (Left, Deposed))]
    victim = next(w for w in workers.alive.values() if w is not dispatcher)
    workers.kill(victim)
    await workers.balanced()


async def test_a_will_is_held_until_the_broker_has_the_next_one(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody hears of the death of a member whose next will was lost on its way."""
    monkeypatch.setattr(AmqpCoordinator, "renew_s", 0.05)
    say, tried = AmqpCoordinator._say_bytes, Counter[str]()

    def lose_renewed(speaker: AmqpCoordinator, kind: str, body: bytes, key: str, **to: Any) -> Any:
        if kind != "renewed":
            return say(speaker, kind, body, key, **to)
        tried[key] += 1
        lost = Confirm(body, "", key, b"", False)
        lost.settle(Unconfirmed("", key, "connection lost"))
        return lost

    monkeypatch.setattr(AmqpCoordinator, "_say_bytes", lose_renewed)
    await workers.declare(4)
    await workers.join_many(2)
    victim = next(w for w in workers.alive.values() if w is not workers.dispatcher)
    will = victim.group._session._coordinator._will.queue
    await eventually(lambda: tried[will] >= 2)
    workers.kill(victim)
    await workers.balanced()


async def test_somebody_who_deletes_the_token_brings_about_an_election_and_no_move(
    workers: Workers,
) -> None:
    await workers.declare(6)
    await workers.join_many(3)
    before = workers.held
    await workers.channel.delete_queue(Names(workers.group).token)
    await workers.join()
    await workers.balanced()
    assert workers.dispatcher is not None
    assert all(workers.held[name] <= held for name, held in before.items())


async def test_a_roll_call_before_its_will_is_there_does_not_bury_a_member(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who answers is looked up by its will; who has none is dead, for as long as it lives."""
    await workers.declare(4)
    (first,) = await workers.join_many(1)
    deposit = AmqpCoordinator._deposit_will

    async def called_before(coordinator: AmqpCoordinator, member: str) -> None:
        dispatcher = first.group._session._coordinator
        dispatcher._say("roll-call", first.name, "all")
        await dispatcher._mouth.confirmed()
        # A channel opened behind the inbox's consumer: what was called has been heard by now.
        async with await coordinator._connected.channel() as channel:
            await channel.declare_queue(Names(workers.group).inbox(member), passive=True)
        await deposit(coordinator, member)

    monkeypatch.setattr(AmqpCoordinator, "_deposit_will", called_before)
    await workers.join()
    await workers.balanced()


class Gate:
    """Holds a step of ``AmqpCoordinator`` up until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        self._event = asyncio.Event()
        self.reached = False
        go_on = getattr(AmqpCoordinator, step)

        async def wait_first(coordinator: AmqpCoordinator, *args: Any) -> None:
            self.reached = True
            await self._event.wait()
            await go_on(coordinator, *args)

        monkeypatch.setattr(AmqpCoordinator, step, wait_first)

    def open(self) -> None:
        self._event.set()


async def test_a_group_that_elects_a_dispatcher_is_not_said_to_be_empty(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workers.declare(2)
    dispatcher, other = await workers.join_many(2)
    (theirs,), (mine,) = dispatcher.held, other.held
    monkeypatch.setattr(amqp, "ANSWER_S", 1.0)
    gate = Gate(monkeypatch, "_announce")
    workers.kill(dispatcher)
    await eventually(lambda: gate.reached)
    person = AmqpCoordinator(workers.broker.url, workers.group)
    assert await person.read() == GroupState(workers.group)
    monkeypatch.setattr(amqp, "ANSWER_S", 30.0)
    asked = asyncio.create_task(person.command(Command("pause", queue=mine)))
    gate.open()
    await asked
    await eventually(lambda: other.held == {theirs})
    shown = await person.read()
    assert shown is not None
    assert shown.dispatcher == other.name


async def test_a_command_that_comes_during_the_roll_call_is_done_after_it(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workers.declare(2)
    dispatcher, other = await workers.join_many(2)
    (theirs,), (mine,) = dispatcher.held, other.held
    monkeypatch.setattr(amqp, "ROLL_CALL_S", 30.0)
    gate = Gate(monkeypatch, "_wait_for_answers")
    heard: list[str] = []
    hear = AmqpCoordinator._heard_as_dispatcher

    def listen(coordinator: AmqpCoordinator, kind: str, delivery: Delivery) -> None:
        heard.append(kind)
        hear(coordinator, kind, delivery)

    monkeypatch.setattr(AmqpCoordinator, "_heard_as_dispatcher", listen)
    workers.kill(dispatcher)
    await eventually(lambda: gate.reached)
    asked = asyncio.create_task(other.group.pause(mine))
    await eventually(lambda: "command" in heard)
    gate.open()
    await asked
    await eventually(lambda: other.held == {theirs})


async def test_messages_that_nobody_of_the_group_wrote_do_no_harm(workers: Workers) -> None:
    await workers.declare(4)
    first, second = await workers.join_many(2)
    before = workers.held
    channel, exchange = workers.channel, Names(workers.group).exchange
    for kind in ("assign", "report", "state", "command", "goodbye", "roll-call", "odd", None):
        for key in ("all", "dispatcher", f"member.{first.name}", f"member.{second.name}"):
            for body in (b"", b"{", b"null", b"[]", b'{"member": 1}', b'["x", "y"]'):
                properties = Properties(type=kind)
                channel.publish(body, exchange=exchange, routing_key=key, properties=properties)
    await channel.confirmed()
    dispatcher = workers.dispatcher
    assert dispatcher is not None
    workers.kill(dispatcher)
    await workers.balanced()
    survivor = next(iter(workers.alive.values()))
    assert before[survivor.name] <= survivor.held


async def test_a_member_that_lost_its_connection_comes_back_by_itself(workers: Workers) -> None:
    await workers.declare(6)
    await workers.join_many(3)
    for worker in list(workers.alive.values()):
        before = worker.group._session
        before._connection.link.abort()
        await eventually(lambda w=worker, b=before: w.group._session not in (None, b))
        await workers.publish(3)
        await workers.balanced()
        await workers.all_handled()


async def test_very_many_queues_are_spread_over_connections(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "ROOM", 6)
    await workers.declare(15)
    worker = (await workers.join_many(1))[0]
    connections = worker.group._session._claims._connections
    assert len(connections) >= 3
    await workers.publish(2)
    await workers.all_handled()
    connections[1].link.abort()
    await workers.publish(2)
    await workers.balanced()
    await workers.all_handled()


async def test_a_connection_that_may_have_few_channels_is_not_filled_up(workers: Workers) -> None:
    await workers.declare(60)
    url = f"{workers.broker.url}?channel_max=30"
    first = await workers.join(url=url)
    await workers.balanced()
    await workers.publish(1)
    await workers.all_handled()
    connections = first.group._session._claims._connections
    assert len(connections) >= 3
    assert len(connections[0].channels) < 30  # for who looks for queues and wills
    second = await workers.join(url=url)
    await workers.balanced()
    workers.kill(second)
    await workers.balanced()


async def test_a_slow_leaver_holds_up_only_the_queue_it_works_on(workers: Workers) -> None:
    await workers.declare(4)
    slow, other = await workers.join_many(2)
    goes_on = asyncio.Event()
    slow.work = lambda _: goes_on.wait()
    queue = min(slow.held)
    await workers.publish(1, [queue])
    await eventually(lambda: any(line.phase == "begin" for line in workers.lines))
    leaving = asyncio.create_task(workers.leave(slow))
    await eventually(lambda: other.held == set(workers.queues) - {queue})
    goes_on.set()
    await leaving
    await eventually(lambda: other.held == set(workers.queues))


def test_queues_are_durable_only_where_the_broker_takes_no_others() -> None:
    def durable(product: str, version: str) -> bool:
        return bool(queue_options({"product": product, "version": version})["durable"])

    assert not durable("RabbitMQ", "3.10.8")
    assert not durable("RabbitMQ", "4.2.1")
    assert durable("RabbitMQ", "4.3.0")
    assert durable("RabbitMQ", "5.0.0-beta.1")
    assert not durable("LavinMQ", "2.9.0")


async def test_every_connection_of_a_member_has_the_heartbeat_of_the_group(
    workers: Workers,
) -> None:
    await workers.declare(1)
    (worker,) = await workers.join_many(1, heartbeat_s=6)
    session = worker.group._session
    connections = (session._connection, session._coordinator._voice)
    assert [each.link.session.heartbeat_s for each in connections] == [3, 3]
