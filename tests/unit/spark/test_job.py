"""How a range of offsets is parted."""

from hypothesis import given
from hypothesis import strategies as st

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
