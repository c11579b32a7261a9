"""The words of the benchmark: metrics with their goals, scenarios, running brokers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from bench.load.process import run_load

Numbers = dict[str, float]


class StartFailed(Exception):
    """A broker did not come up."""


@dataclass(frozen=True)
class Goal:
    """What a metric must reach: so many times better than RabbitMQ, or a value of its own."""

    times: float | None = None  # 1.0: merely ahead
    at_most: float | None = None
    at_least: float | None = None

    def met(self, ours: float, ahead: float | None) -> bool | None:
        """None where RabbitMQ's figure is needed and not there."""
        if self.times is not None:
            if ahead is None:
                return None
            return ahead > 1.0 if self.times == 1.0 else ahead >= self.times
        if self.at_most is not None:
            return ours <= self.at_most
        return self.at_least is None or ours >= self.at_least


@dataclass(frozen=True)
class Metric:
    name: str  # in the JSON result and for --only
    title: str
    unit: str  # a key of report.UNITS
    goal: Goal | None = None
    higher_is_better: bool = True

    def ahead(self, ours: float, theirs: float | None) -> float | None:
        """How many times better ours is."""
        if theirs is None or ours <= 0 or theirs <= 0:
            return None
        return ours / theirs if self.higher_is_better else theirs / ours


class Running(Protocol):
    """A broker that listens."""

    @property
    def url(self) -> str: ...

    @property
    def pid(self) -> int | None:
        """None: not ours, so its memory is not ours to judge."""

    @property
    def started_s(self) -> float | None:
        """From the start of the process to listening."""

    @property
    def version(self) -> str: ...

    def stop(self) -> None: ...

    def last_words(self) -> str:
        """The end of what it printed, for when it fails."""


class Launcher(Protocol):
    """Knows how to start one of the two brokers."""

    name: str

    def start(self, *, data: bool = False) -> Running:
        """Start it; with ``data``, what is durable survives (RabbitMQ always does that)."""
        ...


@dataclass(frozen=True)
class Context:
    """What a scenario gets: a broker, and a process of its own to load it from."""

    broker: Running
    quick: bool

    def scaled(self, count: int) -> int:
        return count // 10 if self.quick else count

    def load(self, job: Callable[..., Numbers], **arguments: Any) -> Numbers:
        return run_load(job, url=self.broker.url, **arguments)


@dataclass(frozen=True)
class Scenario:
    """One question. ``measure`` answers it once and returns a value for each metric it can."""

    name: str
    metrics: tuple[Metric, ...]
    measure: Callable[[Context], Numbers]
    prepare: Callable[[Context], None] | None = None
    finish: Callable[[Context], None] | None = None  # only for a broker that outlives the run
    fresh: bool = False  # a new broker process for every round
    data: bool = False  # on a broker that keeps what is durable
    rounds: int = 1  # at least so many
