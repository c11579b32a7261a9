"""Memory of a broker that has nothing to do: 1,000 idle connections, 1,000 queues."""

from __future__ import annotations

from contextlib import ExitStack

from bench.load.link import Link
from bench.load.setup import exclusive_queue
from bench.memory import settled_bytes
from bench.model import Context, Goal, Metric, Numbers, Scenario

CONNECTIONS = 1_000


def idle(url: str, pid: int, connections: int) -> Numbers:
    """Open connections, each with a channel and a queue, and look at the broker's memory."""
    before = settled_bytes(pid)
    with ExitStack() as stack:
        for _ in range(connections):
            exclusive_queue(stack.enter_context(Link(url)))
        after = settled_bytes(pid)
    return {"memory_started": before, "memory_idle": after}


def _measure(context: Context) -> Numbers:
    if context.broker.pid is None:
        return {}
    connections = context.scaled(CONNECTIONS)
    return context.load(idle, pid=context.broker.pid, connections=connections)


SCENARIO = Scenario(
    "memory",
    (
        Metric("memory_started", "Memory, just started", "memory", higher_is_better=False),
        Metric(
            "memory_idle",
            "Memory, 1,000 idle connections and queues",
            "memory",
            Goal(times=1.0),
            higher_is_better=False,
        ),
    ),
    _measure,
    fresh=True,
)
