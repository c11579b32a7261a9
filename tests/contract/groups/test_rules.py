"""The rules of groups, by their numbers, on every broker and every coordinator.

After each test ``check_group`` proves from what the handlers did: never two members on one queue,
nothing lost, order kept, twice only if flagged. And nothing of the group is left on the broker.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.contract.groups.steps import Workers, eventually
from warren.client import Delivery, connect
from warren.errors import AccessRefused, Fenced

pytestmark = pytest.mark.timeout(180)


async def test_rule_1_order_is_kept_and_nothing_lost_over_handovers_and_crashes(
    workers: Workers,
) -> None:
    await workers.declare(6)
    first, second = await workers.join_many(2)
    first.work = second.work = lambda _: asyncio.sleep(0.002)
    await workers.publish(30)
    third = await workers.join()
    await workers.publish(10)
    await workers.balanced()
    workers.kill(second)
    await workers.publish(10)
    await workers.balanced()
    await workers.leave(first)
    await workers.publish(5)
    await workers.all_handled()
    assert third.held == set(workers.queues)


async def test_rule_1_the_broker_keeps_a_second_consumer_out(workers: Workers) -> None:
    """Whatever a coordinator believes: the queue is closed to others."""
    await workers.declare(1)
    await workers.join_many(1)
    seen: list[Delivery] = []
    async with connect(workers.broker.url) as other:
        channel = await other.channel()
        with pytest.raises(Exception, match="exclusive use"):
            await channel.consume(workers.queues[0], seen.append)
    assert seen == []


@pytest.mark.parametrize("kind", ["classic", "quorum"])
async def test_rule_1_queues_with_a_single_active_consumer_are_worked_on_by_one(
    workers: Workers, kind: str
) -> None:
    arguments = {"x-single-active-consumer": True, "x-queue-type": kind}
    await workers.declare(4, arguments=arguments)
    first, _ = await workers.join_many(2)
    await workers.publish(10)
    workers.kill(first)
    await workers.publish(10)
    await workers.balanced()
    await workers.all_handled()


async def test_rule_1_a_queue_that_is_declared_anew_without_it_is_held_exclusively(
    workers: Workers,
) -> None:
    (queue,) = await workers.declare(1, arguments={"x-single-active-consumer": True})
    (worker,) = await workers.join_many(1)
    await workers.channel.delete_queue(queue)
    await eventually(lambda: not worker.held)
    await workers.channel.declare_queue(queue, durable=True)
    await workers.balanced()
    async with connect(workers.broker.url) as other:
        channel = await other.channel()
        with pytest.raises(AccessRefused, match="exclusive use"):
            await channel.consume(queue, lambda _: None)


async def test_rule_2_quotas_differ_by_at_most_one(workers: Workers) -> None:
    await workers.declare(7)
    await workers.join_many(3)
    assert sorted(map(len, workers.held.values())) == [2, 2, 3]


async def test_rule_2_and_10_weights_count_by_largest_remainder(workers: Workers) -> None:
    await workers.declare(10)
    heavy = await workers.join(weight=2.0)
    light = await workers.join(weight=1.0)
    await workers.balanced(spread=10)
    await eventually(lambda: (len(heavy.held), len(light.held)) == (7, 3))


async def test_rule_3_one_joins_and_only_its_share_moves(workers: Workers) -> None:
    await workers.declare(20)
    await workers.join_many(4)
    before = {queue: name for name, held in workers.held.items() for queue in held}
    workers.events.clear()
    newcomer = await workers.join()
    await workers.balanced()
    assert len(newcomer.held) == 4
    after = {queue: name for name, held in workers.held.items() for queue in held}
    assert {queue for queue in before if before[queue] != after[queue]} == newcomer.held
    touched = {queue for _, _, queue in workers.events}
    assert touched == newcomer.held


async def test_rule_3_one_leaves_and_only_its_own_move(workers: Workers) -> None:
    await workers.declare(12)
    _, _, leaver = await workers.join_many(3)
    own = leaver.held
    workers.events.clear()
    await workers.leave(leaver)
    await workers.balanced()
    assert {queue for _, _, queue in workers.events} == own


async def test_rule_4_a_running_handler_finishes_before_the_next_member_begins(
    workers: Workers,
) -> None:
    await workers.declare(2)
    first = await workers.join()
    await workers.balanced()
    goes_on = asyncio.Event()
    first.work = lambda _: goes_on.wait()
    await workers.publish(3)
    await eventually(lambda: sum(line.phase == "begin" for line in workers.lines) == 2)
    second = await workers.join()
    await eventually(lambda: first.group.snapshot().releasing)
    assert second.held == set()
    goes_on.set()
    await workers.balanced()
    await workers.all_handled()
    # The first message was acknowledged before the handover: nobody saw it twice.
    assert not [line for line in workers.lines if line.number == 0 and line.redelivered]


async def test_rule_4_the_drain_time_bounds_a_handover(workers: Workers) -> None:
    await workers.declare(2)
    first = await workers.join(drain_s=0.3)
    await workers.balanced()
    first.work = lambda _: asyncio.sleep(3600)
    await workers.publish(1)
    await eventually(lambda: sum(line.phase == "begin" for line in workers.lines) == 2)
    second = await workers.join()
    await workers.balanced()
    moved = next(iter(second.held))
    assert ("lost", moved) in [(what, queue) for _, what, queue in workers.events]
    await eventually(lambda: any(li.phase == "end" and li.queue == moved for li in workers.lines))
    again = [li for li in workers.lines if li.queue == moved and li.phase == "begin"]
    assert again[-1].redelivered
    # What was cut short counts as a disturbance; the other one is let go by its member's end.
    workers.kill(first)
    await workers.all_handled()


async def test_rule_4_queues_that_do_not_move_go_on_meanwhile(workers: Workers) -> None:
    await workers.declare(4)
    first = await workers.join()
    await workers.balanced()
    stuck = asyncio.Event()
    await workers.publish(1)
    await workers.all_handled()
    first.work = lambda _: stuck.wait()
    await workers.publish(1)
    await eventually(lambda: sum(line.phase == "begin" for line in workers.lines) == 8)
    await workers.join()
    await eventually(lambda: len(first.group.snapshot().releasing) == 2)
    # Those that stay are still consumed by the same consumer on the same channel.
    assert len(first.held) == 2
    stuck.set()
    await workers.publish(1)
    await workers.balanced()
    await workers.all_handled()
    kept = first.held
    events = [(what, queue) for who, what, queue in workers.events if who == first.name]
    assert all(("revoked", queue) not in events for queue in kept)


async def test_rule_5_the_queues_of_a_dead_member_are_taken_over(workers: Workers) -> None:
    await workers.declare(9)
    await workers.join_many(3)
    victim = next(w for w in workers.alive.values() if w is not workers.dispatcher)
    # Long after which the group would have rebalanced anyway: a death does not wait.
    workers.kill(victim)
    await workers.publish(2)
    await workers.all_handled()
    await workers.balanced()


async def test_rule_6_a_dead_dispatcher_is_replaced_and_claims_are_untouched(
    workers: Workers,
) -> None:
    await workers.declare(9)
    await workers.join_many(3)
    dispatcher = workers.dispatcher
    assert dispatcher is not None
    kept = {name: held for name, held in workers.held.items() if name != dispatcher.name}
    workers.events.clear()
    workers.kill(dispatcher)
    await eventually(lambda: workers.dispatcher)
    await workers.balanced()
    assert all(held <= workers.held[name] for name, held in kept.items())
    touched = {queue for who, what, queue in workers.events if what != "assigned"}
    assert not touched & {queue for held in kept.values() for queue in held}


async def test_rule_7_a_burst_of_joins_makes_one_rebalance(workers: Workers) -> None:
    await workers.declare(8)
    await workers.join(min_interval_s=2.0)
    await workers.balanced()
    for _ in range(3):
        await workers.join(min_interval_s=2.0)
    await workers.balanced()
    state = workers.state()
    assert state is not None
    joins = [each for each in state.rebalances if "joined" in each.reason]
    assert len(joins) <= 2
    assert sum(each.reason.count("joined") for each in joins) == 3


async def test_rule_7_a_death_does_not_wait_and_takes_the_waiting_joins_along(
    workers: Workers,
) -> None:
    await workers.declare(4)
    first = await workers.join(min_interval_s=3600.0)
    await workers.balanced()
    second, third = [await workers.join(min_interval_s=3600.0) for _ in range(2)]

    def known() -> set[str]:
        state = workers.state()
        return {each.member for each in state.members} if state else set()

    await eventually(lambda: known() == {first.name, second.name, third.name})
    assert first.held == set(workers.queues)
    workers.kill(second)
    await workers.balanced()


async def test_rule_8_a_pattern_finds_queues_as_they_come_and_go(workers: Workers) -> None:
    one, two = await workers.declare(2, "orders")
    pattern = f"{one[:-4]}*", f"{two[:-4]}*"
    other = (await workers.declare(1, "letters"))[0]
    first = await workers.join(queues=list(pattern), discover_s=0.2)
    await eventually(lambda: first.held == {one, two})
    late = one[:-4] + "late"
    await workers.channel.declare_queue(late, durable=True)
    await eventually(lambda: first.held == {one, two, late})
    await workers.channel.delete_queue(two)
    await eventually(lambda: first.held == {one, late})
    await workers.channel.delete_queue(late)
    await eventually(lambda: first.held == {one})
    assert other not in first.held


async def test_rule_8_a_queue_nobody_can_claim_is_reported_with_the_reason(
    workers: Workers,
) -> None:
    taken, missing = (await workers.declare(1))[0], "there-is-no-such-queue"
    async with connect(workers.broker.url) as other:
        channel = await other.channel()
        await channel.consume(taken, lambda _: None, exclusive=True)
        worker = await workers.join(queues=[taken, missing])

        def problems() -> dict[str, str | None]:
            state = workers.state()
            return {each.queue: each.problem for each in state.queues} if state else {}

        await eventually(lambda: "exclusive use" in (problems().get(taken) or ""))
        await eventually(lambda: "no queue" in (problems().get(missing) or ""))
    await eventually(lambda: worker.held == {taken})
    await eventually(lambda: problems().get(taken) is None)


@pytest.mark.parametrize("management", [None, "http://127.0.0.1:1"], ids=["api", "amqp-alone"])
async def test_rule_8_a_quorum_queue_that_lets_two_consumers_in_is_refused(
    workers: Workers, management: str | None
) -> None:
    await workers.declare(1, arguments={"x-queue-type": "quorum"})
    await workers.join(**({"management": management} if management else {}))

    def problem() -> str | None:
        state = workers.state()
        return state.queues[0].problem if state and state.queues else None

    await eventually(lambda: "x-single-active-consumer" in (problem() or ""))


async def test_rule_9_members_even_out_by_message_rate(workers: Workers) -> None:
    await workers.declare(6)
    options = {"balance": "load", "load_interval_s": 0.5}
    first, _ = [await workers.join(**options) for _ in range(2)]
    await workers.balanced()  # all idle: by count
    busy = sorted(first.held)[:2]

    async def feed() -> None:
        while True:
            await workers.publish(5, busy)
            await asyncio.sleep(0.02)

    feeding = asyncio.create_task(feed())
    try:
        await eventually(lambda: all(held & set(busy) for held in workers.held.values()))
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
    await workers.all_handled()
    state = workers.state()
    assert state is not None
    assert any(each.reason == "loads differ" for each in state.rebalances)


async def test_rule_10_a_static_member_gets_its_queues_back_and_nothing_else_moves(
    workers: Workers,
) -> None:
    await workers.declare(6)
    await workers.join()
    static = await workers.join(member_name="static", session_s=60.0)
    await workers.balanced()
    own = static.held
    workers.events.clear()
    workers.kill(static)
    back = await workers.join(member_name="static", session_s=60.0)
    await eventually(lambda: back.held == own)
    assert {queue for _, what, queue in workers.events if what == "assigned"} == own


async def test_rule_10_a_name_can_be_used_by_one_process_at_a_time(workers: Workers) -> None:
    await workers.declare(1)
    await workers.join(member_name="static")
    with pytest.raises(Fenced, match="member_name"):
        await workers.join(member_name="static")


async def test_rule_10_a_member_can_be_drained(workers: Workers) -> None:
    await workers.declare(4)
    first, second = await workers.join_many(2)
    await first.group.drain(second.name)
    await eventually(lambda: (len(first.held), len(second.held)) == (4, 0))
    await second.group.undrain(second.name)
    await workers.balanced()


async def test_rule_10_a_queue_can_be_paused_and_resumed(workers: Workers) -> None:
    one, *rest = await workers.declare(4)
    await workers.join_many(2)
    before = workers.held
    member = next(w for w in workers.alive.values())
    await member.group.pause(one)
    await eventually(lambda: one not in set().union(*workers.held.values()))
    await workers.publish(2)
    others = {(queue, number) for queue in rest for number in (0, 1)}
    await eventually(
        lambda: {(li.queue, li.number) for li in workers.lines if li.phase == "end"} == others
    )
    await member.group.resume(one)
    await workers.all_handled()
    await eventually(lambda: workers.held == before)


async def test_rule_10_a_pause_outlives_the_dispatcher(workers: Workers) -> None:
    one, *rest = await workers.declare(4)
    await workers.join_many(3)
    dispatcher = workers.dispatcher
    assert dispatcher is not None
    await dispatcher.group.pause(one)
    watcher = next(w for w in workers.alive.values() if w is not dispatcher)

    async def shown() -> bool:
        state = await watcher.group.describe()
        return state is not None and any(q.paused for q in state.queues)

    while not await shown():
        await asyncio.sleep(0.05)
    workers.kill(dispatcher)
    await eventually(lambda: workers.dispatcher)
    await workers.balanced(rest)
    assert one not in set().union(*workers.held.values())


async def test_a_queue_can_be_moved_by_hand(workers: Workers) -> None:
    await workers.declare(4)
    first, second = await workers.join_many(2)
    queue = min(first.held)
    await first.group.move(queue, second.name)
    await eventually(lambda: queue in second.held)
    await workers.balanced()


async def test_every_member_can_describe_the_whole_group(workers: Workers) -> None:
    await workers.declare(4)
    members = await workers.join_many(2)
    await workers.publish(1)
    await workers.all_handled()
    dispatcher = workers.dispatcher
    assert dispatcher is not None
    for worker in members:
        async with asyncio.timeout(30):
            while True:
                state = await worker.group.describe()
                held = {each.member: set(each.queues) for each in state.members} if state else {}
                if held == workers.held:
                    break
                await asyncio.sleep(0.05)
        assert state is not None
        assert state.dispatcher == dispatcher.name
        assert {each.quota for each in state.members} == {2}
        assert state.rebalances[-1].reason
        assert {each.queue for each in state.queues} == set(workers.queues)
