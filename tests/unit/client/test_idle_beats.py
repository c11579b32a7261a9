"""Heartbeats while a connection's owner does something else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from warren.client.idle_beats import IdleBeats
from warren.client.publish_connection import PublishConnection
from warren.errors import ConnectionLost

NEVER = float("inf")


class Link:
    """A connection with heartbeats every 10 s, that was last written to at 100 s."""

    def __init__(self, heartbeat_s: int = 10) -> None:
        self.session = SimpleNamespace(heartbeat_s=heartbeat_s, sent_at=100.0)
        self.is_open = True
        self.beats = 0
        self.breaks = False

    def catch_up(self) -> None:
        self.beats += 1
        if self.breaks:
            raise ConnectionLost("mq:5672", "gone")


def beats_for(link: Link) -> IdleBeats:
    beats = IdleBeats()
    beats._link = cast("PublishConnection", cast("Any", link))  # without the heart's thread
    return beats


def test_a_beat_is_due_when_nothing_was_sent_for_half_of_the_interval() -> None:
    assert beats_for(Link()).next_beat() == 105.0
    assert beats_for(Link(heartbeat_s=0)).next_beat() == NEVER
    assert IdleBeats().next_beat() == NEVER


def test_nobody_touches_a_connection_that_is_in_use() -> None:
    link = Link()
    beats = beats_for(link)
    with beats.in_use:
        beats.beat(105.0)
        assert beats.next_beat() == 107.5  # and not at once again
    assert link.beats == 0

    beats.beat(107.5)
    assert link.beats == 1
    assert beats.in_use.acquire(blocking=False)


def test_a_connection_that_broke_is_left_to_its_owner() -> None:
    link = Link()
    beats = beats_for(link)
    link.breaks = True

    beats.beat(105.0)

    assert beats.next_beat() == NEVER
    assert beats.in_use.acquire(blocking=False)
