"""How a range of offsets is parted."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.client.blocking_reader import Tap
from warren.spark.drain.job import Job, Range


@given(st.integers(0, 10_000), st.integers(1, 500), st.integers(0, 1000))
def test_a_range_is_taken_in_parts_of_about_one_size(count: int, most: int, start: int) -> None:
    job = Job(Range("orders", start, start + count), start, "exclusive", part=most)
    parts = []
    while job.at < job.range.end:
        parts.append(job.wanted)
        job.at += job.wanted
    assert sum(parts) == count
    assert len(parts) == -(-count // most)  # no more of them than needed
    assert max(parts, default=0) - min(parts, default=0) <= 1
    assert job.wanted == 0


@pytest.mark.parametrize(
    ("mode", "counts", "held", "is_believed"),
    [
        ("single active", True, "single active", True),
        ("single active", False, "single active", False),  # a classic queue
        ("exclusive", True, "exclusive", False),
        ("exclusive", False, "single active", True),  # declared anew since it was planned
    ],
)
def test_counts_of_deliveries_are_believed_of_a_queue_that_counts(
    mode: str, counts: bool, held: str, is_believed: bool
) -> None:
    job = Job(Range("orders", 0, 9, mode, counts=counts), 0, held)

    assert job.counts is is_believed


@pytest.mark.parametrize("quorum", [True, False])
def test_only_a_queue_that_counts_takes_back_what_is_being_acknowledged(quorum: bool) -> None:
    job = Job(Range("orders", 0, 9, "single active", counts=quorum), 0, "single active")
    tap = Tap(cast(Any, None))
    tap.settling = True
    tap.deliver(b"warren", 1, True, b"", b"", b"flagged, while we wait for an answer")

    assert job.took_back(tap) is quorum
