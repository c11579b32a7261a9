from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warren.handlers.rate import TokenBucket


@given(
    rate=st.floats(0.5, 1000),
    gaps=st.lists(st.floats(0, 0.5), min_size=1, max_size=200),
)
def test_no_more_go_than_the_rate_allows(rate: float, gaps: list[float]) -> None:
    bucket = TokenBucket(rate, now_s=0.0)
    now, went = 0.0, []
    for gap in gaps:
        now += gap
        now += bucket.take(now)
        went.append(now)
    burst = max(1.0, rate / 10)
    assert len(went) <= rate * went[-1] + burst + 1e-6


def test_the_first_goes_at_once_and_the_next_waits_its_time() -> None:
    bucket = TokenBucket(10.0, now_s=5.0)
    assert bucket.take(5.0) == 0.0
    assert abs(bucket.take(5.0) - 0.1) < 1e-9


def test_a_new_rate_counts_from_now() -> None:
    bucket = TokenBucket(10.0, now_s=0.0)
    bucket.take(0.0)
    bucket.set_rate(1.0, now_s=0.0)
    assert abs(bucket.take(0.0) - 1.0) < 1e-9


def test_a_rate_of_nothing_lets_nothing_go() -> None:
    bucket = TokenBucket(1.0, now_s=0.0)
    bucket.take(0.0)
    bucket.set_rate(0.0, now_s=0.0)
    assert bucket.take(0.0) == float("inf")
