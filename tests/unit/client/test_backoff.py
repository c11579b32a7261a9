from __future__ import annotations

import random

from warren.client.backoff import Backoff


def test_delays_double_up_to_the_most() -> None:
    backoff = Backoff(first_s=1, most_s=10, rng=random.Random(1))
    for attempt, step in enumerate([1, 2, 4, 8, 10, 10]):
        for _ in range(50):
            assert step / 2 <= backoff.delay_s(attempt) <= step


def test_two_clients_do_not_wait_alike() -> None:
    assert len({Backoff().delay_s(5) for _ in range(20)}) > 1


def test_many_failures_are_no_trouble() -> None:
    assert Backoff().delay_s(100_000) <= 15
