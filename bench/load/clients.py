"""The same work done by different client libraries: publish with confirms, consume with acks.

Each is used the way its documentation shows for speed: pika with callbacks on its own loop
(faster than its blocking adapter), aio-pika with gathered publishes and a consuming coroutine,
ours with a window and a callback. All run on Python's own event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from bench.load import frames
from bench.load.link import Link
from bench.load.publishing import Publisher
from bench.load.setup import durable_queue

WINDOW = 1_000
PREFETCH = 1_000
BODY = bytes(200)


def publish(url: str, client: str, count: int) -> dict[str, float]:
    """Publish with confirms into a queue that nobody reads; messages a second."""
    with Link(url) as link:
        queue = durable_queue(link)
        rate = _PUBLISHERS[client](url, queue, count)
        held = link.ready(queue)
        link.call(frames.delete_queue(queue), (50, 41))
        link.close()
    if held != count:
        raise RuntimeError(f"{client} published {count}, the queue holds {held}")
    return {"rate": rate}


def consume(url: str, client: str, count: int) -> dict[str, float]:
    """Drain a queue that was filled before, with an ack for each message; messages a second."""
    with Link(url) as link:
        queue = durable_queue(link)
        Publisher(link).fill(queue, BODY, count)
        rate = _CONSUMERS[client](url, queue, count)
        link.call(frames.delete_queue(queue), (50, 41))
        link.close()
    return {"rate": rate}


# -- ours ----------------------------------------------------------------------------------------
def _warren_publish(url: str, queue: str, count: int) -> float:
    import warren

    async def main() -> float:
        async with warren.connect(url) as connection:
            channel = await connection.channel()
            began = time.perf_counter()
            for _ in range(count):
                channel.publish(BODY, routing_key=queue)
                if channel.unconfirmed >= WINDOW:
                    await channel.confirmed(at_most=WINDOW // 2)
            await channel.confirmed()
            return count / (time.perf_counter() - began)

    return asyncio.run(main())


def _warren_consume(url: str, queue: str, count: int) -> float:
    import warren

    async def main() -> float:
        async with warren.connect(url) as connection:
            channel = await connection.channel(prefetch=PREFETCH)
            done, left = asyncio.Event(), count

            def take(delivery: Any) -> None:
                nonlocal left
                delivery.ack()
                left -= 1
                if not left:
                    done.set()

            began = time.perf_counter()
            await channel.consume(queue, take)
            await done.wait()
            await channel.get(queue)  # the acks are there
            return count / (time.perf_counter() - began)

    return asyncio.run(main())


def _warren_iterate(url: str, queue: str, count: int) -> float:
    import warren

    async def main() -> float:
        async with warren.connect(url) as connection:
            channel = await connection.channel(prefetch=PREFETCH)
            left = count
            began = time.perf_counter()
            async with channel.deliveries(queue) as deliveries:
                async for delivery in deliveries:
                    delivery.ack()
                    left -= 1
                    if not left:
                        break
                await channel.get(queue)
                return count / (time.perf_counter() - began)

    return asyncio.run(main())


# -- aio-pika ------------------------------------------------------------------------------------
def _aio_pika_publish(url: str, queue: str, count: int) -> float:
    import aio_pika

    async def main() -> float:
        async with await aio_pika.connect(url) as connection:
            channel = await connection.channel()
            exchange = channel.default_exchange
            began = time.perf_counter()
            for at in range(0, count, WINDOW):
                some = min(WINDOW, count - at)
                await asyncio.gather(
                    *(exchange.publish(aio_pika.Message(BODY), queue) for _ in range(some))
                )
            return count / (time.perf_counter() - began)

    return asyncio.run(main())


def _aio_pika_consume(url: str, queue: str, count: int) -> float:
    import aio_pika

    async def main() -> float:
        async with await aio_pika.connect(url) as connection:
            channel = await connection.channel()
            await channel.set_qos(PREFETCH)
            source = await channel.get_queue(queue)
            done, left = asyncio.Event(), count

            async def take(message: Any) -> None:
                nonlocal left
                await message.ack()
                left -= 1
                if not left:
                    done.set()

            began = time.perf_counter()
            await source.consume(take)
            await done.wait()
            await source.get(fail=False)
            return count / (time.perf_counter() - began)

    return asyncio.run(main())


# -- pika ----------------------------------------------------------------------------------------
class _Pika:
    """A SelectConnection with one channel; stops its loop when ``left`` is 0."""

    def __init__(self, url: str, start: Callable[[_Pika, Any], None], count: int) -> None:
        import pika

        self.left = count
        self.began = self.seconds = 0.0
        self._start = start
        self.connection = pika.SelectConnection(
            pika.URLParameters(url), on_open_callback=self._opened
        )

    def _opened(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._channel)

    def _channel(self, channel: Any) -> None:
        self.began = time.perf_counter()
        self._start(self, channel)

    def done(self) -> None:
        self.seconds = time.perf_counter() - self.began
        self.connection.add_on_close_callback(lambda *_: self.connection.ioloop.stop())
        self.connection.close()

    def run(self) -> float:
        self.connection.ioloop.start()
        return self.seconds


def _pika_consume(url: str, queue: str, count: int) -> float:
    def start(run: _Pika, channel: Any) -> None:
        def take(channel: Any, method: Any, properties: Any, body: bytes) -> None:
            channel.basic_ack(method.delivery_tag)
            run.left -= 1
            if not run.left:
                run.done()

        def ready(_: Any) -> None:
            channel.basic_consume(queue, take)

        channel.basic_qos(prefetch_count=PREFETCH, callback=ready)

    return count / _Pika(url, start, count).run()


def _pika_publish(url: str, queue: str, count: int) -> float:
    def start(run: _Pika, channel: Any) -> None:
        sent = confirmed = 0

        def more() -> None:
            nonlocal sent
            while sent < count and sent - confirmed < WINDOW:
                channel.basic_publish("", queue, BODY)
                sent += 1

        def confirm(frame: Any) -> None:
            nonlocal confirmed
            method = frame.method
            confirmed = method.delivery_tag if method.multiple else confirmed + 1
            if confirmed == count:
                run.done()
            elif sent - confirmed <= WINDOW // 2:
                more()

        channel.confirm_delivery(confirm, callback=lambda _: more())

    return count / _Pika(url, start, count).run()


_PUBLISHERS = {"warren": _warren_publish, "aio_pika": _aio_pika_publish, "pika": _pika_publish}
_CONSUMERS = {
    "warren": _warren_consume,
    "iterate": _warren_iterate,
    "aio_pika": _aio_pika_consume,
    "pika": _pika_consume,
}
