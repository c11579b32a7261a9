"""The bugs that the seed's own notes list, each with a test that would show it.

530 "attempt to reuse consumer tag", 504 "channel/connection is not open", a queue with two
consumers while another has none, protection that is not lifted on failure, "no queue rest", and
one failed operation that takes the whole connection down. Those that need no broker are in
``tests/unit/groups``.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tests.contract.groups.steps import Workers, eventually
from warren.client import connect

pytestmark = pytest.mark.timeout(180)


async def test_530_a_queue_that_goes_and_comes_back_is_consumed_under_a_new_tag(
    workers: Workers,
) -> None:
    queue, _ = await workers.declare(2)
    first, second = await workers.join_many(2)
    session = first.group._session, second.group._session
    for target in (second, first) * 3:
        await first.group.move(queue, target.name)
        await eventually(lambda t=target: queue in t.held)
        await workers.publish(1)
        await workers.all_handled()
    assert (first.group._session, second.group._session) == session


async def test_504_nothing_is_done_on_a_channel_that_is_closed(workers: Workers) -> None:
    """A handler that ends after its queue was taken away acknowledges into the void, quietly."""
    (queue,) = await workers.declare(1)
    worker = (await workers.join_many(1))[0]
    goes_on = asyncio.Event()
    worker.work = lambda _: asyncio.shield(goes_on.wait())
    await workers.publish(1)
    await eventually(lambda: any(line.phase == "begin" for line in workers.lines))
    session = worker.group._session
    await workers.channel.delete_queue(queue)
    await eventually(lambda: queue not in worker.held)
    goes_on.set()
    await workers.channel.declare_queue(queue, durable=True)
    await eventually(lambda: queue in worker.held)
    assert worker.group._session is session
    workers.lines.clear()  # the queue was deleted with its message


async def test_every_queue_has_one_consumer_and_none_has_two(workers: Workers) -> None:
    await workers.declare(8)
    await asyncio.gather(*(workers.join(f"w{number}") for number in range(4)))
    await workers.balanced()
    held = Counter(queue for queues in workers.held.values() for queue in queues)
    assert held == Counter(workers.queues)
    for queue in workers.queues:
        info = await workers.channel.declare_queue(queue, passive=True)
        assert info.consumers == 1


async def test_protection_is_lifted_when_a_claim_fails(workers: Workers) -> None:
    """A queue that could not be claimed is claimed as soon as it can be, also by another."""
    (queue,) = await workers.declare(1)
    async with connect(workers.broker.url) as foreign:
        channel = await foreign.channel()
        await channel.consume(queue, lambda _: None, exclusive=True)
        first = await workers.join()
        await eventually(lambda: first.group.snapshot().waiting.get(queue))
        second = await workers.join()
        await eventually(lambda: (state := workers.state()) and len(state.members) == 2)
        await first.group.move(queue, second.name)
        await eventually(lambda: queue in second.group.snapshot().waiting)
        assert queue not in first.group.snapshot().waiting
    await eventually(lambda: second.held == {queue})


async def test_more_members_than_queues_wait_for_their_turn(workers: Workers) -> None:
    (queue,) = await workers.declare(1)
    members = await workers.join_many(3)
    holder = next(worker for worker in members if worker.held)
    workers.kill(holder)
    await workers.balanced()
    assert sum(queue in worker.held for worker in workers.alive.values()) == 1


async def test_a_refused_operation_costs_its_channel_and_nothing_else(workers: Workers) -> None:
    good, taken = await workers.declare(2)
    async with connect(workers.broker.url) as foreign:
        channel = await foreign.channel()
        await channel.consume(taken, lambda _: None, exclusive=True)
        worker = await workers.join(queues=[good, taken, "there-is-no-such-queue"])
        await eventually(lambda: worker.group.snapshot().waiting.get(taken))
        session = worker.group._session
        await workers.publish(20, [good])
        await workers.all_handled()
        # Refused many times by now, and still the same connection and the same consumer.
        assert worker.group._session is session
        assert worker.group.snapshot().connected
        events = [what for _, what, queue in workers.events if queue == good]
        assert events == ["assigned"]
