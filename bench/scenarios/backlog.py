"""A million messages that wait: what they weigh, and whether they slow the queue down."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.load.consuming import Consumer
from bench.load.link import Link
from bench.load.publishing import Publisher
from bench.load.setup import exclusive_queue
from bench.memory import settled_bytes
from bench.model import Context, Goal, Metric, Numbers, Scenario

BODY_BYTES = 200
LARGE, SMALL = 1_000_000, 10_000
REPEATS = 50  # of the small one, before and behind the large one: as many messages
#: Both are drained in turn for so long, once at least: a machine that has slow seconds and fast
#: ones tells little by a single pair. A rate is all messages by all seconds: the median of many
#: blinks would leave out the pauses of the machine, which a long drain can't.
TURNS_S = 45.0


@dataclass
class Drained:
    """Drains of one length, added up."""

    messages: int = 0
    seconds: float = 0.0

    def add(self, messages: int, seconds: float) -> None:
        self.messages += messages
        self.seconds += seconds

    @property
    def rate(self) -> float:
        return self.messages / self.seconds


def backlog(url: str, pid: int | None, large: int, small: int) -> Numbers:
    body = bytes(BODY_BYTES)
    weights, short, long = [], Drained(), Drained()
    with Link(url) as link:
        queue, publisher, consumer = exclusive_queue(link), Publisher(link), Consumer(link)

        def drain_short() -> None:
            for _ in range(REPEATS):
                publisher.fill(queue, body, small)
                short.add(small, consumer.drain(queue, small).seconds)

        until = time.monotonic() + TURNS_S
        while not long.messages or time.monotonic() < until:
            drain_short()
            before = settled_bytes(pid) if pid and not weights else 0
            publisher.fill(queue, body, large)
            if before:
                weights.append((settled_bytes(pid) - before) / large)
            long.add(large, consumer.drain(queue, large).seconds)
            drain_short()
        link.close()
    rates = {"drain_10k": short.rate, "drain_1m": long.rate}
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
