"""What happens to a message on its way through a handler, on both brokers."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from typing import Any

import pytest

import warren
from tests.contract.handlers.conftest import Bench, until
from warren.errors import ConfigError, HostUnreachable


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
    monkeypatch.setattr("warren.handlers.idle_queues.LOOK_S", 0.5)
    queue = await bench.queue()
    app, seen = bench.app(), []
    nothing = bench.name("nothing")

    @app.handler(f"{queue}*", f"{nothing}.*")
    async def handle(message: warren.Message) -> None:
        seen.append(message.body)

    async with app:
        await until(lambda: f"no queue matches {nothing}.* yet" in caplog.text)


async def test_a_queue_that_is_not_there_is_told(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.handlers.idle_queues.LOOK_S", 0.1)
    app, nothing = bench.app(), bench.name("nothing")

    @app.handler(nothing)
    async def handle(message: warren.Message) -> None: ...

    said = f"nobody works on queue {nothing}: there is no queue '{nothing}'"
    async with app:
        await until(lambda: said in caplog.text)


async def test_an_app_without_handlers_says_so(bench: Bench) -> None:
    with pytest.raises(ConfigError, match=r"@app\.handler"):
        await bench.app().start()


async def test_a_broker_that_is_not_there_is_named() -> None:
    app = warren.App("amqp://127.0.0.1:1", group="g")

    @app.handler("q")
    async def handle(message: warren.Message) -> None: ...

    with pytest.raises(HostUnreachable, match=r"127\.0\.0\.1:1"):
        await app.start()


async def test_a_stop_that_is_cancelled_leaves_nothing_behind(bench: Bench) -> None:
    queue = await bench.queue()
    slow, other, begun, seen = bench.app(drain_s=3600), bench.app(), asyncio.Event(), []

    @slow.handler(queue)
    async def never_done(message: warren.Message) -> None:
        begun.set()
        await asyncio.Event().wait()

    @other.handler(queue)
    async def handle(message: warren.Message) -> None:
        seen.append((message.body, message.redelivered))

    await bench.publish(queue, b"order")
    await slow.start()
    await begun.wait()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(slow.stop(), 0.1)
    await slow.stop()
    async with other:
        await until(lambda: seen == [(b"order", True)])


async def test_a_handler_may_publish_while_its_app_stops_and_a_second_stop_waits(
    bench: Bench,
) -> None:
    queue, bills = await bench.queue(), await bench.queue("bills")
    app, begun, goes_on = bench.app(), asyncio.Event(), asyncio.Event()

    @app.handler(queue)
    async def handle(message: warren.Message) -> None:
        begun.set()
        await goes_on.wait()
        await app.publish(b"bill", routing_key=bills)

    await bench.publish(queue, b"order")
    await app.start()
    await begun.wait()
    member = app.member
    stops = {asyncio.create_task(app.stop())}
    await until(lambda: member.snapshot().releasing)
    stops.add(asyncio.create_task(app.stop()))
    done, _ = await asyncio.wait(stops, timeout=0.1)
    assert not done
    goes_on.set()
    await asyncio.gather(*stops)
    assert (await bench.next_of(bills)).body == b"bill"
    assert await bench.ready(queue) == 0
