"""Publishing with confirms, and consuming with acks, on one connection."""

from __future__ import annotations

from functools import partial

from bench.load import frames
from bench.load.consuming import Consumer
from bench.load.link import Link
from bench.load.publishing import Publisher
from bench.load.setup import exclusive_queue, expect_ready
from bench.model import Context, Goal, Metric, Numbers, Scenario

# Body size, messages, how far ahead of RabbitMQ.
SIZES = ((200, 200_000, 4.0), (16, 200_000, 1.0), (16_384, 40_000, 1.0))
WARM_UP = 2_000


def publish(url: str, body_bytes: int, count: int) -> Numbers:
    """Publish into a queue that nobody reads."""
    body = bytes(body_bytes)
    with Link(url) as link:
        queue, publisher = exclusive_queue(link), Publisher(link)
        publisher.fill(queue, body, WARM_UP)
        link.call(frames.purge(queue), (50, 31))
        took = publisher.fill(queue, body, count)
        expect_ready(link, queue, count)
        link.close()
    return {"rate": count / took.seconds, "busy": took.busy}


def consume(url: str, body_bytes: int, count: int) -> Numbers:
    """Drain a queue that was filled before the clock started."""
    body = bytes(body_bytes)
    with Link(url) as link:
        queue, publisher, consumer = exclusive_queue(link), Publisher(link), Consumer(link)
        publisher.fill(queue, body, WARM_UP)
        consumer.drain(queue, WARM_UP)
        publisher.fill(queue, body, count)
        took = consumer.drain(queue, count)
        link.close()
    return {"rate": count / took.seconds, "busy": took.busy}


def size_name(body_bytes: int) -> str:
    return f"{body_bytes} B" if body_bytes < 1024 else f"{body_bytes // 1024} KiB"


def _publish_confirm(context: Context, *, body_bytes: int, count: int) -> Numbers:
    numbers = context.load(publish, body_bytes=body_bytes, count=context.scaled(count))
    return {f"publish_confirm_{body_bytes}": numbers["rate"], "busy": numbers["busy"]}


def _consume_ack(context: Context, *, body_bytes: int, count: int) -> Numbers:
    numbers = context.load(consume, body_bytes=body_bytes, count=context.scaled(count))
    return {f"consume_ack_{body_bytes}": numbers["rate"], "busy": numbers["busy"]}


def _scenario(kind: str, body_bytes: int, count: int, times: float) -> Scenario:
    title = "Publish, confirmed" if kind == "publish_confirm" else "Consume, acked"
    name = f"{kind}_{body_bytes}"
    metric = Metric(name, f"{title}, {size_name(body_bytes)}", "rate", Goal(times=times))
    measure = _publish_confirm if kind == "publish_confirm" else _consume_ack
    return Scenario(name, (metric,), partial(measure, body_bytes=body_bytes, count=count))


SCENARIOS = tuple(
    _scenario(kind, *size) for kind in ("publish_confirm", "consume_ack") for size in SIZES
)
