"""What the demo says while Spark reads the shop's queues."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from warren.cli.scenes.shop_events import shares
from warren.cli.scenes.shop_picture import Picture
from warren.cli.scenes.stage import Stage

COUNT = 9_000


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def picture(said: io.StringIO) -> Picture:
    """In a log."""
    stage = Stage.open(plain=True, fast=True, file=said)
    return Picture(stage, shares(COUNT), quiet_s=3600)


@pytest.mark.parametrize(
    ("busy", "told"),
    [
        (
            True,
            "that was talking to the broker. What it had in its hands goes back to the queues; "
            "Spark has its task done again",
        ),
        (False, "that was not talking to the broker; none was caught doing so"),
    ],
)
def test_a_worker_that_was_killed_is_told_as_what_it_was(
    picture: Picture, said: io.StringIO, busy: bool, told: str
) -> None:
    picture.killed(77, busy=busy)

    assert picture.victim == 77
    assert said.getvalue().strip() == f"kill -9 77: a Python worker of Spark's {told}"


def test_a_log_says_why_nothing_comes_between_sparks_start_and_its_first_batch(
    picture: Picture, said: io.StringIO
) -> None:
    picture.tell({"event": "session", "seconds": 7.2})

    assert said.getvalue().strip() == (
        "Spark is up after 7 s; its first batch takes longest, up to half a minute"
    )


def test_a_log_has_a_line_for_each_publisher_and_each_batch(
    picture: Picture, said: io.StringIO
) -> None:
    for pid, name in enumerate(shares(COUNT), start=70):
        picture.hired(name, pid)
    picture.backlog = 1_500
    picture.tell({"event": "batch", "id": 4, "rows": 3_000, "ms": 1_200})

    assert picture.read == 3_000
    assert said.getvalue().splitlines() == [
        "publisher website, pid 70: events 0 to 2,999",
        "publisher app, pid 71: events 3,000 to 5,999",
        "publisher partners, pid 72: events 6,000 to 8,999",
        "batch 4: 3,000 rows in 1.2 s (2,500 rows/s), backlog 1,500",
    ]


def test_a_log_that_was_quiet_for_long_gets_a_sign_of_life(said: io.StringIO) -> None:
    stage = Stage.open(plain=True, fast=True, file=said)
    quiet, talking = (Picture(stage, shares(COUNT), quiet_s=each) for each in (0, 3600))
    quiet.published.update(website=1_000, app=600)
    quiet.backlog = 1_400

    for picture in (quiet, talking):
        picture.go_on()

    assert said.getvalue().splitlines() == [
        "… 0 s: 1,600 published, 1,400 in the queues, 0 in tables"
    ]


def test_a_terminal_shows_where_the_events_are_and_the_last_batches() -> None:
    stage = Stage(Console(file=io.StringIO(), width=80), plain=False, fast=True)
    picture = Picture(stage, shares(COUNT))
    picture.published.update(website=3_000, app=2_000, partners=1_000)
    for number in range(8):
        picture.backlog = 700 - 100 * number
        picture.tell({"event": "batch", "id": number, "rows": 500, "ms": 250})
    picture.killed(77, busy=True)

    with stage.console.capture() as drawn:
        stage.console.print(picture.draw())

    lines = [line.split() for line in drawn.get().splitlines()]
    assert [line[:2] for line in lines[:3]] == [
        ["website", "3,000"],
        ["app", "2,000"],
        ["partners", "1,000"],
    ]
    assert [line[:3] for line in lines[3:6]] == [
        ["in", "queues", "0"],
        ["with", "Spark", "2,000"],
        ["in", "tables", "4,000"],
    ]
    assert lines[7] == ["batch", "rows", "seconds", "rows/s", "backlog"]
    assert lines[8:14] == [
        [str(number), "500", "0.2", "2,000", str(700 - 100 * number)] for number in range(2, 8)
    ]
    assert lines[15] == ["Spark", "reads", "the", "queues,", "batch", "by", "batch"]
    assert lines[16][:3] == ["kill", "-9", "77:"]
