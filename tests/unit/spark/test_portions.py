from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spark.ledger.test_writers import of_octets
from warren.spark.ledger.segment import weigh
from warren.spark.portions import Portions, slices


@given(st.lists(st.sampled_from([0, 10, 300_000, 1_500_000, 9_000_000]), max_size=25))
def test_rows_keep_their_order_and_come_in_batches_of_the_right_size(sizes: list[int]) -> None:
    portions = Portions()
    segments = [of_octets(f"q{index}", octets) for index, octets in enumerate(sizes)]

    batches = [batch for each in segments for batch in portions.add(each)]
    last = list(portions.rest())

    came = [name for batch in batches + last for name in batch.column("queue").to_pylist()]
    assert came == [each.queue for each in segments]
    small = [batch for batch in batches if weigh(batch) < 1 << 20]
    # Only in front of a large one is less handed on than could be.
    assert len(small) <= sum(octets > 1 << 20 for octets in sizes)
    assert len(last) <= 1
    assert list(portions.rest()) == []


def test_a_batch_is_cut_where_it_would_be_too_large() -> None:
    batch = pa.concat_batches([of_octets(f"q{index}", 3 << 20).batch for index in range(9)])

    pieces = list(slices(batch))

    assert [piece.num_rows for piece in pieces] == [2, 2, 2, 2, 1]
    assert pa.concat_batches(pieces).equals(batch)


def test_a_message_that_is_too_large_by_itself_is_handed_on() -> None:
    batch = of_octets("q", 20 << 20).batch

    assert [piece.num_rows for piece in slices(batch)] == [1]
