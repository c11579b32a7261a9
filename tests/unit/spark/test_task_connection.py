"""A task's connection while the task does something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.client.wire_model import connected
from warren.amqp.frames import HEARTBEAT_FRAME
from warren.clock import moment
from warren.errors import ConnectionLost
from warren.spark import task_connection
from warren.spark.task_connection import TaskConnection


def test_it_is_kept_alive_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = [HEARTBEAT_FRAME * 100] * 5
    link, wire = connected(monkeypatch, lambda: waiting.pop() if waiting else None, heartbeat_s=10)
    connection = TaskConnection(lambda: link)
    assert connection.link is link

    connection.keep_alive(lambda: True)
    assert not waiting, "all that was there is read: a broker does not write for ever"
    assert wire.heartbeats == 0

    wire.now += 6
    connection.keep_alive(lambda: True)
    assert wire.heartbeats == 1


@pytest.mark.parametrize("end", [b"", None])
def test_what_broke_meanwhile_is_found_by_the_next_use(
    monkeypatch: pytest.MonkeyPatch, end: bytes | None
) -> None:
    link, wire = connected(monkeypatch, lambda: end, heartbeat_s=10)
    connection = TaskConnection(lambda: link)
    assert connection.link is link
    wire.now += 60  # longer than a broker is silent

    connection.keep_alive(lambda: True)
    connection.keep_alive(lambda: True)

    assert not link.is_open
    with pytest.raises(ConnectionLost):
        link.pump(0.1)


def test_there_is_nothing_to_keep_alive_before_it_is_made() -> None:
    TaskConnection(lambda: pytest.fail("nobody asked for it")).keep_alive(lambda: True)


class Link:
    """A connection of which it is known where it leads, and when the broker was there."""

    is_open = True

    def __init__(self, address: str, there_s_ago: float, *, slept_s: float = 0.0) -> None:
        """``slept_s``: that long ago by the clock on the wall alone."""
        self.address = address
        awake, wall = moment()
        self.alive_at = (awake - there_s_ago, wall - there_s_ago - slept_s)

    def abandon(self) -> None:
        self.is_open = False


def answering(*answers: Link | Exception) -> Callable[[], Any]:
    left = list(answers)

    def connect() -> Any:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return connect


@pytest.mark.parametrize(
    ("there_s_ago", "failures", "address", "restarted"),
    [
        (0.0, 0, "a", False),  # it was cut
        (0.0, 1, "a", True),  # nobody was there for a moment
        (0.0, 0, "b", True),  # nor at the first of our addresses
        (0.5, 0, "a", True),  # long enough for a quick one to have been killed and to be back
        (9.0, 0, "a", True),  # nobody knows since when it was gone
    ],
)
def test_a_broker_that_lets_us_in_again_at_once_was_not_restarted(
    monkeypatch: pytest.MonkeyPatch,
    there_s_ago: float,
    failures: int,
    address: str,
    restarted: bool,
) -> None:
    monkeypatch.setattr(task_connection, "_PAUSE_S", 0.0)
    monkeypatch.setattr(task_connection, "_FIRST_PAUSE_S", 0.0)
    down = ConnectionLost("a", "cut")
    before, after = Link("a", there_s_ago), Link(address, 0.0)
    connection = TaskConnection(answering(before, *[down] * failures, after))
    assert connection.link is before
    assert not connection.made_again

    connection.lost(down)
    for _ in range(failures):
        with pytest.raises(ConnectionLost):
            _ = connection.link
        connection.lost(down)

    assert connection.link is after
    assert (connection.made_again, connection.restarted) == (True, restarted)


def test_a_broker_that_was_not_there_at_first_may_have_been_restarted() -> None:
    connection = TaskConnection(answering(ConnectionLost("a", "down"), Link("a", 0.0)))
    with pytest.raises(ConnectionLost):
        _ = connection.link
    connection.lost(ConnectionLost("a", "down"))

    assert connection.link is not None
    assert (connection.made_again, connection.restarted) == (True, True)


def test_a_machine_that_stood_still_meanwhile_does_not_know_what_became_of_the_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was frozen: its own clock stood still, and the one on the wall was put right."""
    monkeypatch.setattr(task_connection, "_FIRST_PAUSE_S", 0.0)
    connection = TaskConnection(answering(Link("a", 0.0, slept_s=30.0), Link("a", 0.0)))
    assert connection.link is not None
    connection.lost(ConnectionLost("a", "cut"))

    assert connection.link is not None
    assert (connection.made_again, connection.restarted) == (True, True)


@pytest.mark.parametrize(("room", "left", "beats"), [(3, 7, 1), (0, 10, 1), (20, 0, 0)])
def test_a_connection_that_is_kept_alive_is_read_as_far_as_there_is_room(
    room: int, left: int, beats: int
) -> None:
    link: Any = Link("a", 0.0)
    link.unread, link.beats = 10, 0

    def pump(timeout_s: float) -> bool:
        link.unread -= 1
        return link.unread > 0

    def beat() -> None:
        link.beats += 1

    link.pump, link.beat, link.flush = pump, beat, lambda: None
    connection = TaskConnection(answering(link))
    assert connection.link is link

    connection.keep_alive(lambda: 10 - link.unread < room)

    assert (link.unread, link.beats) == (left, beats)
