"""A broker that was killed: all that is in a classic queue is flagged, were it ever read or not."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.unit.spark import test_exactly_once_model as model
from tests.unit.spark.test_exactly_once_model import Crash, Job
from tests.unit.spark.test_several_queues import NAMES, OPTIONS, Task
from warren.errors import QueueUnavailable
from warren.spark import portions, task_connection
from warren.spark.drain import again, patience
from warren.spark.drain import drain as drain_module
from warren.spark.drain import job as job_module
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Job as DrainJob
from warren.spark.drain.job import Range
from warren.spark.drain.parts import held_bytes
from warren.spark.options import SourceOptions


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_RETRY_S", 0.0)
    monkeypatch.setattr(task_connection, "_PAUSE_S", 0.0)
    monkeypatch.setattr(task_connection, "_FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(portions, "_SMALL_BYTES", 0)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    job = Job(str(tmp_path / "ledger"), "exclusive")
    job.suspicious, job.limit = False, 10**6
    return job


def publish(job: Job, bodies: Iterable[bytes], *, ids: bool = False) -> None:
    for body in bodies:
        job.broker.queue.publish(body, f"{body!r}" if ids else None)


def kill_broker(job: Job) -> None:
    job.broker.kill(0)
    job.suspicious = True


def test_a_message_that_looks_like_one_in_doubt_is_kept_behind_others(job: Job) -> None:
    publish(job, [b"a", b"b", b"c", b"d"])
    with pytest.raises(Crash):
        job.attempt(4, point="before settled")  # the broker has read the acknowledgement
    job.broker.links[-1].abandon()
    publish(job, [b"e", b"b", b"f"])
    kill_broker(job)

    job.table, job.position = job.attempt(4), 4
    job.read_all()

    assert job.table == [b"a", b"b", b"c", b"d", b"e", b"b", b"f"]
    assert job.broker.queue.ready == []


_BEHIND = [*(b"x%d" % number for number in range(7)), b"b", b"y0", b"y1", b"y2"]


@pytest.mark.parametrize("mode", ["exclusive", "single active"])
@pytest.mark.parametrize("point", ["before ack", "after ack"])
@pytest.mark.parametrize("taken", [[b"b"], [b"a", b"b"]])
@pytest.mark.parametrize("first", range(7))
def test_an_equal_message_is_kept_wherever_a_window_ends(
    tmp_path: Path, mode: str, point: str, taken: list[bytes], first: int
) -> None:
    """The broker is killed once, when it has read an acknowledgement or just before."""
    job = Job(str(tmp_path / "ledger"), mode)
    job.suspicious, job.limit = False, 10**6
    publish(job, [b"s1", b"s2", b"s3"])
    job.batch(None)
    job.suspicious = False
    publish(job, taken)
    behind = _BEHIND[first:]

    def probe(at: str, _: str) -> None:
        if at == point and not job.broker.queue.ready and behind:
            publish(job, behind)
            behind.clear()
            job.broker.kill(0)
            job.broker.down = True

    drain = Drain(model.OPTIONS, job.ledger, probe=probe, connect=job.broker.connect, busy_s=1.0)
    end = 3 + len(taken)
    for batch in drain.rows([Range("q", 3, end, mode, counts=False)]):
        job.table += batch.column("body").to_pylist()
    job.position, job.suspicious = end, True
    job.read_all()
    publish(job, [b"end"])
    job.read_all()

    assert job.table == [b"s1", b"s2", b"s3", *taken, *_BEHIND[first:], b"end"]
    assert job.ledger.shelves().of("q").in_doubt == []


def test_queues_whose_node_is_down_let_others_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(again, "_MOST_LOOKING", 1)
    monkeypatch.setattr(job_module, "_FIRST_PAUSE_S", 0.01)
    task = Task(tmp_path / "ledger", "exclusive", quorum=False, beats=0)
    task.publish([b"%d" % number for number in range(6)])
    task.run(6)
    task.publish([b"%d" % number for number in range(6, 12)])
    task.broker.kill(0)
    overflow = drain_module.overflow

    def watched(jobs: Iterable[DrainJob], most_bytes: int) -> None:
        jobs = list(jobs)
        if not task.broker.away:
            task.broker.away = {job.queue for job in jobs if job.looking}
        overflow(jobs, most_bytes)

    monkeypatch.setattr(drain_module, "overflow", watched)
    drain = Drain(OPTIONS, task.ledger, connect=task.broker.connect, reconnect_s=0.3)

    with pytest.raises(QueueUnavailable):
        list(drain.rows([Range(name, 6, 12, suspicious=True) for name in NAMES]))

    (down,) = task.broker.away
    for name in NAMES:
        assert bool(task.ledger.shelves().of(name).after(6 - 1)) == (name != down)


def test_a_heavy_backlog_is_compared_a_part_at_a_time(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"queues": "q", "prefetch": "200", "drainTimeoutMs": "200"}
    monkeypatch.setattr(model, "OPTIONS", SourceOptions.parse(options))
    monkeypatch.setattr(drain_module, "_MOST_BYTES", 2_000)
    job.broker.hears = 1
    publish(job, [b"%03d" % number for number in range(200)])
    job.batch(None)
    publish(job, [b"%01000d" % number for number in range(150)])
    kill_broker(job)
    held: list[int] = []
    overflow = drain_module.overflow

    def watched(jobs: Iterable[DrainJob], most_bytes: int) -> None:
        jobs = list(jobs)
        held.append(held_bytes(jobs))
        overflow(jobs, most_bytes)

    monkeypatch.setattr(drain_module, "overflow", watched)
    job.batch(None)

    assert len(job.table) == 350
    assert max(held) < 10_000


def test_what_is_remembered_of_the_ledger_does_not_grow_with_the_backlog(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(again, "MOST_UNACKED", 20)
    remembered: list[int] = []
    youngest = again.Again._youngest

    def watched(self: again.Again, each: DrainJob) -> list[int]:
        found = youngest(self, each)
        remembered.append(len(each.known))
        return found

    monkeypatch.setattr(again.Again, "_youngest", watched)
    publish(job, [b"%d" % number for number in range(200)], ids=True)
    kill_broker(job)

    job.batch(None)

    assert len(job.ledger.shelves().of("q").starts) == 50
    assert max(remembered) <= 6


def test_a_few_queues_of_a_task_are_compared_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(again, "_MOST_LOOKING", 1)
    looking: list[int] = []
    overflow = drain_module.overflow

    def watched(jobs: Iterable[DrainJob], most_bytes: int) -> None:
        jobs = list(jobs)
        looking.append(sum(job.looking for job in jobs))
        overflow(jobs, most_bytes)

    monkeypatch.setattr(drain_module, "overflow", watched)
    task = Task(tmp_path / "ledger", "exclusive", quorum=False, beats=0)
    task.publish([b"%d" % number for number in range(6)])
    task.run(6)
    task.publish([b"%d" % number for number in range(6, 12)])
    task.broker.kill(0)

    ranges = [Range(name, 6, 12, suspicious=True) for name in NAMES]
    drain = Drain(OPTIONS, task.ledger, connect=task.broker.connect, busy_s=1.0)
    rows = [row for batch in drain.rows(ranges) for row in batch.to_pylist()]

    for name in NAMES:
        bodies = [row["body"] for row in rows if row["queue"] == name]
        assert bodies == [b"%d" % number for number in range(6, 12)]
    assert max(looking) == 1
