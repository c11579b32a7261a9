"""A range whose segments are forgotten is not filled with what is in the queue now."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.spark.test_exactly_once_model import OPTIONS, Crash, Job
from warren import clock as clocks
from warren.errors import LedgerGap
from warren.spark import portions, task_connection
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range


class Wall:
    """Only the clock on the wall tells how long one slept."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def time(self) -> float:
        return time.time() + self.ahead

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_connection, "_PAUSE_S", 0.0)
    monkeypatch.setattr(task_connection, "_FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(portions, "_SMALL_BYTES", 0)  # each segment's rows at once


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(str(tmp_path / "ledger"), "exclusive")


def publish(job: Job, count: int) -> None:
    for _ in range(count):
        job.broker.queue.publish(b"%d" % job.broker.queue.published)


def batches(job: Job, until: int) -> None:
    """Batches of eight, committed and forgotten at once."""
    while job.position < until:
        publish(job, 8)
        job.batch(None)
        job.ledger.prune({"q": job.position}, older_than=float("inf"))


def drain(job: Job, **more: Any) -> Drain:
    return Drain(OPTIONS, job.ledger, connect=job.broker.connect, reconnect_s=60, **more)


def test_an_old_checkpoint_takes_nothing_from_the_queue(job: Job) -> None:
    batches(job, 40)
    publish(job, 3)

    with pytest.raises(LedgerGap, match="'q' from offset 8 on, though it has those from 36 on"):
        list(drain(job).rows([Range("q", 8, 16)]))

    assert len(job.broker.queue.ready) == 3
    assert job.ledger.shelves().of("q").starts == [36]


def test_a_gap_within_a_range_is_not_filled(job: Job) -> None:
    publish(job, 12)
    job.batch(None)
    publish(job, 3)
    job.ledger.files.delete("q@00000000000000000004.arrow")

    handed_out = []
    with pytest.raises(LedgerGap, match="from offset 4 on"):
        for batch in drain(job).rows([Range("q", 0, 12)]):
            handed_out += batch.column("body").to_pylist()

    assert handed_out == [b"0", b"1", b"2", b"3"]
    assert len(job.broker.queue.ready) == 3


def test_an_attempt_that_slept_until_its_batch_was_forgotten_takes_nothing(job: Job) -> None:
    publish(job, 8)
    sleeper = drain(job).rows([Range("q", 0, 8)])
    next(sleeper)
    job.broker.links[-1].abandon()  # the broker hangs up
    job.batch(None)
    batches(job, 24)
    publish(job, 3)

    with pytest.raises(LedgerGap, match="from offset 4 on"):
        list(sleeper)

    assert len(job.broker.queue.ready) == 3


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    wall = Wall()
    monkeypatch.setattr(clocks, "time", wall)
    return wall


def others_go_on(job: Job) -> None:
    """Other attempts read our range and what follows; the ledger forgets it; then more comes."""
    for link in job.broker.links:
        link.abandon()  # the broker hangs up on who sleeps
    job.batch(None)
    batches(job, 24)
    publish(job, 4)


def assert_all_is_left(job: Job) -> None:
    """Nothing of what came last was taken, and the next attempt gets it."""
    assert job.ledger.shelves().of("q").starts == [20]
    rest = [b"%d" % number for number in range(24, 28)]
    assert job.attempt(28) == rest


def test_who_slept_over_a_list_of_the_ledger_takes_nothing(
    job: Job, wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(job, 8)
    everything, asleep = job.ledger.shelves, [True]

    def shelves() -> Any:
        found = everything()
        if asleep:
            asleep.clear()
            others_go_on(job)
            wall.ahead += 7200.0
        return found

    monkeypatch.setattr(job.ledger, "shelves", shelves)
    with pytest.raises(LedgerGap, match="from offset 0 on"):
        list(drain(job).rows([Range("q", 0, 8)]))

    assert_all_is_left(job)


def asleep_before_the_segment(job: Job, *, dies_at: str = "") -> Any:
    """An attempt that sleeps at its first segment."""
    asleep = [True]

    def probe(at: str, _: str) -> None:
        if at == "before segment" and asleep:
            asleep.clear()
            others_go_on(job)
        elif at == dies_at:
            raise Crash(at)

    return drain(job, probe=probe).rows([Range("q", 0, 8)])


def test_nor_does_one_whose_machine_was_frozen_with_its_clocks(job: Job) -> None:
    publish(job, 8)

    with pytest.raises(LedgerGap, match="though it has those from 20 on"):
        list(asleep_before_the_segment(job))

    assert_all_is_left(job)


def test_what_one_has_written_that_died_on_waking_is_taken_out(job: Job) -> None:
    publish(job, 8)
    with pytest.raises(Crash):
        list(asleep_before_the_segment(job, dies_at="after segment"))
    for link in job.broker.links:
        link.abandon()

    assert_all_is_left(job)
    assert "q@00000000000000000000.arrow" in job.disk.names()
    with pytest.raises(LedgerGap, match="from offset 0 on, though it has those from 20 on"):
        list(drain(job).rows([Range("q", 0, 4)]))  # by a checkpoint from a backup
    job.ledger.prune({"q": 28}, older_than=float("inf"))
    assert "q@00000000000000000000.arrow" not in job.disk.names()


def test_who_slept_right_after_a_segment_leaves_it_to_who_went_on_behind_it(
    job: Job, wall: Wall
) -> None:
    publish(job, 8)
    asleep = [True]

    def probe(at: str, _: str) -> None:
        if at == "after segment" and asleep:
            asleep.clear()
            for link in job.broker.links:
                link.abandon()
            assert job.attempt(8) == [b"%d" % number for number in range(8)]
            wall.ahead += 7200.0

    with pytest.raises(LedgerGap, match="though it has those from 4 on"):
        list(drain(job, probe=probe).rows([Range("q", 0, 8)]))

    assert job.ledger.shelves().of("q").starts == [0, 4]
    assert job.attempt(8) == [b"%d" % number for number in range(8)], "Spark runs the batch again"


def test_who_deletes_a_queue_s_rows_and_marks_lets_its_offsets_begin_anew(job: Job) -> None:
    batches(job, 24)
    for file in Path(job.ledger.place).glob("q@*20.*"):
        if file.suffix != ".forgotten":
            file.unlink()
    job.position = 0
    publish(job, 8)

    with pytest.raises(Crash):
        job.attempt(8, point="before ack", crashes=2)
    job.broker.links[-1].abandon()

    assert job.ledger.shelves().of("q").in_doubt == [4]
    assert not any(name.endswith(".forgotten") for name in job.disk.names())
    assert job.attempt(8) == [b"%d" % number for number in range(24, 32)]


def test_segments_that_another_attempt_writes_while_they_are_listed_are_no_gap(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(job, 12)
    everything = job.disk.names
    others = [job.attempt]

    def names() -> list[str]:
        """The list is made while files are: it has a later one, and not those before it."""
        if others:
            others.pop()(12)
            return [name for name in everything() if "@00000000000000000008" in name]
        return everything()

    monkeypatch.setattr(job.disk, "names", names)

    assert job.attempt(12) == [b"%d" % number for number in range(12)]
