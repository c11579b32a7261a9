"""A million messages that wait: what they weigh, and whether they slow the queue down."""

from __future__ import annotations

import time
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
#: Both are drained in turn for so long, once at least: a machine that has slow seconds and fast
#: ones tells little by a single pair.
TURNS_S = 45.0


def backlog(url: str, pid: int | None, large: int, small: int) -> Numbers:
    body = bytes(BODY_BYTES)
    weights, short, long = [], [], []
    with Link(url) as link:
        queue, publisher, consumer = exclusive_queue(link), Publisher(link), Consumer(link)

        def drain(count: int) -> float:
            publisher.fill(queue, body, count)
            return count / consumer.drain(queue, count).seconds

        until = time.monotonic() + TURNS_S
        while not long or time.monotonic() < until:
            short += [drain(small) for _ in range(REPEATS)]
            before = settled_bytes(pid) if pid and not weights else 0
            publisher.fill(queue, body, large)
            if before:
                weights.append((settled_bytes(pid) - before) / large)
            long.append(large / consumer.drain(queue, large).seconds)
        short += [drain(small) for _ in range(REPEATS)]
        link.close()
    rates = {"drain_10k": median(short), "drain_1m": median(long)}
    numbers = {**rates, "drain_1m_to_10k": rates["drain_1m"] / rates["drain_10k"]}
    return numbers | ({"bytes_a_message": weights[0]} if weights else {})


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
