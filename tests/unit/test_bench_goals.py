from __future__ import annotations

from typing import Any

import pytest

from bench.frameworks import faster_ones
from bench.groups import misses


def measured(p99: float = 71.6, **join: Any) -> dict[str, Any]:
    good = {
        "moved": 90,
        "seconds_joined_to_balanced": 0.3,
        "queues_that_stayed_and_were_touched": 0,
    }
    return {"failover": {"ms": {"p50": 42.1, "p99": p99}}, "join": {**good, **join}}


def test_a_group_that_meets_its_goals_misses_none() -> None:
    assert misses({"rabbitmq": measured(), "warren": measured(p99=250, moved=91)}) == []


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (measured(p99=250.1), "250.1 ms from kill -9"),
        (measured(moved=92), "92 queues moved"),
        (measured(seconds_joined_to_balanced=5.1), "5.1 s from joined"),
        (measured(queues_that_stayed_and_were_touched=3), "3 queues that stayed"),
    ],
)
def test_a_goal_that_is_missed_is_named_with_its_broker(result: Any, told: str) -> None:
    (missed,) = misses({"warren": measured(), "rabbitmq": result})
    assert missed.startswith(f"rabbitmq: {told}")


def test_what_was_not_measured_is_not_judged() -> None:
    assert misses({"rabbitmq": {"failover": {"ms": {}}}}) == []


def test_a_framework_that_is_faster_than_warren_is_named() -> None:
    rates = {"rabbitmq": {"warren": [3.0, 2.0, 9.0], "Celery": [4.0, 4.0, 1.0], "aio-pika": [1.0]}}
    assert faster_ones(rates) == ["Celery on rabbitmq is faster than warren"]
    assert faster_ones({"rabbitmq": {"Celery": [1.0]}}) == []
