"""From the start of the process until the port accepts connections."""

from __future__ import annotations

from bench.model import Context, Goal, Metric, Numbers, Scenario


def _measure(context: Context) -> Numbers:
    took = context.broker.started_s
    return {} if took is None else {"startup": took}


SCENARIO = Scenario(
    "startup",
    (Metric("startup", "Start to listening", "time", Goal(at_most=0.3), higher_is_better=False),),
    _measure,
    fresh=True,
    rounds=5,
)
