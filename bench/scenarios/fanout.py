"""One message into a hundred queues: how many a second are published and confirmed."""

from __future__ import annotations

from bench.load import frames
from bench.load.link import Link
from bench.load.publishing import Publisher, equal_batches
from bench.load.setup import exclusive_queue, expect_ready, unique
from bench.model import Context, Goal, Metric, Numbers, Scenario

QUEUES = 100
BODY_BYTES = 200
COUNT = 5_000
WARM_UP = 200


def fan_out(url: str, count: int) -> Numbers:
    exchange = unique("fan")
    with Link(url) as link:
        link.call(frames.declare_exchange(exchange, "fanout", auto_delete=True), (40, 11))
        queues = [exclusive_queue(link) for _ in range(QUEUES)]
        for queue in queues:
            link.call(frames.bind(queue, exchange, ""), (50, 21))
        message = frames.publish(exchange, "", bytes(BODY_BYTES))
        publisher = Publisher(link)
        publisher.run(equal_batches(message, WARM_UP))
        took = publisher.run(equal_batches(message, count))
        for queue in queues:
            expect_ready(link, queue, WARM_UP + count)
        link.close()
    return {"fan_out_100": count / took.seconds, "busy": took.busy}


def _measure(context: Context) -> Numbers:
    return context.load(fan_out, count=context.scaled(COUNT))


SCENARIO = Scenario(
    "fan_out",
    (Metric("fan_out_100", "Publish to 100 queues, confirmed", "rate", Goal(times=1.0)),),
    _measure,
)
