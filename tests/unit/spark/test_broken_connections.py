"""Connections that break while a queue of messages that look alike is drained: none is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.unit.spark.test_exactly_once_model import OPTIONS, Job, quick, run
from warren.errors import ConnectionLost, InternalError
from warren.spark import portions, task_connection
from warren.spark.drain import drain as drain_module
from warren.spark.drain import patience
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range

EXCLUSIVE, SINGLE_ACTIVE = "exclusive", "single active"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_RETRY_S", 0.0)
    monkeypatch.setattr(task_connection, "_PAUSE_S", 0.0)
    monkeypatch.setattr(task_connection, "_FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(portions, "_SMALL_BYTES", 0)  # each segment's rows at once


@quick
@example("abcxxdef", 9, EXCLUSIVE, False)
@example("ccababdd", 9, EXCLUSIVE, False)
@example("abcxxdef", 9, SINGLE_ACTIVE, True)
@example("abab", 4, SINGLE_ACTIVE, False)  # given out, and not read when it is cut
@example("abab", 4, SINGLE_ACTIVE, True)
@given(
    st.text("abcd", min_size=1, max_size=16),
    st.integers(1, 25),
    st.sampled_from([EXCLUSIVE, SINGLE_ACTIVE]),
    st.booleans(),
)
def test_what_looks_alike_is_neither_lost_nor_doubled_by_a_cut(
    text: str, frames: int, mode: str, quorum: bool
) -> None:
    steps = [(2, None), (len(text) - 2, ("cut", frames))]

    job, published = run(
        steps, lambda number: text[number % len(text)].encode(), mode=mode,
        quorum=quorum and mode == SINGLE_ACTIVE,
    )  # fmt: skip

    assert job.table == published


def drained(tmp_path: Path, text: str, between: Callable[[Job, Drain], Any], mode: str) -> str:
    """What comes out; after the first rows, something happens."""
    job = Job(str(tmp_path / "ledger"), mode)
    for letter in text:
        job.broker.queue.publish(letter.encode())
    drain = Drain(
        OPTIONS, job.ledger, connect=job.broker.connect, reconnect_s=60, busy_s=1.0, retried=False
    )
    rows: list[bytes] = []
    for batch in drain.rows([Range("q", 0, len(text), mode)]):
        if not rows:
            between(job, drain)
        rows += batch.column("body").to_pylist()
    assert job.broker.queue.ready == []
    return b"".join(rows).decode()


@pytest.mark.parametrize("mode", [EXCLUSIVE, SINGLE_ACTIVE])
@pytest.mark.parametrize("text", ["abcxxdef", "abcdxdef"])
def test_an_equal_neighbour_is_not_lost_when_the_broker_hangs_up(
    tmp_path: Path, text: str, mode: str
) -> None:
    def hang_up(job: Job, _: Drain) -> None:
        job.broker.links[-1].abandon()

    assert drained(tmp_path, text, hang_up, mode) == text


@pytest.mark.parametrize("text", ["abcxxdef", "ccababdd"])
def test_what_was_held_when_the_broker_went_is_not_taken_for_forgotten(
    tmp_path: Path, text: str
) -> None:
    def restart(job: Job, drain: Drain) -> None:
        drain.keep_alive()  # the next window is here
        job.broker.links[-1].abandon()
        job.broker.queue.crash(0)
        job.broker.down = True
        with pytest.raises(ConnectionLost):  # it is found out before that window is written
            job.broker.links[-1].pump(0.0)

    assert drained(tmp_path, text, restart, EXCLUSIVE) == text


@pytest.mark.parametrize("held", [True, False])
def test_what_a_broker_forgot_that_was_away_is_known(tmp_path: Path, held: bool) -> None:
    def die(job: Job, drain: Drain) -> None:
        if held:
            drain.keep_alive()
        job.broker.links[-1].abandon()
        job.broker.queue.crash(3)
        job.broker.down = True
        with pytest.raises(ConnectionLost):
            job.broker.links[-1].pump(0.0)

    assert drained(tmp_path, "abcdefgh", die, EXCLUSIVE) == "abcdefgh"


def test_a_queue_whose_turn_comes_after_a_restart_is_suspected_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain_module, "_AT_ONCE", 1)
    job = Job(str(tmp_path / "ledger"), EXCLUSIVE)
    for letter in "abc":
        job.broker.queue.publish(letter.encode())
    assert job.attempt(3) == [b"a", b"b", b"c"]
    job.position = 3
    # The model has one queue: the other one is missing, and so is the broker at first. It forgets
    # two acknowledgements meanwhile.
    job.broker.queue.crash(2)
    job.broker.queue.publish(b"d")
    job.broker.missing = {"away"}
    job.broker.down = True
    drain = Drain(OPTIONS, job.ledger, connect=job.broker.connect, retried=False)

    rows = list(drain.rows([Range("away", 0, 5), Range("q", 3, 8)]))

    assert [body for batch in rows for body in batch.column("body").to_pylist()] == [b"d"]


def test_a_broker_that_fails_inside_is_tried_again(tmp_path: Path) -> None:
    job = Job(str(tmp_path / "ledger"), SINGLE_ACTIVE, quorum=True)
    for letter in "abc":
        job.broker.queue.publish(letter.encode())
    failures = iter([InternalError("INTERNAL_ERROR")] * 2)

    def connect() -> Any:
        for failure in failures:  # a queue that has lost most of its nodes
            raise failure
        return job.broker.connect()

    drain = Drain(OPTIONS, job.ledger, connect=connect, reconnect_s=60, retried=False)
    rows = list(drain.rows([Range("q", 0, 3, SINGLE_ACTIVE)]))

    assert [body for batch in rows for body in batch.column("body").to_pylist()] == [
        b"a",
        b"b",
        b"c",
    ]
