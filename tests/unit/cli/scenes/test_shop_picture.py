"""What the demo says of the worker that it kills."""

from __future__ import annotations

import io

import pytest

from warren.cli.scenes.shop_picture import Picture
from warren.cli.scenes.stage import Stage


@pytest.mark.parametrize(
    ("busy", "told"),
    [
        (True, "that was talking to the broker; Spark has its task done again"),
        (False, "that was not talking to the broker; none was caught doing so"),
    ],
)
def test_a_worker_that_was_killed_is_told_as_what_it_was(busy: bool, told: str) -> None:
    said = io.StringIO()
    picture = Picture(Stage.open(plain=True, fast=True, file=said), 10)

    picture.killed(77, busy=busy)

    assert picture.victim == 77
    assert said.getvalue().strip() == f"kill -9 77, a Python worker of Spark {told}"


def test_a_log_says_why_nothing_comes_between_sparks_start_and_its_first_batch() -> None:
    said = io.StringIO()
    picture = Picture(Stage.open(plain=True, fast=True, file=said), 10)

    picture.tell({"event": "session", "seconds": 7.2})

    assert said.getvalue().strip() == (
        "Spark is up after 7 s; its first batch takes longest, up to half a minute"
    )
