from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spark.ledger.test_ledger import segment
from warren.client.blocking_reader import Deliveries
from warren.errors import LedgerGone
from warren.spark.deliveries import to_batch
from warren.spark.ledger.files import LocalFiles
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.segment import Segment
from warren.spark.ledger.writers import SegmentWriters, files_of


def of_octets(queue: str, octets: int) -> Segment:
    took = Deliveries()
    took.bodies.append(b"x" * octets)
    took.routes.append(b"\x00\x01q")
    took.properties.append(b"\0\0")
    return Segment(queue, 0, 1, to_batch(took, queue, 0, 0))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger.at(str(tmp_path / "ledger"))
    ledger.create()
    return ledger


@given(st.lists(st.sampled_from([0, 100, 200_000, 400_000, 600_000, 5_000_000]), max_size=40))
def test_each_segment_is_in_one_file_and_no_shared_file_is_large(sizes: list[int]) -> None:
    segments = [of_octets(f"q{index}", octets) for index, octets in enumerate(sizes)]

    files = files_of(segments)

    assert sorted(each.queue for held in files for each in held) == sorted(
        each.queue for each in segments
    )
    for held in files:
        assert held
        assert len(held) == 1 or sum(each.octets for each in held) <= 4 << 20


def test_small_segments_of_many_queues_take_one_file(ledger: Ledger, tmp_path: Path) -> None:
    segments = [segment(f"q{index}") for index in range(50)]

    assert SegmentWriters(ledger).write(segments) == [True] * 50

    names = list((tmp_path / "ledger").glob("*.arrow"))
    assert len(names) == 50
    assert len({path.stat().st_ino for path in names}) == 1


def test_what_is_written_where_the_ledger_is_no_more_is_not_taken_for_kept(
    ledger: Ledger, tmp_path: Path
) -> None:
    folder = tmp_path / "ledger"
    writers = SegmentWriters(ledger)
    (folder / "ledger.json").rename(tmp_path / "kept.json")
    with pytest.raises(LedgerGone, match="it is gone"):  # as where something was mounted
        writers.write([segment("a")])

    Ledger.at(str(tmp_path / "other")).create()
    (tmp_path / "other" / "ledger.json").rename(folder / "ledger.json")
    with pytest.raises(LedgerGone, match="its id is"):
        writers.write([segment("b"), segment("c")])

    (tmp_path / "kept.json").replace(folder / "ledger.json")
    assert writers.write([segment("d")]) == [True]


@pytest.mark.parametrize("shares", [True, False])
def test_all_are_written_and_each_is_told_whether_it_was_first(
    ledger: Ledger, shares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalFiles, "shares", shares)
    segments = [
        segment(f"q{index}") if index % 3 else of_octets(f"q{index}", 600_000)
        for index in range(30)
    ]
    late = {0, 1, 17}
    for index in late:
        ledger.write(segment(f"q{index}", bodies=1))
    writers = SegmentWriters(ledger)

    made = writers.write(segments)
    writers.mark([(each.queue, each.start, False) for each in segments])
    writers.close()

    assert made == [index not in late for index in range(30)]
    shelves = ledger.shelves()
    for index, each in enumerate(segments):
        found = ledger.read(each.queue, 0)
        assert (found == each) is (index not in late)
        assert shelves.of(each.queue).in_doubt == []
