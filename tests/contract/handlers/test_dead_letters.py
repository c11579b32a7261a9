"""``warren dead-letters``: what was given up is shown, and sent back to work, on both brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import warren
from tests.contract.cli.conftest import Cli, Said, cli
from tests.contract.handlers.conftest import Bench, until

__all__ = ["cli"]  # fixtures
Told = Callable[..., Awaitable[Said]]


@pytest.fixture
def told(cli: Cli, bench: Bench) -> Told:
    """Runs ``warren dead-letters``, in a thread: it has an event loop of its own."""

    async def run(command: str, *words: str) -> Said:
        return await asyncio.to_thread(
            cli, "dead-letters", command, *words, "--url", bench.broker.url
        )

    return run


async def give_up(bench: Bench, queue: str, *bodies: bytes) -> None:
    """A handler that fails makes dead letters of them."""
    app = bench.app()

    @app.handler(queue, retries=1, backoff=0.01)
    async def handle(message: warren.Message) -> None:
        raise ValueError("no such customer")

    await bench.publish(queue, *bodies, message_id="m1")
    async with app:
        await until(lambda: _given_up(app, queue) == len(bodies), within_s=60)


def _given_up(app: warren.App, queue: str) -> int:
    counters = app.snapshot()["queues"].get(queue)
    return 0 if counters is None else counters.dead_lettered


async def test_letters_are_listed_with_reason_and_history_and_stay(
    bench: Bench, told: Told
) -> None:
    queue = await bench.queue()
    await give_up(bench, queue, b"one", b"two")
    for _ in range(2):
        said = await told("list", bench.group, "--json")
        assert said.code == 0, said
        first, second = said.json
    assert (first["queue"], first["reason"], first["attempts"]) == (queue, "failed", 2)
    assert (first["error"], first["message_id"]) == ("ValueError: no such customer", "m1")
    assert [each["attempt"] for each in first["history"]] == [1, 2]
    assert (first["size"], second["number"]) == (3, 2)
    text = await told("list", bench.group, "--limit", "1")
    assert "ValueError: no such customer" in text.out
    assert "1 more" in text.out


async def test_letters_go_back_to_the_queue_they_came_from_and_begin_anew(
    bench: Bench, told: Told
) -> None:
    queue = await bench.queue()
    await give_up(bench, queue, b"one", b"two", b"three")
    assert (await told("replay", bench.group, "--dry-run")).out == f"3 would be sent to '{queue}'\n"
    assert await bench.ready(bench.dead) == 3
    said = await told("replay", bench.group)
    assert (said.code, said.out) == (0, f"3 sent to '{queue}'\n")
    assert (await bench.ready(bench.dead), await bench.ready(queue)) == (0, 3)
    app, seen = bench.app(), []

    @app.handler(queue)
    async def handle(message: warren.Message) -> None:
        seen.append((message.body, message.attempt, message.message_id))

    async with app:
        await until(lambda: len(seen) == 3, within_s=60)
    assert seen == [(b"one", 1, "m1"), (b"two", 1, "m1"), (b"three", 1, "m1")]


async def test_a_letter_goes_back_to_one_queue_whatever_copies_its_message_had(
    bench: Bench, told: Told
) -> None:
    queue, other = await bench.queue(), await bench.queue("other")
    await bench.channel.declare_queue(bench.dead, durable=True)
    headers = {"CC": [other], "x-warren-queue": queue, "x-warren-reason": "failed"}
    await bench.publish(bench.dead, b"one", headers=headers)  # as older versions wrote it
    assert await bench.ready(other) == 1
    assert (await told("replay", bench.group)).out == f"1 sent to '{queue}'\n"
    back = await bench.next_of(queue)
    assert dict(back.headers) == {"x-warren-cc": [other]}
    assert [await bench.ready(each) for each in (bench.dead, other)] == [0, 1]


async def test_some_of_the_letters_are_chosen_and_may_go_elsewhere(
    bench: Bench, told: Told
) -> None:
    here, there, elsewhere = [await bench.queue() for _ in range(3)]
    await give_up(bench, here, b"one", b"two")
    await give_up(bench, there, b"three")
    said = await told("replay", bench.group, "--from", there, "--to", elsewhere, "--json")
    assert said.json == {"sent": {elsewhere: 1}, "left": [], "dry_run": False}
    assert (await told("replay", bench.group, "--reason", "rejected")).code == 0
    await told("replay", bench.group, "--limit", "1")
    assert [await bench.ready(each) for each in (bench.dead, here, there)] == [1, 1, 0]
    (left,) = (await told("list", bench.group, "--json")).json
    assert (left["queue"], left["size"]) == (here, 3)


async def test_a_letter_whose_queue_is_gone_stays_and_is_told(bench: Bench, told: Told) -> None:
    queue = await bench.queue()
    await give_up(bench, queue, b"one")
    await bench.channel.delete_queue(queue)
    said = await told("replay", bench.group)
    assert said.code == 1
    assert f"one of '{queue}' stays" in said.out
    assert await bench.ready(bench.dead) == 1


async def test_letters_that_the_broker_wrote_go_back_too(bench: Bench, told: Told) -> None:
    dead = await bench.queue("dead")
    arguments: dict[str, Any] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    queue = await bench.queue(**arguments)
    await bench.publish(queue, b"one")
    taken = await bench.channel.get(queue)
    assert taken is not None
    taken.nack(requeue=False)
    async with asyncio.timeout(20):
        while await bench.ready(dead) != 1:
            await asyncio.sleep(0.02)
    (letter,) = (await told("list", "--queue", dead, "--json")).json
    assert (letter["queue"], letter["reason"], letter["attempts"]) == (queue, "rejected", 1)
    assert (await told("replay", "--queue", dead)).out == f"1 sent to '{queue}'\n"
    assert [await bench.ready(each) for each in (dead, queue)] == [0, 1]


async def test_what_is_no_queue_of_letters_is_told(bench: Bench, told: Told) -> None:
    said = await told("list", bench.group)
    assert said.code == 1
    assert f"there is no queue '{bench.dead}'" in said.err
    assert "--queue" in (await told("replay")).err
