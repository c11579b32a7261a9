"""Messages a second through a handler that does nothing: warren beside what people use today.

    python -m bench.frameworks [--url amqp://…] [--count 20000] [--rounds 3]

Each framework works in one process of its own, set up for speed as its documentation says, with
acknowledgement after the handler (at least once, as ours). The messages are published by the
framework's own client before the clock starts; the clock runs from the first handled message to the
last one, inside the worker. Rounds alternate; medians are compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import uvloop

QUEUE = "bench-frameworks"
PREFETCH = 500


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
            print(f"RATE {(self._count - 1) / (time.perf_counter() - self._began)}", flush=True)


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

    os.environ["DRAMATIQ_QUEUE_PREFETCH"] = str(PREFETCH)
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


def clean(url: str) -> None:
    import pika

    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        for queue in (QUEUE, f"{QUEUE}.DQ", f"{QUEUE}.XQ"):
            channel.queue_delete(queue)


def _command(name: str, url: str, count: int) -> list[str]:
    command = [sys.executable, "-m", "bench.frameworks", "--worker", name]
    command += ["--url", url, "--count", str(count)]
    return command


def measure(name: str, url: str, count: int) -> float:
    """One round: fill, work, clean up. Returns messages a second."""
    clean(url)
    FRAMEWORKS[name][0](url, count)
    child = subprocess.Popen(
        _command(name, url, count),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith("RATE "):
                return float(line.split()[1])
        raise SystemExit(f"{name}: the worker ended without a figure")
    finally:
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        clean(url)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", default="amqp://guest:guest@127.0.0.1:5672")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=FRAMEWORKS, default=list(FRAMEWORKS))
    parser.add_argument("--worker", choices=FRAMEWORKS)
    options = parser.parse_args()
    if options.worker:
        FRAMEWORKS[options.worker][1](options.url, Count(options.count))
        return
    rates: dict[str, list[float]] = {name: [] for name in options.only}
    for _ in range(options.rounds):
        for name in options.only:
            rates[name].append(measure(name, options.url, options.count))
            print(f"  {name:<12}{rates[name][-1]:>10,.0f}/s", file=sys.stderr, flush=True)
    best = median(rates.get("warren") or [0.0])
    print(f"{'framework':<12}{'messages/s':>12}{'warren is':>12}")
    for name, found in rates.items():
        print(f"{name:<12}{median(found):>12,.0f}{best / median(found):>11.1f}x")


if __name__ == "__main__":
    main()
