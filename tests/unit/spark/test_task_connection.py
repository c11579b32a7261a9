"""A task's connection while the task does something else."""

from __future__ import annotations

import pytest

from tests.unit.client.wire_model import connected
from warren.amqp.frames import HEARTBEAT_FRAME
from warren.errors import ConnectionLost
from warren.spark.task_connection import TaskConnection


def test_it_is_kept_alive_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = [HEARTBEAT_FRAME * 100] * 5
    link, wire = connected(monkeypatch, lambda: waiting.pop() if waiting else None, heartbeat_s=10)
    connection = TaskConnection(lambda: link)
    assert connection.link is link

    connection.keep_alive()
    assert not waiting, "all that was there is read: a broker does not write for ever"
    assert wire.heartbeats == 0

    wire.now += 6
    connection.keep_alive()
    assert wire.heartbeats == 1


@pytest.mark.parametrize("end", [b"", None])
def test_what_broke_meanwhile_is_found_by_the_next_use(
    monkeypatch: pytest.MonkeyPatch, end: bytes | None
) -> None:
    link, wire = connected(monkeypatch, lambda: end, heartbeat_s=10)
    connection = TaskConnection(lambda: link)
    assert connection.link is link
    wire.now += 60  # longer than a broker is silent

    connection.keep_alive()
    connection.keep_alive()

    assert not link.is_open
    with pytest.raises(ConnectionLost):
        link.pump(0.1)


def test_there_is_nothing_to_keep_alive_before_it_is_made() -> None:
    TaskConnection(lambda: pytest.fail("nobody asked for it")).keep_alive()
