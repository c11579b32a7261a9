from __future__ import annotations

import pytest

from warren.management.history import BASIC, GLOBAL, History, Span
from warren.management.messages import HttpError

T0 = 1_700_000_000_000


def span(age_s: int, step_s: int, now_ms: int, **options: bool) -> Span | None:
    query = {"x_age": str(age_s), "x_incr": str(step_s)}
    return Span.asked(query, "x", now_ms, **options)


def test_a_range_ends_at_a_whole_step() -> None:
    assert span(20, 5, T0 + 7_300) == Span(T0 - 15_000, T0 + 5_000, 5_000)
    assert span(20, 5, T0 + 7_300, up=True) == Span(T0 - 10_000, T0 + 10_000, 5_000)
    assert span(20, 5, T0, up=True) == Span(T0 - 20_000, T0, 5_000)


@pytest.mark.parametrize(("age", "step"), [(0, 1), (1, 0), (-1, 1), (501, 1)])
def test_a_range_without_sense_is_refused(age: int, step: int) -> None:
    with pytest.raises(HttpError, match="400"):
        span(age, step, T0)


def test_a_sample_is_the_last_look_before_its_time() -> None:
    history = History()
    for second, count in ((0, 1), (5, 1), (10, 4)):
        history.add(T0 + second * 1000, {"a": count})
    told = history.details("a", Span(T0, T0 + 12_000, 4_000))
    assert [each["sample"] for each in told["samples"]] == [4, 1, 1, 1]
    assert told["avg"] == 7 / 4
    assert told["avg_rate"] == 3 / 12


def test_before_the_first_look_nothing_is_known() -> None:
    history = History()
    history.add(T0, {"a": 1})
    assert history.details("a", Span(T0 - 20_000, T0 - 1, 5_000)) == {"samples": []}
    assert history.details("a", Span(T0 - 20_000, T0, 5_000)) == {
        "samples": [{"sample": 1, "timestamp": T0}]
    }


def test_what_does_not_change_takes_no_room() -> None:
    history = History()
    for look in range(100):
        history.add(T0 + look * 5000, {"a": 1})
    assert len(history) == 1


@pytest.mark.parametrize(("tiers", "most"), [(BASIC, 122), (GLOBAL, 122 + 51 + 43 + 33 + 12)])
def test_memory_is_bounded_however_long_it_goes_on(
    tiers: tuple[tuple[int, int], ...], most: int
) -> None:
    history = History(tiers)
    now = T0
    for look in range(30_000):  # 42 hours
        now += 5000
        history.add(now, {"a": look})
        history.thin(now)
        assert len(history) <= most


def test_the_oldest_tier_still_knows_what_was() -> None:
    history = History(GLOBAL)
    for look in range(17_280):  # a day
        history.add(T0 + look * 5000, {"a": look})
    now = T0 + 17_280 * 5000
    history.thin(now)
    told = history.details("a", Span(now - 86_000_000, now, 1_800_000))
    samples = [each["sample"] for each in told["samples"]]
    assert len(samples) == 48
    assert samples == sorted(samples, reverse=True)
    assert samples[-1] < 400
