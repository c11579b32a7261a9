"""Many queues with ten bindings each: how long to make them, and what they take.

RabbitMQ sets the number: it takes minutes for ten thousand queues. A hundred thousand queues and
a million bindings on warren are a test of the suite.
"""

from __future__ import annotations

from bench.load import frames
from bench.load.clock import Stopwatch
from bench.load.link import Link, LoadError
from bench.load.publishing import Batch, Publisher
from bench.memory import settled_bytes
from bench.model import Context, Goal, Metric, Numbers, Scenario

EXCHANGE = "bench-many"
QUEUES = 2_000
EACH = 10  # bindings a queue
STEP = 100  # requests without an answer, before one with an answer keeps the two in step


def queue_of(number: int) -> str:
    return f"bench-many-{number:06}"


def make(url: str, pid: int, queues: int) -> Numbers:
    declares = [frames.declare_queue(queue_of(at), nowait=True) for at in range(queues)]
    binds = [
        frames.bind(queue_of(at // EACH), EXCHANGE, f"sensor.{at}.changed", nowait=True)
        for at in range(queues * EACH)
    ]
    before = settled_bytes(pid)
    with Link(url) as link:
        link.call(frames.declare_exchange(EXCHANGE, "topic"), (40, 11))
        rates = [_rate(link, requests) for requests in (declares, binds)]
        after = settled_bytes(pid)
        _check(link, queues)
        link.close()
    return {
        "many_declare": rates[0],
        "many_bind": rates[1],
        "many_memory": after - before,
    }


def _rate(link: Link, requests: list[bytes]) -> float:
    watch = Stopwatch()
    for blob in frames.batched(requests, STEP):
        link.sock.sendall(blob)
        link.ready(queue_of(0))
    return len(requests) / watch.stop().seconds


def _check(link: Link, queues: int) -> None:
    """A message for every hundredth queue is there."""
    numbers = range(0, queues, 100)
    messages = [frames.publish(EXCHANGE, f"sensor.{at * EACH}.changed", b"x") for at in numbers]
    batches: list[Batch] = [(blob, 1) for blob in messages]
    Publisher(link).run(batches)
    if not all(link.ready(queue_of(at)) == 1 for at in numbers):
        raise LoadError("a message did not reach its queue")


def _measure(context: Context) -> Numbers:
    if context.broker.pid is None:
        return {}
    return context.load(make, pid=context.broker.pid, queues=context.scaled(QUEUES))


SCENARIO = Scenario(
    "many",
    (
        Metric("many_declare", "Declare 2,000 queues", "rate", Goal(times=1.0)),
        Metric("many_bind", "Bind them, 20,000 bindings", "rate", Goal(times=1.0)),
        Metric(
            "many_memory",
            "Memory they take",
            "memory",
            Goal(times=1.0),
            higher_is_better=False,
        ),
    ),
    _measure,
    fresh=True,
)
