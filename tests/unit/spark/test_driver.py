from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from warren.client.blocking_reader import Deliveries
from warren.errors import LedgerUnusable, StreamReplaced
from warren.spark.deliveries import to_batch
from warren.spark.driver import Driver, QueuePartition
from warren.spark.ledger.files import LocalFiles
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.segment import Segment
from warren.spark.options import SourceOptions
from warren.spark.queue_info import QueueInfo

LINK: Any = SimpleNamespace(is_open=True, abandon=lambda: None)


class Queues:
    """A catalog of queues, each of a kind and with so many messages ready."""

    def __init__(self, **queues: tuple[str, int]) -> None:
        self._queues = queues

    def queues(self, link: Any) -> dict[str, QueueInfo]:
        return {name: QueueInfo(name, kind) for name, (kind, _) in self._queues.items()}

    def kinds(self, link: Any, names: list[str]) -> dict[str, QueueInfo]:
        return {name: QueueInfo(name, self._queues.get(name, ("", 0))[0]) for name in names}

    def ready(self, link: Any) -> dict[str, int]:
        return {name: count for name, (kind, count) in self._queues.items() if kind != "stream"}

    def have_changed(self, link: Any, names: list[str]) -> bool:
        return False


def driver_of(monkeypatch: pytest.MonkeyPatch, catalog: Any, **given: str) -> Driver:
    """A driver that has these queues before it, and no broker."""
    monkeypatch.setattr("warren.spark.driver.Catalog", lambda _: catalog)
    monkeypatch.setattr("warren.spark.driver.BlockingConnection.open", lambda *_, **__: LINK)
    return Driver(SourceOptions.parse({"queues": "q", "drainTimeoutMs": "1", **given}))


def write_down(ledger: Ledger, *starts: int) -> None:
    for start in starts:
        ledger.write(Segment("q", start, start + 5, to_batch(Deliveries(), "q", start, 0)))
        ledger.settle("q", start)


def test_with_no_retention_every_commit_forgets_what_is_behind_it(tmp_path: Path) -> None:
    ledger = Ledger.at(str(tmp_path))
    identity = ledger.create()
    given = {"queues": "q", "ledger": str(tmp_path), "ledgerRetention": "0s"}
    driver = Driver(SourceOptions.parse(given))
    write_down(ledger, 0, 5, 10)

    for end, left in ((5, [5, 10]), (10, [10])):
        driver.commit({"ledger": identity, "queues": {"q": end}})
        assert ledger.shelves().of("q").starts == left


def test_segments_are_kept_as_long_as_retention_says(tmp_path: Path) -> None:
    ledger = Ledger.at(str(tmp_path))
    identity = ledger.create()
    given = {"queues": "q", "ledger": str(tmp_path), "ledgerRetention": "1h"}
    write_down(ledger, 0, 5)

    Driver(SourceOptions.parse(given)).commit({"ledger": identity, "queues": {"q": 10}})

    assert ledger.shelves().of("q").starts == [0, 5]


def test_a_segment_that_can_not_be_deleted_stays_until_the_next_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger.at(str(tmp_path))
    end = {"ledger": ledger.create(), "queues": {"q": 10}}
    given = {"queues": "q", "ledger": str(tmp_path), "ledgerRetention": "1h"}
    driver = Driver(SourceOptions.parse(given))
    write_down(ledger, 0, 5, 10)
    os.utime(tmp_path / "q@00000000000000000000.arrow", (1, 1))

    with monkeypatch.context() as patch:
        patch.setattr("warren.spark.ledger.files.LocalFiles.delete", stale_handle)
        driver.commit(end)
    assert ledger.read("q", 0) is not None
    assert "stay for now: Stale file handle" in caplog.text

    driver.commit(end)
    assert ledger.read("q", 0) is None
    assert ledger.shelves().of("q").starts == [5, 10]


def stale_handle(files: LocalFiles, name: str) -> None:
    raise LedgerUnusable(files.place, "Stale file handle")


def test_a_stream_with_the_name_of_a_queue_that_was_ends_where_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warren.spark.driver.stream_start", lambda link, queue, wanted: 0)
    monkeypatch.setattr("warren.spark.driver.stream_end", lambda link, queue: 10)
    ledger = Ledger.at(str(tmp_path))
    ledger.create()
    write_down(ledger, 5_000)
    driver = driver_of(monkeypatch, Queues(q=("stream", 0), r=("classic", 0)), ledger=str(tmp_path))

    planned = driver.latest(driver.initial(), None, None)

    assert planned["queues"]["q"] == 10


@pytest.mark.parametrize(("left_at", "end"), [(10, 10), (5_000, 5_005)])
def test_what_the_ledger_has_of_a_queue_that_is_gone_is_read_where_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left_at: int, end: int
) -> None:
    """It may have been a stream, with the name of a queue that was."""
    ledger = Ledger.at(str(tmp_path))
    identity = ledger.create()
    write_down(ledger, 5_000)
    driver = driver_of(monkeypatch, Queues(r=("classic", 0)), ledger=str(tmp_path))

    planned = driver.latest({"ledger": identity, "queues": {"q": left_at}}, None, None)

    assert planned["queues"]["q"] == end


def test_a_queue_that_comes_just_before_it_is_counted_gets_a_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = driver_of(monkeypatch, Queues(q=("", 3)), ledger=str(tmp_path))

    planned = driver.latest({"ledger": "", "queues": {}}, None, None)

    assert planned["queues"] == {"q": 3}
    assert planned["ledger"] == Ledger.at(str(tmp_path)).create()


def test_a_stream_that_is_gone_calls_for_no_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.spark.driver.stream_start", lambda link, queue, wanted: 0)
    monkeypatch.setattr("warren.spark.driver.stream_end", lambda link, queue: 10)
    driver = driver_of(monkeypatch, Queues(s=("stream", 0)), onMissingQueue="wait")
    end = driver.latest(driver.initial(), None, None)
    monkeypatch.setattr(driver, "_catalog", Queues(s=("", 0)))

    assert driver.latest(end, None, None) == end


@pytest.mark.parametrize(("end", "ready"), [(0, 0), (100, 0), (103, 3)])
def test_a_stream_that_has_nothing_or_more_is_read_on(
    monkeypatch: pytest.MonkeyPatch, end: int, ready: int
) -> None:
    monkeypatch.setattr("warren.spark.driver.stream_end", lambda link, queue: end)
    driver = driver_of(monkeypatch, Queues(s=("stream", 0)))

    planned = driver.latest({"ledger": "", "queues": {"s": 100}}, None, None)

    assert planned["queues"] == {"s": 100 + ready}


def test_nothing_new_is_told_in_the_words_of_the_offset_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else Spark makes a batch of no rows of it."""
    ends = iter([40, 40, 41])
    monkeypatch.setattr("warren.spark.driver.stream_end", lambda link, queue: next(ends))
    monkeypatch.setattr("warren.spark.driver.stream_start", lambda link, queue, wanted: 3)
    driver = driver_of(monkeypatch, Queues(s=("stream", 0)))
    first = driver.latest(driver.initial(), None, None)

    assert driver.latest(first, None, None) == first
    more = driver.latest(first, None, None)
    assert (more["queues"], more.get("begin")) == ({"s": 41}, None)


def test_a_stream_that_ends_before_what_was_read_is_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("warren.spark.driver.stream_end", lambda link, queue: 40)
    driver = driver_of(monkeypatch, Queues(s=("stream", 0)))

    with pytest.raises(StreamReplaced, match=r"'s' .* up to offset 100, and ends at 40: .* new"):
        driver.latest({"ledger": "", "queues": {"s": 100}}, None, None)


def test_a_copy_of_a_stream_that_lags_behind_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = iter([97, 99, 102])
    monkeypatch.setattr("warren.spark.driver.stream_end", lambda link, queue: next(ends))
    monkeypatch.setattr("warren.spark.driver._RETRY_S", 0.0)
    driver = driver_of(monkeypatch, Queues(s=("stream", 0)), drainTimeoutMs="60000")

    planned = driver.latest({"ledger": "", "queues": {"s": 100}}, None, None)

    assert planned["queues"] == {"s": 102}


def test_a_stream_may_begin_ahead_of_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warren.spark.driver.stream_end", lambda link, queue: 40)
    driver = driver_of(monkeypatch, Queues(s=("stream", 0)), startingOffset="100")

    planned = driver.latest({"ledger": "", "queues": {"s": 100}}, None, None)

    assert planned["queues"] == {"s": 100}


def test_a_stream_that_came_later_begins_where_it_did_when_its_batch_is_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept_from = iter([0, 30])
    monkeypatch.setattr(
        "warren.spark.driver.stream_start", lambda link, queue, wanted: next(kept_from)
    )
    monkeypatch.setattr("warren.spark.driver.stream_end", lambda link, queue: 40)
    start = {"ledger": "", "queues": {"s": 40}}
    both = Queues(s=("stream", 0), t=("stream", 0))
    end = driver_of(monkeypatch, both).latest(start, None, None)

    tasks = driver_of(monkeypatch, both).partitions(start, end)  # retention has dropped the first

    ranges = [each for task in tasks if isinstance(task, QueuePartition) for each in task.ranges]
    assert [(each.queue, each.start, each.end) for each in ranges] == [("t", 0, 40)]


def weigh_down(ledger: Ledger, queue: str, start: int, rows: int, size: int) -> None:
    """Write down so many messages of a size."""
    took = Deliveries()
    took.bodies = [bytes(size)] * rows
    took.routes = [b"\0\1q"] * rows
    took.properties = [b"\0\0"] * rows
    ledger.write(Segment(queue, start, start + rows, to_batch(took, queue, start, 0)))
    ledger.settle(queue, start)


def test_octets_are_shared_out_by_what_each_queue_weighs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.at(str(tmp_path))
    start = {"ledger": ledger.create(), "queues": {"light": 20_000, "heavy": 1}}
    weigh_down(ledger, "light", 0, 20_000, 10)
    weigh_down(ledger, "heavy", 0, 1, 10 << 20)
    queues = Queues(light=("classic", 1_000_000), heavy=("classic", 1_000_000))
    driver = driver_of(monkeypatch, queues, ledger=str(tmp_path))

    planned = driver.latest(start, None, 100 << 20)["queues"]

    light, heavy = planned["light"] - 20_000, planned["heavy"] - 1
    assert light * 10 + heavy * (10 << 20) <= 110 << 20
    assert heavy >= 5
    assert light == 1_000_000  # that is 10 MB: what it leaves is for the other


def test_a_segment_is_weighed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.at(str(tmp_path))
    start = {"ledger": ledger.create(), "queues": {"q": 10}}
    weigh_down(ledger, "q", 0, 10, 100)
    driver = driver_of(monkeypatch, Queues(q=("classic", 50)), ledger=str(tmp_path))
    read: list[int] = []
    of_disk = Ledger.read

    def counted(self: Ledger, queue: str, at: int) -> Segment | None:
        read.append(at)
        return of_disk(self, queue, at)

    monkeypatch.setattr(Ledger, "read", counted)

    ends = [driver.latest(start, None, 2_000)["queues"]["q"] for _ in range(3)]
    assert ends == [29, 29, 29]  # a body takes four octets more in the ledger
    assert read == [0]

    weigh_down(ledger, "q", 10, 10, 200)
    driver.latest(start, None, 2_000)
    assert read[-1] == 10
