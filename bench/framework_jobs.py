"""What ``bench.frameworks`` lets each framework do: fill a queue, and work on it.

Every job is a process of its own, so that nothing is carried from one round into the next: Celery,
for one, remembers which queues it has declared, and would publish to one that has been deleted.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import uvloop

QUEUE = "bench-frameworks"
PREFETCH = 500
FIGURE = "RATE"


class Count:
    """Counts handled messages in the worker and ends it at the last one."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._count = count
        self._began = 0.0

    def one(self) -> None:
        if self._left == self._count:
            self._began = time.perf_counter()
        self._left -= 1
        if self._left == 0:
            # The clock has the handlers; the last acks still go out before the process ends.
            print(f"{FIGURE} {(self._count - 1) / (time.perf_counter() - self._began)}", flush=True)


def fill(url: str, count: int) -> None:
    """Plain messages, for those who take any: pika is quick enough."""
    import pika

    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.queue_declare(QUEUE, durable=True)
        for number in range(count):
            body = json.dumps({"number": number}).encode()
            properties = pika.BasicProperties(
                content_type="application/json", delivery_mode=2, message_id=str(number)
            )
            channel.basic_publish("", QUEUE, body, properties)


def warren_worker(url: str, count: Count) -> None:
    import warren

    app = warren.App(url, group="bench")

    @app.handler(QUEUE, prefetch=PREFETCH)
    async def handle(message: Any) -> None:
        count.one()

    app.run()


def aio_pika_worker(url: str, count: Count) -> None:
    import aio_pika

    async def handle(message: aio_pika.abc.AbstractIncomingMessage) -> None:
        count.one()
        await message.ack()

    async def work() -> None:
        connection = await aio_pika.connect_robust(url)
        channel = await connection.channel()
        await channel.set_qos(PREFETCH)
        queue = await channel.declare_queue(QUEUE, durable=True)
        await queue.consume(handle)
        await asyncio.Event().wait()

    uvloop.run(work())


def faststream_worker(url: str, count: Count) -> None:
    from faststream import FastStream
    from faststream.rabbit import Channel, RabbitBroker, RabbitQueue

    broker = RabbitBroker(url, default_channel=Channel(prefetch_count=PREFETCH))

    @broker.subscriber(RabbitQueue(QUEUE, durable=True))
    async def handle(message: dict[str, int]) -> None:
        count.one()

    uvloop.run(FastStream(broker).run(log_level=40))


def _dramatiq(url: str) -> tuple[Any, Any]:
    # Read once, by the import; the name is Dramatiq's.
    os.environ["dramatiq_queue_prefetch"] = str(PREFETCH)  # noqa: SIM112
    import dramatiq
    from dramatiq.brokers.rabbitmq import RabbitmqBroker

    broker = RabbitmqBroker(url=url, middleware=[])
    dramatiq.set_broker(broker)
    return dramatiq, broker


def dramatiq_fill(url: str, count: int) -> None:
    dramatiq, _ = _dramatiq(url)

    @dramatiq.actor(queue_name=QUEUE, actor_name="handle")
    def handle(number: int) -> None: ...

    for number in range(count):
        handle.send(number)


def dramatiq_worker(url: str, count: Count) -> None:
    dramatiq, broker = _dramatiq(url)

    @dramatiq.actor(queue_name=QUEUE, actor_name="handle")
    def handle(number: int) -> None:
        count.one()

    worker = dramatiq.Worker(broker, worker_threads=1)
    worker.start()
    worker.join()
    while True:
        time.sleep(1)


def _celery(url: str) -> Any:
    from celery import Celery

    app = Celery("bench", broker=url.rstrip("/") + "//" if url.count("/") < 3 else url)
    app.conf.update(
        task_default_queue=QUEUE,
        task_acks_late=True,
        task_ignore_result=True,
        worker_prefetch_multiplier=PREFETCH,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
    )
    return app


def celery_fill(url: str, count: int) -> None:
    app = _celery(url)

    @app.task(name="handle")
    def handle(number: int) -> None: ...

    for number in range(count):
        handle.delay(number)


def celery_worker(url: str, count: Count) -> None:
    app = _celery(url)

    @app.task(name="handle")
    def handle(number: int) -> None:
        count.one()

    app.worker_main(["worker", "--pool=solo", "--loglevel=ERROR", "--without-gossip"])


Fill = Callable[[str, int], None]
Worker = Callable[[str, Count], None]
FRAMEWORKS: dict[str, tuple[Fill, Worker]] = {
    "warren": (fill, warren_worker),
    "aio-pika": (fill, aio_pika_worker),
    "FastStream": (fill, faststream_worker),
    "Dramatiq": (dramatiq_fill, dramatiq_worker),
    "Celery": (celery_fill, celery_worker),
}


def main() -> None:
    what, name, url, count = sys.argv[1:]
    fill_it, work_on_it = FRAMEWORKS[name]
    if what == "fill":
        fill_it(url, int(count))
    else:
        work_on_it(url, Count(int(count)))


if __name__ == "__main__":
    main()
