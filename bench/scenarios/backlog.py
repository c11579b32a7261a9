"""A million messages that wait: what they weigh, and whether they slow the queue down."""

from __future__ import annotations

from statistics import median

from bench.load.consuming import Consumer
from bench.load.link import Link
from bench.load.publishing import Publisher
from bench.load.setup import exclusive_queue
from bench.memory import settled_bytes
from bench.model import Context, Goal, Metric, Numbers, Scenario

BODY_BYTES = 200
LARGE, SMALL = 1_000_000, 10_000
REPEATS = 15  # of the small one: a single drain is over in a blink


def backlog(url: str, pid: int | None, large: int, small: int) -> Numbers:
    body = bytes(BODY_BYTES)
    with Link(url) as link:
        queue, publisher, consumer = exclusive_queue(link), Publisher(link), Consumer(link)
        short = []
        for _ in range(REPEATS):
            publisher.fill(queue, body, small)
            short.append(consumer.drain(queue, small).seconds)
        before = settled_bytes(pid) if pid else 0
        publisher.fill(queue, body, large)
        after = settled_bytes(pid) if pid else 0
        took = consumer.drain(queue, large)
        link.close()
    rates = {"drain_10k": small / median(short), "drain_1m": large / took.seconds}
    numbers = {**rates, "drain_1m_to_10k": rates["drain_1m"] / rates["drain_10k"]}
    return numbers | ({"bytes_a_message": (after - before) / large} if pid else {})


def _measure(context: Context) -> Numbers:
    return context.load(
        backlog,
        pid=context.broker.pid,
        large=context.scaled(LARGE),
        small=context.scaled(SMALL),
    )


SCENARIO = Scenario(
    "backlog",
    (
        Metric("drain_10k", "Drain 10,000 queued", "rate"),
        Metric("drain_1m", "Drain 1,000,000 queued", "rate"),
        # "No slower": two rates of the same broker, and 5 % is what they vary by from run to run.
        Metric(
            "drain_1m_to_10k", "Drain rate, million to ten thousand", "ratio", Goal(at_least=0.95)
        ),
        Metric("bytes_a_message", "Memory a queued 200 B message", "bytes", higher_is_better=False),
    ),
    _measure,
    fresh=True,
)
