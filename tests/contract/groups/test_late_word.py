"""The coordinator and the connection to the broker need not live and die together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from tests.contract.groups.steps import Worker, Workers, eventually
from tests.support.brokers import TestBroker
from warren.client import Delivery
from warren.errors import NotFound
from warren.groups.coordination.amqp import AmqpCoordinator
from warren.groups.coordination.amqp_wills import Deposit
from warren.groups.coordination.base import Assigned, Assignment, Stamp
from warren.groups.group import Group
from warren.groups.member import Claim


async def test_an_assignment_that_comes_after_the_connection_was_lost_is_ignored(
    broker: TestBroker, name: Callable[[str], str]
) -> None:
    async def handle(delivery: Delivery) -> None: ...

    async with Group(broker.url, name("group"), [], listener=handle) as group:
        session = group._session
        assert session is not None
        session._connection.link.abort()
        async with asyncio.timeout(30):
            await session.ended.wait()
        # As etcd would tell it, which knows nothing of our connection.
        late = Assignment(group.member_name, Stamp(10**6, 1), ("nothing",))
        session._hear(Assigned(late))
        assert group._seat.member.state_of("nothing") is Claim.FREE


def _will_of(worker: Worker) -> Delivery:
    coordinator = worker.group._session._coordinator
    if isinstance(coordinator, AmqpCoordinator):
        return coordinator._will
    return coordinator._deaths._held


async def _delete(will: Delivery, workers: Workers) -> None:
    await workers.channel.delete_queue(will.queue)


async def _close_channel(will: Delivery, workers: Workers) -> None:
    """As RabbitMQ does with one that holds a message for too long."""
    with pytest.raises(NotFound):
        await will.consumer.channel.declare_queue(f"no {will.queue}", passive=True)


@pytest.mark.parametrize("take", [_delete, _close_channel])
async def test_a_member_whose_will_is_taken_away_begins_anew(
    workers: Workers, take: Callable[[Delivery, Workers], Awaitable[None]]
) -> None:
    await workers.declare(4)
    await workers.join_many(2)
    victim = next(w for w in workers.alive.values() if w is not workers.dispatcher)
    session = victim.group._session
    await take(_will_of(victim), workers)
    await eventually(lambda: victim.group._session not in (None, session))
    await workers.balanced()
    await workers.publish(3)
    await workers.all_handled()


async def test_a_member_that_loses_its_connection_while_it_comes_back_tries_again(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workers.declare(2)
    (worker,) = await workers.join_many(1)
    came, cut_off = Deposit.came, []

    def lose_it_once(deposit: Deposit) -> None:
        if cut_off:
            came(deposit)
        else:
            cut_off.append(deposit)
            deposit.connection.link.abort()

    monkeypatch.setattr(Deposit, "came", lose_it_once)
    before = worker.group._session
    before._connection.link.abort()
    await eventually(lambda: cut_off and worker.group._session not in (None, before))
    await workers.publish(3)
    await workers.all_handled()


async def test_what_is_left_of_a_lost_connection_decides_nothing(workers: Workers) -> None:
    """The member's next life has the queues: what ends late in the last one must not meddle."""
    await workers.declare(2)
    (worker,) = await workers.join_many(1)
    before, member = worker.group._session, worker.group._seat.member
    assert before is not None
    before._connection.link.abort()
    await eventually(lambda: worker.group._session not in (None, before))
    await workers.balanced()
    before.poke()
    member.lost(workers.queues[0], "taken away", time.monotonic())
    worker.group._session.poke()
    await workers.publish(3)
    await workers.all_handled()
    await workers.balanced()
