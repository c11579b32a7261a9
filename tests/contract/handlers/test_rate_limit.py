"""How fast a group goes, and who waits for it, on both brokers."""

from __future__ import annotations

import asyncio

import warren
from tests.contract.handlers.conftest import Bench, until


async def test_a_group_goes_no_faster_than_its_limit(bench: Bench) -> None:
    queue = await bench.queue()
    app, times = bench.app(rate_limit=20), []

    @app.handler(queue)
    async def handle(message: warren.Message) -> None:
        times.append(asyncio.get_running_loop().time())

    await bench.publish(queue, *(b"x" for _ in range(12)))
    async with app:
        await until(lambda: len(times) == 12)
    # Two may go at once (a tenth of a second's worth), the others at 20 a second.
    assert times[-1] - times[0] >= 9 / 20


async def test_a_limit_lets_go_what_waits_in_queues_found_by_pattern(bench: Bench) -> None:
    queue = await bench.queue("limited")
    app, seen = bench.app(rate_limit=50), []

    @app.handler(f"{queue}*")
    async def handle(message: warren.Message) -> None:
        seen.append(message.body)

    await bench.publish(queue, *(b"%d" % n for n in range(12)))
    async with app:
        await until(lambda: len(seen) == 12)


async def test_members_that_start_together_keep_the_limit_of_the_whole_group(
    bench: Bench,
) -> None:
    queues = [await bench.queue(label) for label in ("one", "two")]
    apps, times = [bench.app(rate_limit=20) for _ in range(2)], []

    async def handle(message: warren.Message) -> None:
        times.append(asyncio.get_running_loop().time())

    for app in apps:
        app.handler(*queues)(handle)
    for queue in queues:
        await bench.publish(queue, *(b"x" for _ in range(15)))
    async with apps[0], apps[1]:
        await until(lambda: len(times) == 30, within_s=60)
    # A tenth of a second's worth may go at once, of each member; the others at 20 a second.
    assert times[-1] - times[0] >= (30 - 1 - 2 * 2) / 20


async def test_a_message_that_waits_for_the_limit_does_not_hold_its_queue(bench: Bench) -> None:
    queue = await bench.queue()
    app, seen = bench.app(rate_limit=0.001, drain_s=600), []

    @app.handler(queue)
    async def handle(message: warren.Message) -> None:
        seen.append(message.body)

    await bench.publish(queue, b"1", b"2", b"3")
    async with asyncio.timeout(60), app:
        await until(lambda: seen == [b"1"])
    assert [(await bench.next_of(queue)).body for _ in range(2)] == [b"2", b"3"]
