"""Random crashes of tasks, connections, disks and the broker, against a model of a broker: every
message comes out once, in order. Hypothesis prints what led to a failure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.unit.spark.model_broker import Model
from warren.errors import LedgerUnusable
from warren.spark import portions, task_connection
from warren.spark.drain import drain as drain_module
from warren.spark.drain import patience
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range
from warren.spark.ledger.files import LocalFiles
from warren.spark.ledger.ledger import Ledger
from warren.spark.options import SourceOptions

OPTIONS = SourceOptions.parse({"queues": "q", "prefetch": "4", "drainTimeoutMs": "200"})
#: While Spark has the rows: nothing runs then.
HANDED_OUT = "handed out"
POINTS = [
    "before segment", "after segment", "before ack", "after ack", "before settled", HANDED_OUT,
]  # fmt: skip


class Crash(Exception):
    """kill -9."""


class Disk(LocalFiles):
    """Refuses writes when told, before or after they are done."""

    fault: str | None = None

    def put_new(self, name: str, data: bytes | bytearray) -> bool:
        with self._faulty():
            return super().put_new(name, data)

    def put_empty(self, names: Sequence[str]) -> None:
        with self._faulty():
            super().put_empty(names)

    @contextmanager
    def _faulty(self) -> Iterator[None]:
        fault, self.fault = self.fault, None
        if fault == "full":
            raise LedgerUnusable(self.place, "No space left on device")
        yield
        if fault == "dies after write":
            raise Crash(fault)


class Job:
    """What Spark does: it retries a batch until it is through, and may read it again."""

    def __init__(self, folder: str, mode: str, *, quorum: bool = False) -> None:
        self.mode = mode
        self.broker = Model(quorum=quorum)
        self.disk = Disk(folder)
        self.ledger = Ledger(self.disk)
        self.ledger.create()
        self.position = 0
        self.table: list[bytes] = []
        self.suspicious = True
        #: Messages of a batch at most.
        self.limit = 100
        #: Spark takes its time over rows, so the connection is kept alive; each second attempt.
        self.slow = False

    def attempt(
        self, end: int, *, point: str | None = None, crashes: int = 1, retried: bool = True
    ) -> list[bytes]:
        left = [crashes]

        def probe(at: str, _: str) -> None:
            if at == point:
                left[0] -= 1
                if left[0] == 0:
                    raise Crash(at)

        drain = Drain(
            OPTIONS, self.ledger, probe=probe, connect=self.broker.connect, reconnect_s=60,
            busy_s=1.0, retried=retried,
        )  # fmt: skip
        rows: list[bytes] = []
        self.slow = not self.slow
        counts = self.broker.queue.quorum  # as the broker's word on its kind is
        wanted = Range("q", self.position, end, self.mode, self.suspicious, counts)
        for batch in drain.rows([wanted]):
            rows += batch.column("body").to_pylist()
            if self.slow:
                drain.keep_alive()
            probe(HANDED_OUT, "q")
        return rows

    def batch(self, fault: Any) -> None:
        """One micro-batch, attempted with a fault first, or several, until it is through."""
        ready = len(self.broker.queue.ready)
        if not ready:
            return
        end = self.position + min(ready, self.limit)
        faults = fault[1] if fault and fault[0] == "several" else [fault]
        rows = None
        for number, each in enumerate([*faults, None]):
            if rows is None:
                rows = self._attempt_with(each, end, retried=number > 0)
        assert rows is not None
        if fault and fault[0] == "reread":
            assert self.attempt(end) == rows
        self.table += rows
        self.position = end
        self.suspicious = "dies at work" in str(fault)  # the driver has lost its connection, too

    def read_all(self) -> None:
        """Batches, and the queue hears of everything, until there is nothing."""
        for _ in range(3 + 2 * self.broker.queue.published):
            self.broker.queue.hear_all()
            self.batch(None)

    def _attempt_with(self, fault: Any, end: int, *, retried: bool) -> list[bytes] | None:
        try:
            self._apply(fault)
            kind, detail = fault or (None, 1)
            point = kind if kind in POINTS else None
            return self.attempt(end, point=point, crashes=detail or 1, retried=retried)
        except (Crash, LedgerUnusable):
            for link in self.broker.links:
                link.abandon()
            return None
        finally:
            self.broker.frames_to_cut = self.broker.frames_to_return = None
            self.broker.forget_at_cut = 0
            self.disk.fault = None

    def _apply(self, fault: Any) -> None:
        kind, detail = fault or (None, 0)
        if kind in ("cut", "dies at work"):
            self.broker.frames_to_cut = detail
            self.broker.forget_at_cut = 6 if kind == "dies at work" else 0
        elif kind == "returned":
            self.broker.frames_to_return = detail
        elif kind in ("full", "dies after write"):
            self.disk.fault = kind
        elif kind == "broker dies":
            self.broker.kill(min(detail, len(self.broker.queue.forgettable)))
            self.suspicious = True
        elif kind == "prune" and not any(each.redelivered for each in self.broker.queue.ready):
            self.ledger.prune({"q": self.position}, older_than=float("inf"))
            self.broker.queue.forgettable.clear()
            self.broker.queue.pasts.clear()  # retention is longer than a broker's memory, and
            # than what it had forgotten waits to be read again


def task_faults() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.none(),
        st.tuples(st.sampled_from(POINTS), st.integers(1, 3)),
        st.tuples(st.just("cut"), st.integers(1, 20)),
        st.tuples(st.sampled_from(["full", "dies after write", "reread", "prune"]), st.just(1)),
    )


def faults() -> st.SearchStrategy[Any]:
    return st.one_of(
        task_faults(),
        st.tuples(st.just("broker dies"), st.integers(0, 6)),
        st.tuples(st.just("dies at work"), st.integers(1, 20)),
    )


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_RETRY_S", 0.0)
    monkeypatch.setattr(task_connection, "_PAUSE_S", 0.0)
    monkeypatch.setattr(task_connection, "_FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(portions, "_SMALL_BYTES", 0)  # each segment's rows at once


quick = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
Steps = list[tuple[int, Any]]


def run(
    steps: Steps, body: Any, *, ids: bool = False, mode: str = "exclusive",
    any_time: bool = False, quorum: bool = False, late: int = 0, limit: int = 100,
    one_more: bool = False,
) -> tuple[Job, list[bytes]]:  # fmt: skip
    with TemporaryDirectory() as folder:
        job = Job(str(Path(folder) / "ledger"), mode, quorum=quorum)
        job.broker.late_frames, job.limit = late, limit
        job.broker.returns_any_time = any_time
        published: list[bytes] = []

        def publish() -> None:
            published.append(body(len(published)))
            job.broker.queue.publish(published[-1], str(len(published)) if ids else None)

        for count, fault in steps:
            for _ in range(count):
                publish()
            job.batch(fault)
        job.read_all()
        if one_more or mode == "single active":  # only one that comes says that none comes back
            publish()
            job.read_all()
        assert job.ledger.shelves().of("q").in_doubt == []
        return job, published


@quick
@given(st.lists(st.tuples(st.integers(0, 9), faults()), min_size=1, max_size=6))
def test_each_message_comes_out_once_and_in_order(steps: Steps) -> None:
    # With one single message to go by, one that a killed broker gives out again is kept.
    job, published = run([(2, None), *steps], lambda number: b"%d" % number)

    assert job.table == published
    assert job.broker.queue.ready == []


@quick
@given(st.lists(st.tuples(st.integers(0, 12), task_faults()), min_size=1, max_size=5))
def test_a_window_of_more_octets_than_a_segment_takes_is_read_in_parts(
    monkeypatch: pytest.MonkeyPatch, steps: Steps
) -> None:
    monkeypatch.setattr(drain_module, "_MOST_BYTES", 25)

    job, published = run(
        [(4, None), *steps], lambda number: b"%d" % number * (1 + number % 20), one_more=True
    )

    assert job.table == published
    assert job.broker.queue.ready == []


@quick
@example(8, 0, (HANDED_OUT, 1))  # the next window is on its way, and as long as the one before
@given(st.integers(1, 9), st.integers(0, 9), task_faults())
def test_equal_messages_are_neither_lost_nor_doubled_by_one_crash(
    before: int, after: int, fault: Any
) -> None:
    job, published = run([(before, fault), (after, None)], lambda number: b"tick")

    assert job.table == published


def several() -> st.SearchStrategy[Any]:
    """Attempts at one batch that fail one after the other."""
    return st.tuples(st.just("several"), st.lists(task_faults(), min_size=2, max_size=3))


@quick
@example([(3, None), (8, ("before segment", 1))], True, 100)
@example([(1, ("broker dies", 2))], True, 100)  # more comes back than the batch was planned with
@example([(5, ("cut", 14)), (1, ("broker dies", 2))], False, 100)  # settled, and some in doubt
@given(
    st.lists(st.tuples(st.integers(0, 12), st.one_of(faults(), several())), min_size=1, max_size=6),
    st.booleans(),
    st.integers(3, 12),
)
def test_a_queue_with_a_single_active_consumer_is_read_once_and_in_order(
    steps: Steps, quorum: bool, limit: int
) -> None:
    job, published = run(
        [(2, None), *steps], lambda number: b"%d" % number, mode="single active", quorum=quorum,
        limit=limit,
    )  # fmt: skip

    assert job.table == published
    assert job.broker.queue.ready == []


@quick
@given(
    st.lists(
        st.tuples(st.integers(0, 12), st.one_of(task_faults(), several())), min_size=1, max_size=5
    ),
    st.integers(3, 12),
)
def test_a_heavy_window_of_a_quorum_queue_is_put_in_order_before_it_is_cut(
    monkeypatch: pytest.MonkeyPatch, steps: Steps, limit: int
) -> None:
    monkeypatch.setattr(drain_module, "_MOST_BYTES", 25)

    job, published = run(
        [(4, None), *steps], lambda number: b"%d" % number * (1 + number % 5),
        mode="single active", quorum=True, limit=limit,
    )  # fmt: skip

    assert job.table == published
    assert job.broker.queue.ready == []


@quick
@example([(6, ("before segment", 1))], 6, 3)  # it comes while a task that saw nothing leaves
@example([(5, ("cut", 1)), (1, ("cut", 1))], 5, 3)  # "nothing is there", said to one who waits
@example([(1, ("several", [("after segment", 1), None])), (2, ("cut", 1))], 6, 3)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.one_of(faults(), several())), min_size=1, max_size=6),
    st.integers(0, 15),
    st.integers(3, 12),
)
def test_a_quorum_queue_that_hears_late_of_a_closed_channel_is_read_once_and_in_order(
    steps: Steps, late: int, limit: int
) -> None:
    # With ids: a cancel that it heard of, and not of the acknowledgement behind it, lets others in.
    job, published = run(
        [(2, None), *steps], lambda number: b"%d" % number, mode="single active", quorum=True,
        late=late, limit=limit, ids=True,
    )  # fmt: skip

    assert job.table == published
    assert job.broker.queue.ready == []


def returns() -> st.SearchStrategy[Any]:
    return st.tuples(st.just("returned"), st.integers(1, 25))


@quick
@example([(1, ("returned", 4))])  # while it is taken: twice in one window
@example([(4, ("returned", 7))])  # before the acknowledgement is read, which is void then
@example([(12, ("returned", 12))])  # in the second window of a drain
@given(
    st.lists(st.tuples(st.integers(0, 12), st.one_of(returns(), faults())), min_size=1, max_size=6)
)
def test_what_comes_again_on_a_connection_that_lives_is_known_by_its_id(steps: Steps) -> None:
    job, published = run(
        [(2, None), *steps], lambda number: b"%d" % number, ids=True, any_time=True,
        mode="single active", quorum=True,
    )  # fmt: skip

    assert job.table == published
    assert job.broker.queue.ready == []


@quick
@example(3, ("returned", 4), 0)
@example(9, ("returned", 8), 2)
@given(st.integers(3, 12), returns(), st.integers(0, 5))
def test_what_comes_again_on_a_connection_that_lives_is_known_without_ids(
    count: int, fault: Any, after: int
) -> None:
    job, published = run(
        [(6, None), (count, fault), (after, None)], lambda number: b"%d" % number,
        mode="single active", quorum=True,
    )  # fmt: skip

    assert job.table == published


@quick
@example("after segment", 3)  # just before its acknowledgement is read
@given(st.sampled_from(POINTS[1:5]), st.integers(1, 25))
def test_what_comes_again_while_a_doubt_is_cleared_up_is_known_without_ids(
    point: str, frame: int
) -> None:
    steps = [(6, None), (4, ("several", [(point, 1), ("returned", frame)]))]

    job, published = run(steps, lambda number: b"%d" % number, mode="single active", quorum=True)

    assert job.table == published


def test_what_comes_again_in_the_next_window_is_known_without_ids() -> None:
    # The sixth frame acknowledges the first of three windows, after its consumer was cancelled.
    steps = [(6, None), (12, ("returned", 6))]

    job, published = run(
        steps, lambda number: b"%d" % number, mode="single active", any_time=True, quorum=True
    )

    assert job.table == published
    assert job.broker.queue.ready == []


def test_a_queue_whose_leader_is_out_of_sight_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    job = Job(str(tmp_path / "ledger"), "exclusive")
    job.suspicious = False
    for number in range(3):
        job.broker.queue.publish(b"%d" % number)
    with pytest.raises(Crash):
        job.attempt(3, point="before ack")
    job.broker.links[-1].abandon()
    job.broker.blind_answers = 5

    assert job.attempt(3) == [b"0", b"1", b"2"]
    assert job.broker.queue.ready == [], "the segment in doubt was cleared up"


@pytest.mark.parametrize("heartbeat", ["0", "10"])
@pytest.mark.parametrize("behind_s", [0, 3600])
def test_a_segment_in_doubt_is_not_settled_by_the_clock_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heartbeat: str, behind_s: int
) -> None:
    options = SourceOptions.parse(
        {"queues": "q", "prefetch": "4", "drainTimeoutMs": "200", "heartbeat": heartbeat}
    )
    monkeypatch.setitem(globals(), "OPTIONS", options)
    job = Job(str(tmp_path / "ledger"), "single active", quorum=True)
    job.suspicious = False
    for number in range(4):
        job.broker.queue.publish(b"%d" % number)
    job.broker.late_frames = 10**9  # the broker does not hear that the machine is gone
    with monkeypatch.context() as other:  # whose clock is behind ours
        clock = SimpleNamespace(monotonic=time.monotonic, time=lambda: time.time() - behind_s)
        other.setattr(drain_module, "time", clock)
        with pytest.raises(Crash):
            job.attempt(4, point="after segment", retried=False)
    job.broker.links[-1].abandon()
    job.broker.late_frames = 0

    assert job.attempt(4) == [b"0", b"1", b"2", b"3"]
    job.broker.queue.hear_all()
    job.position = 4
    job.broker.queue.publish(b"4")

    assert job.attempt(12) == [b"4"]
    assert job.ledger.shelves().of("q").in_doubt == []
