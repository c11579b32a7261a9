from __future__ import annotations

import pytest

from warren.handlers import letters


def test_the_history_survives_a_trip_through_a_delay_queue() -> None:
    history = [letters.failure(1, ValueError("no"), "m1", 1000)]
    headers = letters.failed_headers(
        {"mine": 1},
        queue="orders",
        exchange="shop",
        routing_key="o.eu",
        history=history,
        attempts=1,
    )
    assert letters.earlier_attempts(headers) == (2, history)
    assert letters.origin(headers, "exchange", "") == "shop"
    assert letters.clean_headers(headers) == {"mine": 1}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-warren-attempts": "3"},
        {"x-warren-attempts": -3},
        {"x-warren-attempts": True},
        {"x-warren-attempts": 1 << 40},
        {"x-warren-history": "x"},
        {"x-warren-history": [1, "x"]},
    ],
)
def test_headers_that_can_not_be_true_are_ignored(headers: dict[str, object]) -> None:
    assert letters.earlier_attempts(headers) == (1, [])


def test_a_long_history_keeps_its_newest() -> None:
    history = [letters.failure(n, ValueError(), "m", n) for n in range(50)]
    headers = letters.failed_headers(
        {}, queue="q", exchange="", routing_key="q", history=history, attempts=50
    )
    kept = headers["x-warren-history"]
    assert [each["attempt"] for each in kept] == list(range(30, 50))


def test_an_error_is_told_with_its_type_and_bounded() -> None:
    assert letters.describe(ValueError("no")) == "ValueError: no"
    assert letters.describe(KeyError()) == "KeyError"
    assert len(letters.describe(ValueError("x" * 10_000))) == letters.MOST_ERROR_CHARS


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError


def test_an_error_that_can_not_say_what_it_is_still_makes_a_letter() -> None:
    assert letters.describe(Mute()).startswith("Mute: ")
    assert letters.describe(ValueError("half \ud83d")) == "ValueError: half ?"


def test_a_letter_names_the_keys_of_copies_and_asks_for_none() -> None:
    headers = letters.without_copies({"CC": ["audit"], "BCC": ["secret"], "mine": 1})
    assert headers == {"x-warren-cc": ["audit"], "mine": 1}
    assert letters.without_copies(headers) == headers


def test_a_letter_without_room_tells_less_and_less_of_its_failures() -> None:
    history = [letters.failure(n, ValueError(), "m", n) for n in range(5)]
    failed = letters.failed_headers(
        {"mine": 1, "CC": ["audit"]},
        queue="q",
        exchange="shop",
        routing_key="o.eu",
        history=history,
        attempts=5,
    )
    whole = letters.dead_headers(failed, "failed", "ValueError")
    tried = list(letters.shortened(whole))
    assert tried[0] == whole
    kept = [[one["attempt"] for one in each.get("x-warren-history", [])] for each in tried]
    assert kept == [[0, 1, 2, 3, 4], [3, 4], [4], [], [], []]
    gone = [sorted(set(whole) - set(each)) for each in tried[-2:]]
    assert gone[0] == ["x-warren-error", "x-warren-history"]
    assert tried[-1] == {
        "mine": 1,
        "x-warren-queue": "q",
        "x-warren-attempts": 5,
        "x-warren-reason": "failed",
    }
