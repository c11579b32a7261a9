"""Segments are handed out in one order, in whatever order they are there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spark.ledger.test_ledger import segment
from warren.errors import LedgerPruned
from warren.spark.drain.job import Range
from warren.spark.drain.turns import Turns
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.segment import Segment

ROWS = 3


def segments(queue: str, count: int) -> list[Segment]:
    return [segment(queue, start, ROWS) for start in range(0, count * ROWS, ROWS)]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """Up to six segments of four queues."""
    ledger = Ledger.at(str(tmp_path_factory.mktemp("turns") / "ledger"))
    ledger.create()
    for queue in "abcd":
        for each in segments(queue, 6):
            ledger.write(each)
    return ledger


@given(
    counts=st.lists(st.integers(0, 6), min_size=1, max_size=4),
    room=st.sampled_from([0, 2000, 1 << 30]),
    random=st.randoms(use_true_random=False),
)
def test_the_order_is_the_same_however_segments_come(
    ledger: Ledger, counts: list[int], room: int, random: st.DataObject
) -> None:
    left = {queue: segments(queue, count) for queue, count in zip("abcd", counts, strict=False)}
    ranges = [Range(queue, 0, count * ROWS) for queue, count in zip(left, counts, strict=True)]
    in_turn = [
        (queue, turn * ROWS) for turn in range(6) for queue in left if turn < len(left[queue])
    ]
    coming = []
    while queues := [queue for queue, those in left.items() if those]:
        coming.append(left[random.choice(queues)].pop(0))  # type: ignore[attr-defined]

    handed_out = list(Turns(ranges, ledger, room).order(coming))

    assert [(each.queue, each.start) for each in handed_out] == in_turn
    assert all(each.batch.equals(segment(each.queue, each.start).batch) for each in handed_out)


def test_who_has_the_turn_is_handed_out_at_once_though_there_is_no_room(ledger: Ledger) -> None:
    turns = Turns([Range("a", 0, 6), Range("b", 0, 6)], ledger, 0)

    handed_out = turns.order(iter(segments("a", 1)))

    assert next(handed_out).queue == "a"


def test_what_waits_without_room_and_is_pruned_meanwhile_is_named(tmp_path: Path) -> None:
    empty = Ledger.at(str(tmp_path / "ledger"))
    coming = [*segments("b", 1), *segments("a", 1)]

    with pytest.raises(LedgerPruned, match="'b'"):
        list(Turns([Range("a", 0, 3), Range("b", 0, 3)], empty, 0).order(coming))


def test_a_range_that_does_not_come_to_its_end_is_not_passed_over_in_silence(
    ledger: Ledger,
) -> None:
    with pytest.raises(AssertionError, match="no more segments came of b"):
        list(Turns([Range("a", 0, 3), Range("b", 0, 6)], ledger).order(segments("a", 1)))
