"""What happens to a message on its way through a handler, on both brokers."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import sys
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

import warren
from tests.contract.handlers.conftest import Bench, until
from warren.errors import ConfigError, HostUnreachable
from warren.handlers.attempts import Attempts


async def test_returning_acknowledges_and_order_is_kept(bench: Bench) -> None:
    queue = await bench.queue()
    app, seen = bench.app(), []

    @app.handler(queue)
    async def handle(message: warren.Message) -> None:
        await asyncio.sleep(0)
        seen.append(int(message.body))

    await bench.publish(queue, *(b"%d" % n for n in range(200)))
    async with app:
        await until(lambda: len(seen) == 200)
        assert app.snapshot()["queues"][queue].handled >= 199
    assert seen == list(range(200))
    assert await bench.ready(queue) == 0


async def test_a_message_tells_all_about_itself(bench: Bench) -> None:
    queue = await bench.queue()
    app, seen = bench.app(), []

    @app.handler(queue)
    async def handle(message: warren.Message) -> None:
        seen.append(message)

    body = gzip.compress(json.dumps({"id": 7}).encode())
    await bench.publish(
        queue,
        body,
        content_type="application/json",
        content_encoding="gzip",
        type="order",
        message_id="m1",
        headers={"x": 1},
    )
    async with app:
        await until(lambda: seen)
    message = seen[0]
    assert (message.body, message.data, message.queue) == (body, {"id": 7}, queue)
    assert (message.type, message.message_id, message.headers["x"]) == ("order", "m1", 1)
    assert (message.routing_key, message.exchange, message.attempt) == (queue, "", 1)
    assert message.redelivered is False


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
    where = r"JSONDecodeError: Expecting value.* \(test_app\.py:\d+\)"
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


async def test_a_request_is_answered(bench: Bench) -> None:
    queue = await bench.queue()
    app = bench.app()

    @app.handler(queue)
    async def handle(message: warren.Message) -> dict[str, int]:
        return {"twice": 2 * message.data["n"]}

    answers: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    await bench.channel.consume("amq.rabbitmq.reply-to", answers.set_result, no_ack=True)
    await bench.publish(
        queue,
        b'{"n": 21}',
        content_type="application/json",
        reply_to="amq.rabbitmq.reply-to",
        correlation_id="c7",
    )
    async with app:
        answer = await asyncio.wait_for(answers, 20)
    assert (answer.body, answer.properties.correlation_id) == (b'{"twice":42}', "c7")
    assert answer.properties.content_type == "application/json"


async def cancels_itself(message: warren.Message) -> None:
    raise asyncio.CancelledError


async def exits(message: warren.Message) -> None:
    sys.exit(3)


def exits_in_a_thread(message: warren.Message) -> None:
    sys.exit(3)


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


async def test_a_plain_function_runs_in_a_thread(bench: Bench) -> None:
    queue = await bench.queue()
    app, threads = bench.app(), []
    together = threading.Barrier(3)

    @app.handler(queue, concurrency=3, ordered=False)
    def handle(message: warren.Message) -> None:
        together.wait(20)
        threads.append(threading.current_thread())

    await bench.publish(queue, b"1", b"2", b"3")
    async with app:
        await until(lambda: len(threads) == 3)
    assert threading.main_thread() not in threads


async def test_order_is_kept_a_key_when_several_are_handled_at_once(bench: Bench) -> None:
    queue = await bench.queue()
    app, seen = bench.app(), []
    held = asyncio.Event()

    @app.handler(queue, concurrency=3, key=lambda message: message.headers["customer"])
    async def handle(message: warren.Message) -> None:
        if message.headers["customer"] == "slow":
            await held.wait()
        seen.append((message.headers["customer"], int(message.body)))

    for n in range(30):
        customer = ("slow", "b", "c")[n % 3]
        await bench.publish(queue, b"%d" % n, headers={"customer": customer})
    async with app:
        await until(lambda: len(seen) == 20)
        assert all(customer != "slow" for customer, _ in seen)
        held.set()
        await until(lambda: len(seen) == 30)
    for customer in ("slow", "b", "c"):
        numbers = [n for name, n in seen if name == customer]
        assert numbers == sorted(numbers)


async def test_stopping_finishes_what_is_being_handled_and_gives_the_rest_back(
    bench: Bench,
) -> None:
    queue = await bench.queue()
    app, seen = bench.app(), []
    entered = asyncio.Event()

    @app.handler(queue)
    async def handle(message: warren.Message) -> None:
        entered.set()
        await asyncio.sleep(0.2)
        seen.append(message.body)

    await bench.publish(queue, b"1", b"2", b"3")
    async with app:
        await asyncio.wait_for(entered.wait(), 20)
    assert seen == [b"1"]
    first, second = await bench.next_of(queue), await bench.next_of(queue)
    assert (first.body, second.body) == (b"2", b"3")


async def test_a_queue_stays_while_a_thread_works_on_its_message_however_long_that_takes(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    queue = await bench.queue()
    apps = [bench.app(member_name=name, drain_s=0.1) for name in ("slow", "other")]
    done, seen = threading.Event(), []

    def handle(message: warren.Message) -> None:
        seen.append(f"begin {message.body.decode()}")
        done.wait(60)
        seen.append(f"end {message.body.decode()}")

    for app in apps:
        app.handler(queue, prefetch=1)(handle)
    await bench.publish(queue, b"1", b"2", message_id="m1")
    try:
        async with apps[0]:
            await until(lambda: seen)
            async with apps[1]:
                await apps[1].member.drain("slow")
                await until(lambda: "can't be stopped" in caplog.text)
                assert seen == ["begin 1"]
                done.set()
                await until(lambda: len(seen) == 4)
    finally:
        done.set()
    assert seen == ["begin 1", "end 1", "begin 2", "end 2"]
    assert f"queue {queue} is not given away yet" in caplog.text
    assert "message-id m1" in caplog.text


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


async def test_middleware_sees_every_attempt(bench: Bench) -> None:
    queue = await bench.queue()
    seen: list[str] = []

    class Noted(warren.Middleware):
        def before(self, message: warren.Message) -> None:
            seen.append(f"before {message.attempt}")

        def after(self, message: warren.Message, result: Any) -> None:
            seen.append(f"after {result}")

        async def error(self, message: warren.Message, error: Exception) -> None:
            seen.append(f"error {error}")

    app = bench.app(middleware=[Noted()])

    @app.handler(queue, retries=1, backoff=0.01)
    async def handle(message: warren.Message) -> str:
        if message.attempt == 1:
            raise ValueError("no")
        return "done"

    await bench.publish(queue, b"x")
    async with app:
        await until(lambda: len(seen) == 4)
    assert seen == ["before 1", "error no", "before 2", "after done"]


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


async def test_queues_are_found_by_pattern_also_when_they_come_later(bench: Bench) -> None:
    prefix = bench.name("shop")
    app, seen = bench.app(), []

    @app.handler(f"{prefix}*")
    async def handle(message: warren.Message) -> None:
        seen.append(message.body)

    async with app:
        queue = f"{prefix}.late"
        await bench.channel.declare_queue(queue, durable=True)
        try:
            await bench.publish(queue, b"found")
            await until(lambda: seen == [b"found"])
        finally:
            await bench.channel.delete_queue(queue)


async def test_an_app_can_publish_and_hands_the_trace_on(bench: Bench) -> None:
    queue, out = await bench.queue(), await bench.queue("out")
    app = bench.app()

    @app.handler(queue)
    async def handle(message: warren.Message) -> None:
        await app.publish({"got": message.data}, routing_key=out)

    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    await bench.publish(queue, b"hello", content_type="text/plain", headers=trace)
    async with app:
        found = await bench.next_of(out)
    assert (found.body, found.properties.delivery_mode) == (b'{"got":"hello"}', 2)
    assert dict(found.headers) == trace


async def test_of_two_handlers_the_first_gets_the_messages_and_that_is_told_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = await bench.queue("q1"), await bench.queue("q2")
    app, seen = bench.app(), []

    @app.handler(f"{first}*", f"{second}*")
    async def wide(message: warren.Message) -> None:
        seen.append(message.queue)

    @app.handler(first, second)
    async def narrow(message: warren.Message) -> None:
        raise AssertionError

    await bench.publish(first, b"1")
    await bench.publish(second, b"2")
    async with app:
        await until(lambda: len(seen) == 2)
    assert caplog.text.count("fits the handlers wide and narrow: wide gets its messages") == 1


async def test_a_pattern_that_nothing_fits_is_told_once(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.handlers.app.PATTERNS_S", 0.5)
    queue = await bench.queue()
    app, seen = bench.app(), []
    nothing = bench.name("nothing")

    @app.handler(f"{queue}*", f"{nothing}.*")
    async def handle(message: warren.Message) -> None:
        seen.append(message.body)

    async with app:
        await until(lambda: f"no queue matches {nothing}.* yet" in caplog.text)


async def test_an_app_without_handlers_says_so(bench: Bench) -> None:
    with pytest.raises(ConfigError, match=r"@app\.handler"):
        await bench.app().start()


async def test_a_broker_that_is_not_there_is_named() -> None:
    app = warren.App("amqp://127.0.0.1:1", group="g")

    @app.handler("q")
    async def handle(message: warren.Message) -> None: ...

    with pytest.raises(HostUnreachable, match=r"127\.0\.0\.1:1"):
        await app.start()
