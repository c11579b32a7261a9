"""A queue whose node is down does not keep the others of its task waiting."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.spark.test_exactly_once_model import OPTIONS, Job
from warren.errors import ConnectionLost, QueueUnavailable
from warren.spark import portions, task_connection
from warren.spark.drain import job as job_module
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range
from warren.spark.task_connection import TaskConnection


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(task_connection, "_PAUSE_S", 0.0)
    monkeypatch.setattr(task_connection, "_FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(portions, "_SMALL_BYTES", 0)  # each segment's rows at once


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """The model has one queue, which answers to every name; one name is that of a node down."""
    job = Job(str(tmp_path / "ledger"), "exclusive")
    job.broker.away = {"down"}
    return job


def publish(job: Job, count: int) -> None:
    for _ in range(count):
        job.broker.queue.publish(b"%d" % job.broker.queue.published)


def drain(job: Job, reconnect_s: float) -> Drain:
    return Drain(OPTIONS, job.ledger, connect=job.broker.connect, reconnect_s=reconnect_s)


def test_the_others_are_read_before_the_task_gives_up(job: Job) -> None:
    publish(job, 12)

    with pytest.raises(QueueUnavailable, match="'down' has not been there"):
        list(drain(job, 0.1).rows([Range("down", 0, 5), Range("q", 0, 12)]))

    segments = job.ledger.chain("q", 0, 12)
    bodies = [body for each in segments for body in each.batch.column("body").to_pylist()]
    assert bodies == [b"%d" % number for number in range(12)]
    assert job.ledger.shelves().of("q").in_doubt == []
    assert len(job.broker.links) == 1


def test_it_is_read_when_its_node_is_back(job: Job) -> None:
    publish(job, 4)
    rows = drain(job, 60.0).rows([Range("q", 0, 4), Range("down", 0, 3)])
    assert next(rows).column("queue").to_pylist() == ["q"] * 4

    publish(job, 3)
    job.broker.away.clear()

    assert [batch.column("queue").to_pylist() for batch in rows] == [["down"] * 3]


def test_what_is_in_doubt_of_it_stays_in_doubt(job: Job) -> None:
    publish(job, 4)
    with pytest.raises(Exception, match="after segment"):
        job.attempt(4, point="after segment")
    job.broker.links[-1].abandon()
    job.broker.away = {"q"}

    rows = list(drain(job, 0.1).rows([Range("q", 0, 4)]))

    assert [batch.num_rows for batch in rows] == [4], "they are in the ledger"
    assert job.ledger.shelves().of("q").in_doubt == [0]


@pytest.fixture
def silent(tmp_path: Path) -> Job:
    """A quorum queue that loses its majority just before something is acknowledged."""
    job = Job(str(tmp_path / "ledger"), "single active", quorum=True)
    publish(job, 3)
    return job


def wait_in_vain(job: Job, *, end: int, reconnect_s: float) -> list[int]:
    def probe(at: str, _: str) -> None:
        if at == "before ack":
            job.broker.blind_answers = 10**9

    drain = Drain(
        OPTIONS, job.ledger, probe=probe, connect=job.broker.connect, reconnect_s=reconnect_s,
        retried=False,
    )  # fmt: skip
    return [batch.num_rows for batch in drain.rows([Range("q", 0, end, "single active")])]


def test_a_queue_that_never_says_what_it_has_read_is_an_error(silent: Job) -> None:
    with pytest.raises(QueueUnavailable, match="can't say that the queue has read"):
        wait_in_vain(silent, end=4, reconnect_s=0.1)

    assert silent.ledger.shelves().of("q").in_doubt == [0]


def test_one_that_never_says_what_was_cleared_up_keeps_no_rows_back(silent: Job) -> None:
    with pytest.raises(Exception, match="after segment"):
        silent.attempt(3, point="after segment")
    silent.broker.links[-1].abandon()
    silent.broker.blind_answers = 10**9

    drain = Drain(
        OPTIONS, silent.ledger, connect=silent.broker.connect, reconnect_s=0.1, busy_s=0.1
    )
    rows = list(drain.rows([Range("q", 0, 3, "single active")]))

    assert [batch.num_rows for batch in rows] == [3]
    assert silent.ledger.shelves().of("q").in_doubt == [0]


def test_a_connection_that_breaks_again_and_again_is_made_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    monkeypatch.undo()
    monkeypatch.setattr(task_connection.time, "sleep", pauses.append)
    connection = TaskConnection(lambda: pytest.fail("not asked for"))

    for _ in range(6):
        assert connection.lost(ConnectionLost("a", "cut"))
    connection.works()
    assert connection.lost(ConnectionLost("a", "cut"))

    assert pauses == [0.02, 0.2, 0.4, 0.8, 1.6, 2.0, 0.02]
