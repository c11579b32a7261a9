"""One message there and back: published, delivered, and only then the next.

Short rounds, and many: whatever else runs on the machine for a moment is in the 99th percentile of
the round it falls into, so it must not be able to fall into most of them.
"""

from __future__ import annotations

from bench.load.consuming import Consumer
from bench.load.link import Link
from bench.load.setup import exclusive_queue
from bench.model import Context, Goal, Metric, Numbers, Scenario

BODY_BYTES = 200
COUNT = 2_000
ROUNDS = 9


def round_trip(url: str, count: int) -> Numbers:
    body = bytes(BODY_BYTES)
    with Link(url) as link:
        queue, consumer = exclusive_queue(link), Consumer(link)
        consumer.round_trips(queue, body, count // 10)  # warm-up
        took = sorted(consumer.round_trips(queue, body, count))
        link.close()
    return {
        "round_trip_p50": took[len(took) // 2],
        "round_trip_p99": took[len(took) * 99 // 100],
    }


def _measure(context: Context) -> Numbers:
    return context.load(round_trip, count=context.scaled(COUNT))


SCENARIO = Scenario(
    "round_trip",
    tuple(
        Metric(
            f"round_trip_{part}",
            f"There and back, 200 B, {part}",
            "latency",
            Goal(times=1.0),
            higher_is_better=False,
        )
        for part in ("p50", "p99")
    ),
    _measure,
    rounds=ROUNDS,
)
