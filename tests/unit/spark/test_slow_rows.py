"""A drain whose rows somebody takes long over: the time is not the broker's."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.spark.test_exactly_once_model import OPTIONS, Job
from warren import clock as clocks
from warren.errors import LedgerGap
from warren.spark import portions
from warren.spark.drain import drain as drain_module
from warren.spark.drain import job as job_module
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range


class Clock:
    """Runs as it does; ``ahead`` is what passed while rows were handed out.

    The clock on the wall is wrong, and tells nothing of it.
    """

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead

    def clock_gettime(self, clock: int) -> float:
        return time.clock_gettime(clock) + self.ahead

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (drain_module, clocks):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(job_module, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(portions, "_SMALL_BYTES", 0)  # each segment's rows at once
    return clock


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(str(tmp_path / "ledger"), "exclusive")


def publish(job: Job, count: int) -> None:
    for _ in range(count):
        job.broker.queue.publish(b"%d" % job.broker.queue.published)


def drain(job: Job, **more: Any) -> Drain:
    return Drain(OPTIONS, job.ledger, connect=job.broker.connect, **more)


def bodies(batches: Any) -> list[int]:
    return [int(body) for batch in batches for body in batch.column("body").to_pylist()]


def test_a_channel_that_the_broker_closed_for_its_silence_is_opened_again(job: Job) -> None:
    publish(job, 12)
    rows = drain(job).rows([Range("q", 0, 12)])
    first = next(rows)

    job.broker.links[-1].time_out()

    assert bodies([first, *rows]) == list(range(12))
    assert len(job.broker.links) == 1
    assert job.ledger.shelves().of("q").in_doubt == []


def test_a_node_that_is_back_is_asked_before_its_queue_is_given_up(job: Job, clock: Clock) -> None:
    publish(job, 4)
    job.broker.away = {"down"}
    rows = drain(job, reconnect_s=60.0).rows([Range("q", 0, 4), Range("down", 0, 3)])
    assert next(rows).num_rows == 4

    publish(job, 3)
    job.broker.away.clear()
    clock.ahead += 3600.0

    assert bodies(rows) == [4, 5, 6]


def test_who_starts_on_a_queue_after_long_looks_whether_its_rows_are_forgotten(
    job: Job, clock: Clock
) -> None:
    publish(job, 4)
    job.broker.away = {"down"}
    rows = drain(job, reconnect_s=60.0).rows([Range("q", 0, 4), Range("down", 0, 3)])
    next(rows)

    other = drain_of_down(job)
    assert other == [4, 5, 6, 7, 8]
    job.ledger.prune({"down": 5}, older_than=float("inf"))
    publish(job, 3)
    clock.ahead += 3600.0

    with pytest.raises(LedgerGap, match="'down' from offset 0 on"):
        list(rows)
    assert len(job.broker.queue.ready) == 3


def drain_of_down(job: Job) -> list[int]:
    """Another attempt, and the batch behind it, meanwhile."""
    job.broker.away.clear()
    publish(job, 5)
    return [
        *bodies(drain(job).rows([Range("down", 0, 3)])),
        *bodies(drain(job).rows([Range("down", 3, 5)])),
    ]
