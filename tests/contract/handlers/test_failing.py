"""Messages that fail: tried again, given up, and what their handlers may do, on both brokers."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

import warren
from tests.contract.handlers.conftest import Bench, until
from warren.handlers.attempts import Attempts


async def test_a_failing_message_is_retried_in_place_and_the_queue_waits(bench: Bench) -> None:
    queue = await bench.queue()
    app, seen = bench.app(), []

    @app.handler(queue, retries=2, backoff=0.01)
    async def handle(message: warren.Message) -> None:
        seen.append((message.body, message.attempt))
        if message.body == b"bad" and message.attempt < 3:
            raise ValueError("not yet")

    await bench.publish(queue, b"a", b"bad", b"b")
    async with app:
        await until(lambda: len(seen) == 5)
    assert seen == [(b"a", 1), (b"bad", 1), (b"bad", 2), (b"bad", 3), (b"b", 1)]
    assert await bench.ready(queue) == 0


async def test_the_log_tells_attempt_error_and_place(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    queue = await bench.queue()
    app = bench.app()

    @app.handler(queue, retries=1, backoff=0.01)
    async def handle(message: warren.Message) -> None:
        json.loads("")

    caplog.set_level("INFO", logger="warren.handlers")
    await bench.publish(queue, b"bad")
    async with app:
        letter = await bench.next_of(bench.dead)
    assert letter.headers["x-warren-attempts"] == 2
    where = r"JSONDecodeError: Expecting value.* \(test_failing\.py:\d+\)"
    assert re.search(rf"attempt 1> failed, again in .* s: {where}", caplog.text)
    assert re.search(rf"attempt 2> is given up \(failed\): {where}", caplog.text)


async def test_a_message_that_fails_for_good_is_dead_lettered_with_its_history(
    bench: Bench,
) -> None:
    queue = await bench.queue()
    app, seen = bench.app(member_name="m-1"), []

    @app.handler(queue, retries=1, backoff=0.01)
    async def handle(message: warren.Message) -> None:
        if message.body == b"bad":
            raise ValueError(f"no {message.attempt}")
        seen.append(message.body)

    await bench.publish(queue, b"bad", headers={"mine": "kept"}, type="order", expiration="60000")
    await bench.publish(queue, b"good")
    async with app:
        letter = await bench.next_of(bench.dead)
        await until(lambda: seen == [b"good"])
    assert (letter.body, letter.properties.type) == (b"bad", "order")
    assert letter.properties.expiration is None
    headers = dict(letter.headers)
    history = headers.pop("x-warren-history")
    assert [(each["attempt"], each["error"], each["member"]) for each in history] == [
        (1, "ValueError: no 1", "m-1"),
        (2, "ValueError: no 2", "m-1"),
    ]
    assert headers == {
        "mine": "kept",
        "x-warren-queue": queue,
        "x-warren-exchange": "",
        "x-warren-routing-key": queue,
        "x-warren-attempts": 2,
        "x-warren-reason": "failed",
        "x-warren-error": "ValueError: no 2",
    }


@pytest.mark.parametrize(
    ("raised", "reason"),
    [(warren.Reject("no such customer"), "rejected"), (None, "undecodable")],
)
async def test_what_can_never_work_is_dead_lettered_at_once(
    bench: Bench, raised: Exception | None, reason: str
) -> None:
    queue = await bench.queue()
    app, attempts = bench.app(), []

    @app.handler(queue, retries=9)
    async def handle(message: warren.Message) -> Any:
        attempts.append(message.attempt)
        if raised is not None:
            raise raised
        return message.data

    await bench.publish(queue, b"{not json", content_type="application/json")
    async with app:
        letter = await bench.next_of(bench.dead)
    assert letter.headers["x-warren-reason"] == reason
    assert attempts == [1]


async def test_the_queues_own_dead_letter_exchange_can_be_left_to_decide(bench: Bench) -> None:
    graveyard = await bench.queue("graveyard")
    queue = await bench.queue(
        "orders", **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": graveyard}
    )
    app = bench.app()

    @app.handler(queue, retries=0, dead_letter="broker")
    async def handle(message: warren.Message) -> None:
        raise ValueError

    await bench.publish(queue, b"bad")
    async with app:
        letter = await bench.next_of(graveyard)
    assert letter.headers["x-death"][0]["reason"] == "rejected"


@pytest.mark.parametrize("arguments", [None, {"x-max-length": 10}])
async def test_the_named_dead_letter_queue_is_made_or_taken_as_it_is(
    bench: Bench, arguments: dict[str, Any] | None
) -> None:
    queue, dead = await bench.queue(), bench.name("dead")
    if arguments is not None:
        await bench.channel.declare_queue(dead, durable=True, arguments=arguments)
    app = bench.app()

    @app.handler(queue, retries=0, dead_letter=dead)
    async def handle(message: warren.Message) -> None:
        raise ValueError

    await bench.publish(queue, b"1", b"2")
    try:
        async with app:
            assert (await bench.next_of(dead)).body == b"1"
            assert (await bench.next_of(dead)).body == b"2"
    finally:
        await bench.channel.delete_queue(dead)


async def test_a_dead_letter_queue_of_the_group_may_be_of_another_kind(bench: Bench) -> None:
    queue = await bench.queue()
    await bench.channel.declare_queue(bench.dead, durable=True, arguments={"x-max-length": 10})
    app = bench.app()

    @app.handler(queue, retries=0)
    async def handle(message: warren.Message) -> None:
        raise ValueError

    await bench.publish(queue, b"1")
    async with app:
        assert (await bench.next_of(bench.dead)).body == b"1"


async def test_unordered_a_failing_message_waits_elsewhere_and_the_next_is_taken(
    bench: Bench,
) -> None:
    queue = await bench.queue()
    app, seen = bench.app(), []

    @app.handler(queue, retries=2, backoff=0.1, ordered=False)
    async def handle(message: warren.Message) -> None:
        seen.append((message.body, message.attempt))
        if message.body == b"bad" and message.attempt == 1:
            raise ValueError("not yet")

    await bench.publish(queue, b"bad", b"b", b"c", message_id="kept")
    async with app:
        await until(lambda: len(seen) == 4)
    assert seen == [(b"bad", 1), (b"b", 1), (b"c", 1), (b"bad", 2)]
    assert await bench.ready(queue) == 0


async def test_unordered_a_message_is_given_up_after_its_retries(bench: Bench) -> None:
    queue = await bench.queue()
    app = bench.app()

    @app.handler(queue, retries=2, backoff=0.05, ordered=False)
    async def handle(message: warren.Message) -> None:
        raise ValueError(f"no {message.attempt}")

    await bench.publish(queue, b"bad")
    async with app:
        letter = await bench.next_of(bench.dead)
    assert letter.headers["x-warren-attempts"] == 3
    assert [each["error"] for each in letter.headers["x-warren-history"]] == [
        "ValueError: no 1",
        "ValueError: no 2",
        "ValueError: no 3",
    ]


@pytest.mark.parametrize("ordered", [True, False])
async def test_a_message_that_was_copied_to_other_queues_is_not_copied_again_when_it_fails(
    bench: Bench, ordered: bool
) -> None:
    queue, other = await bench.queue(), await bench.queue("other")
    app = bench.app()

    @app.handler(queue, retries=1, backoff=0.05, ordered=ordered)
    async def handle(message: warren.Message) -> None:
        raise ValueError

    await bench.publish(other, b"1", headers={"CC": [queue]})
    async with app:
        letter = await bench.next_of(bench.dead)
        assert [await bench.ready(each) for each in (queue, other, bench.dead)] == [0, 1, 0]
    assert letter.headers["x-warren-cc"] == [queue]
    assert "CC" not in letter.headers


async def cancels_itself(message: warren.Message) -> None:
    raise asyncio.CancelledError


async def exits(message: warren.Message) -> None:
    sys.exit(3)


def exits_in_a_thread(message: warren.Message) -> None:
    sys.exit(3)


class OutOfTime(BaseException):
    """As ``pytest.fail.Exception`` and ``gevent.Timeout`` are: no ``Exception``."""


async def raises_what_is_no_exception(message: warren.Message) -> None:
    raise OutOfTime(3)


def raises_what_is_no_exception_in_a_thread(message: warren.Message) -> None:
    raise OutOfTime(3)


def stops_iterating(message: warren.Message) -> None:
    next(iter(()))


async def replies_with_what_json_has_no_word_for(message: warren.Message) -> Any:
    return {"at": datetime.now(UTC)}


@pytest.mark.parametrize(
    ("handle", "error"),
    [
        (cancels_itself, "RuntimeError: the handler raised CancelledError"),
        (exits, "RuntimeError: the handler raised SystemExit: 3"),
        (exits_in_a_thread, "RuntimeError: the handler raised SystemExit: 3"),
        (raises_what_is_no_exception, "RuntimeError: the handler raised OutOfTime: 3"),
        (raises_what_is_no_exception_in_a_thread, "RuntimeError: the handler raised OutOfTime: 3"),
        (stops_iterating, "RuntimeError: the handler raised StopIteration"),
        (replies_with_what_json_has_no_word_for, "TypeError: Object of type datetime"),
    ],
)
async def test_whatever_a_handler_does_is_an_attempt_and_the_queue_goes_on(
    bench: Bench, handle: Any, error: str
) -> None:
    queue = await bench.queue()
    app = bench.app()
    app.handler(queue, retries=1, backoff=0.01)(handle)
    await bench.publish(queue, b"1", b"2", reply_to="nobody")
    async with app:
        letters = [await bench.next_of(bench.dead) for _ in range(2)]
        assert [letter.body for letter in letters] == [b"1", b"2"]
        assert all(letter.headers["x-warren-error"].startswith(error) for letter in letters)
        assert [letter.headers["x-warren-attempts"] for letter in letters] == [2, 2]


async def test_messages_whose_key_can_not_be_used_are_handled_one_by_one(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    queue = await bench.queue()
    app, seen = bench.app(), []

    @app.handler(queue, concurrency=3, key=lambda message: [1])
    async def handle(message: warren.Message) -> None:
        await asyncio.sleep(0)
        seen.append(int(message.body))

    await bench.publish(queue, *(b"%d" % n for n in range(20)))
    async with app:
        await until(lambda: len(seen) == 20)
    assert seen == list(range(20))
    assert caplog.text.count("unhashable type: 'list'") == 1


async def test_an_error_of_our_own_gives_the_queue_back_and_is_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queue = await bench.queue()
    app, seen = bench.app(), []
    settle = Attempts.__call__
    damaged = asyncio.Event()

    async def breaks(self: Attempts, delivery: Any) -> None:
        if not damaged.is_set():
            raise LookupError("a bug")
        await settle(self, delivery)

    monkeypatch.setattr(Attempts, "__call__", breaks)

    @app.handler(queue)
    async def handle(message: warren.Message) -> None:
        seen.append(message.body)

    await bench.publish(queue, b"1", b"2")
    async with app:
        await until(lambda: app.snapshot()["broken"] == {queue: "LookupError: a bug"})
        damaged.set()
        await until(lambda: len(seen) == 2)
        await until(lambda: app.snapshot()["broken"] == {})
    assert seen == [b"1", b"2"]
    assert f"work on queue {queue} has failed" in caplog.text


async def test_an_attempt_that_takes_too_long_has_failed(bench: Bench) -> None:
    queue = await bench.queue()
    app = bench.app()

    @app.handler(queue, retries=0, timeout_s=0.05)
    async def handle(message: warren.Message) -> None:
        await asyncio.Event().wait()

    await bench.publish(queue, b"slow")
    async with app:
        letter = await bench.next_of(bench.dead)
    assert letter.headers["x-warren-error"].startswith("TimeoutError")
