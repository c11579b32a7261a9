"""Several queues of one task, while Spark takes its time over the rows of one of them: nobody is
taken for gone, and each message comes out once and in order. Against the model of a broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.unit.spark.model_broker import Model, Queue
from warren.spark import portions, task_connection
from warren.spark.drain import patience
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range
from warren.spark.ledger.ledger import Ledger
from warren.spark.options import SourceOptions

OPTIONS = SourceOptions.parse({"queues": "a,b,c", "prefetch": "4", "drainTimeoutMs": "200"})
NAMES = "abc"
POINTS = ["before segment", "after segment", "after ack", "before settled"]
several = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class Crash(Exception):
    """kill -9."""


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_RETRY_S", 0.0)
    monkeypatch.setattr(task_connection, "_PAUSE_S", 0.0)
    monkeypatch.setattr(task_connection, "_FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(portions, "_SMALL_BYTES", 0)  # each segment's rows at once


class Task:
    """One task with a range of each of its queues, and a Spark that is slow over rows."""

    def __init__(self, folder: Path, mode: str, *, quorum: bool, beats: int) -> None:
        self.broker = Model(quorum=quorum)
        self.queues: dict[str, Queue] = {name: self.broker.add(name) for name in NAMES}
        self.ledger = Ledger.at(str(folder))
        self.ledger.create()
        self._mode, self._beats = mode, beats
        #: Rows, and how many of them the broker had handed out before.
        self.table: dict[str, list[bytes]] = {name: [] for name in NAMES}
        self.redelivered = 0

    def publish(self, bodies: Sequence[bytes]) -> None:
        for queue in self.queues.values():
            for body in bodies:
                queue.publish(body)

    def run(self, end: int, *, retried: bool = False, crash: tuple[str, int] | None = None) -> None:
        """Read each queue up to an offset; ``crash`` at the nth time that it is somewhere."""
        left = [crash[1] if crash else 0]

        def probe(at: str, _: str) -> None:
            if crash and at == crash[0]:
                left[0] -= 1
                if not left[0]:
                    raise Crash(at)

        drain = Drain(
            OPTIONS, self.ledger, probe=probe, connect=self.broker.connect, retried=retried,
            busy_s=1.0,
        )  # fmt: skip
        rows: dict[str, list[bytes]] = {name: [] for name in NAMES}
        redelivered = 0
        for batch in drain.rows([Range(name, 0, end, self._mode) for name in NAMES]):
            for name, body in zip(*_columns(batch, "queue", "body"), strict=True):
                rows[name].append(body)
            redelivered += sum(batch.column("redelivered").to_pylist())
            for _ in range(self._beats):
                drain.keep_alive()
        self.table, self.redelivered = rows, redelivered

    def until_done(self, end: int, crash: tuple[str, int] | None) -> None:
        """An attempt that crashes, and one that is done."""
        try:
            self.run(end, crash=crash)
        except Crash:
            for link in self.broker.links:
                link.abandon()
            for queue in self.queues.values():
                queue.hear_all()
            self.run(end, retried=True)

    @property
    def in_doubt(self) -> list[int]:
        shelves = self.ledger.shelves()
        return [start for name in NAMES for start in shelves.of(name).in_doubt]


def _columns(batch: Any, *names: str) -> Iterator[list[Any]]:
    return (batch.column(name).to_pylist() for name in names)


@pytest.fixture(params=["exclusive", "single active", "quorum"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def a_task(folder: str, kind: str, beats: int) -> Task:
    mode = "exclusive" if kind == "exclusive" else "single active"
    return Task(Path(folder) / "ledger", mode, quorum=kind == "quorum", beats=beats)


@several
@example("exclusive", 24, 1, 1)
@given(
    st.sampled_from(["exclusive", "single active", "quorum"]),
    st.integers(1, 24),
    st.integers(0, 5),
    st.one_of(st.none(), st.integers(1, 4)),
)
def test_where_nothing_fails_nothing_is_given_back_or_lost(
    kind: str, count: int, beats: int, hears: int | None
) -> None:
    """Rows of one queue are handed out while the answer about another's acknowledgement comes."""
    bodies = [b"abcd"[number % 4 : number % 4 + 1] for number in range(count)]
    with TemporaryDirectory() as folder:
        task = a_task(folder, kind, beats)
        task.broker.hears = hears
        task.publish(bodies)

        task.run(count)

        assert task.table == dict.fromkeys(NAMES, bodies)
        assert task.redelivered == 0
        assert task.in_doubt == []
        assert [queue.ready for queue in task.queues.values()] == [[], [], []]


@several
@given(
    st.sampled_from(["exclusive", "single active", "quorum"]),
    st.integers(1, 20),
    st.integers(0, 5),
    st.one_of(st.none(), st.integers(1, 4)),
    st.tuples(st.sampled_from(POINTS), st.integers(1, 9)),
)
def test_a_crash_between_the_queues_of_a_task_loses_and_doubles_nothing(
    kind: str, count: int, beats: int, hears: int | None, crash: tuple[str, int]
) -> None:
    bodies = [b"%d" % number for number in range(count)]
    with TemporaryDirectory() as folder:
        task = a_task(folder, kind, beats)
        task.broker.hears = hears
        task.publish([*bodies, b"behind"])  # what is in doubt is known when something comes behind

        task.until_done(count, crash)

        assert task.table == dict.fromkeys(NAMES, bodies)
        ready = [[message.body for message in queue.ready] for queue in task.queues.values()]
        assert ready == [[b"behind"]] * 3
