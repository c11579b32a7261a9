from __future__ import annotations

from typing import Any

import pytest

from warren.client.backoff import Backoff
from warren.errors import ConfigError, DecodeFailed, Reject, Retry
from warren.groups.discovery import matches
from warren.handlers.outcome import DeadLetter, TryAgain, after_failure
from warren.handlers.policy import Handling, from_options


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"prefetch": 0}, "prefetch"),
        ({"retries": -1}, "retries"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": 60, "ordered": False}, "prefetch of 60"),
        ({"concurrency": 2}, "key="),
        ({"timeout_s": 0}, "timeout_s"),
        ({"retires": 3}, "did you mean retries"),
        ({"prefetch": "50"}, r"@app\.handler\('orders'\) prefetch .* is '50'"),
        ({"retries": 2.5}, "retries .* whole number"),
        ({"concurrency": True}, "concurrency .* whole number"),
        ({"backoff": "1s"}, "backoff .* seconds as a number"),
        ({"backoff": -1}, "backoff .* 0 or more"),
        ({"ordered": "no"}, "ordered .* True or False"),
        ({"key": "customer"}, "key .* function of the message"),
        ({"timeout_s": "3"}, "timeout_s .* seconds"),
        ({"dead_letter": ""}, "dead_letter .* queue's name"),
    ],
)
def test_a_setting_that_can_not_work_is_named(options: dict[str, object], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        from_options(("orders",), options)


def test_a_handler_without_a_queue_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one queue"):
        from_options((), {})


@pytest.mark.parametrize(
    ("queues", "word"),
    [
        ((["a", "b"],), r"@app\.handler\('a', 'b'\)"),
        ((7,), "7 is no queue's name"),
        (("",), "can't be empty"),
    ],
)
def test_what_is_no_queues_name_is_refused(queues: tuple[Any, ...], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        from_options(queues, {})


def test_a_number_as_backoff_is_the_first_wait() -> None:
    assert from_options(("q",), {"backoff": 2}).backoff.first_s == 2.0


@pytest.mark.parametrize(
    ("pattern", "queue", "fits"),
    [
        ("orders", "orders", True),
        ("orders", "orders2", False),
        ("orders.*", "orders.eu.west", True),
        ("orders.*", "ordersXeu", False),
        ("*", "anything", True),
        ("a*b*c", "a--b--c", True),
        ("a*b*c", "a--c--b", False),
        ("q[1]", "q[1]", True),
        ("q[12]", "q2", True),
        ("q?", "q10", False),
        ("*", "warren.dead.billing", False),
        ("warren.*", "warren.dead.billing", False),
        ("warren.dead.billing", "warren.dead.billing", True),
    ],
)
def test_a_queue_fits_a_name_or_a_pattern(pattern: str, queue: str, fits: bool) -> None:
    assert matches(pattern, queue) is fits


ORDERED = Handling(("q",), retries=2, backoff=Backoff(first_s=1, jitter=0))
UNORDERED = Handling(("q",), retries=2, backoff=Backoff(first_s=1, jitter=0), ordered=False)


@pytest.mark.parametrize("handling", [ORDERED, UNORDERED])
def test_a_failure_is_tried_again_until_the_retries_are_used_up(handling: Handling) -> None:
    error = ValueError("no")
    here = handling.ordered
    assert after_failure(handling, 1, error) == TryAgain(1.0, here)
    assert after_failure(handling, 2, error) == TryAgain(2.0, here)
    assert after_failure(handling, 3, error) == DeadLetter("failed")


def test_what_can_never_work_is_not_tried_again() -> None:
    assert after_failure(ORDERED, 1, Reject("no such customer")) == DeadLetter("rejected")
    assert after_failure(ORDERED, 1, DecodeFailed("json", "x")) == DeadLetter("undecodable")


def test_a_handler_may_name_its_own_wait_but_not_get_more_attempts() -> None:
    assert after_failure(ORDERED, 1, Retry(30.0)) == TryAgain(30.0, here=True)
    assert after_failure(ORDERED, 1, Retry(-1.0)) == TryAgain(0.0, here=True)
    assert after_failure(ORDERED, 3, Retry(30.0)) == DeadLetter("failed")
