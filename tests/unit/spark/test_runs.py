"""Whose segments a source may read as its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.spark.test_exactly_once_model import OPTIONS, Job
from warren.errors import LoadedTwice
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range
from warren.spark.drain.runs import new_source, run_of
from warren.spark.driver import Driver, QueuePartition
from warren.spark.options import SourceOptions
from warren.spark.queue_info import QueueInfo


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(str(tmp_path / "ledger"), "exclusive")


ONE, TWO = new_source(), new_source()
LATER = f"{int(time.time() + 3600) * 1000}-later"


def bodies(job: Job, query: str, source: str, end: int = 3) -> Iterator[bytes]:
    drain = Drain(OPTIONS, job.ledger, run=run_of(query, source), connect=job.broker.connect)
    for batch in drain.rows([Range("q", 0, end)]):
        yield from batch.column("body").to_pylist()


def publish(job: Job, *bodies: bytes) -> None:
    for body in bodies:
        job.broker.queue.publish(body)


def test_two_sources_of_a_query_do_not_share_out_the_messages_of_a_queue(job: Job) -> None:
    publish(job, b"0", b"1", b"2")
    assert list(bodies(job, "query", ONE)) == [b"0", b"1", b"2"]
    publish(job, b"3")

    with pytest.raises(LoadedTwice, match="loads queue 'q' twice"):
        next(bodies(job, "query", TWO, end=4))

    assert len(job.broker.queue.ready) == 1


@pytest.mark.parametrize(
    ("query", "source"),
    [("query", ONE), ("new query", TWO), ("query", LATER), ("query", ""), ("", "")],
    ids=["again", "new checkpoint", "first offsets lost", "before there were sources", "by hand"],
)
def test_what_was_taken_is_read_again(job: Job, query: str, source: str) -> None:
    publish(job, b"0", b"1", b"2")
    list(bodies(job, "query", ONE))

    assert list(bodies(job, query, source)) == [b"0", b"1", b"2"]


class Quiet(Driver):
    """Of a broker that has a queue, and nothing in it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(SourceOptions.parse({"queues": "q", "ledger": str(folder)}))

    def _queues(self) -> dict[str, QueueInfo]:
        return {"q": QueueInfo("q", "classic")}

    def _ready(self, *_: Any) -> dict[str, int]:
        return {"q": 0}

    def _kinds(self, *_: Any) -> dict[str, QueueInfo]:
        return self._queues()


def test_a_source_is_the_same_for_as_long_as_its_checkpoint(tmp_path: Path) -> None:
    first, second = Quiet(tmp_path), Quiet(tmp_path)
    begin = first.initial()
    assert begin["source"] not in ("", second.initial()["source"])
    assert first.initial() == begin

    restarted = Quiet(tmp_path)
    end = restarted.latest(begin, None, None)
    assert restarted.reported is not None
    assert restarted.reported["source"] == end["source"] == begin["source"]
    # A first batch that is run again: Spark has its end only.
    end["queues"]["q"] = 3
    (task,) = restarted.partitions(restarted.initial(), end)
    assert isinstance(task, QueuePartition)
    assert task.source == begin["source"]
