from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import warren
from warren.client.backoff import COMING_BACK, Backoff
from warren.errors import ConfigError


@given(failures=st.integers(1, 10_000), chance=st.floats(0, 1))
def test_a_wait_never_exceeds_the_most_and_never_falls_below_its_jitter(
    failures: int, chance: float
) -> None:
    backoff = Backoff(first_s=0.5, factor=3.0, most_s=20.0, jitter=0.25)
    assert 0.5 * 0.75 <= backoff.delay_s(failures, chance) <= 20.0


def test_waits_grow_by_the_factor_up_to_the_most() -> None:
    backoff = Backoff(first_s=1.0, factor=2.0, most_s=5.0)
    assert [backoff.delay_s(n, chance=0.0) for n in (1, 2, 3, 4)] == [1.0, 2.0, 4.0, 5.0]


def test_two_clients_do_not_wait_alike() -> None:
    assert len({Backoff().delay_s(5) for _ in range(20)}) > 1


def test_a_lost_connection_is_tried_again_after_half_of_the_time_at_least() -> None:
    waits = [(COMING_BACK.delay_s(n, 1.0), COMING_BACK.delay_s(n, 0.0)) for n in (1, 2, 100_000)]
    assert waits == [(0.05, 0.1), (0.1, 0.2), (7.5, 15.0)]


@pytest.mark.parametrize(
    "wrong", [{"first_s": -1}, {"most_s": -1}, {"factor": 0.5}, {"jitter": 1.5}, {"jitter": -1}]
)
def test_waits_that_can_not_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Backoff(**wrong)


def test_clients_and_handlers_wait_by_the_same_rule() -> None:
    assert warren.Backoff is warren.client.Backoff
