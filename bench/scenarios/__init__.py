"""The questions, a file each group."""

from __future__ import annotations

from bench.model import Scenario
from bench.scenarios import (
    backlog,
    clients,
    durable,
    fanout,
    footprint,
    many,
    roundtrip,
    startup,
    throughput,
    topic,
)

ALL: tuple[Scenario, ...] = (
    *throughput.SCENARIOS,
    roundtrip.SCENARIO,
    fanout.SCENARIO,
    topic.SCENARIO,
    footprint.SCENARIO,
    many.SCENARIO,
    startup.SCENARIO,
    backlog.SCENARIO,
    *durable.SCENARIOS,
    *clients.SCENARIOS,
)
