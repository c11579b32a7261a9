"""When the broker was surely there: who slept reads first what it had said before that."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from warren.amqp import methods as m
from warren.amqp.frames import HEARTBEAT_FRAME, METHOD, encode_frame
from warren.amqp.tables import Table
from warren.client import blocking
from warren.client.blocking import BlockingConnection
from warren.client.endpoint import Endpoint
from warren.client.unread import unread
from warren.clock import moment

WELCOME = (
    m.ConnectionStart(0, 9, Table(), b"PLAIN", b"en_US"),
    m.ConnectionTune(100, 131072, 60),
    m.ConnectionOpenOk(),
)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[BlockingConnection, socket.socket]]:
    """A connection that is open, and the broker's end of it."""
    ours, theirs = socket.socketpair()
    for method in WELCOME:
        theirs.sendall(encode_frame(METHOD, 0, method.encode()))
    monkeypatch.setattr(BlockingConnection, "_dial", lambda *_: ours)
    link = BlockingConnection(Endpoint.from_uri("amqp://guest:guest@model/"))
    yield link, theirs
    link.abandon()
    theirs.close()


def say_when_asked(
    monkeypatch: pytest.MonkeyPatch, link: BlockingConnection, theirs: socket.socket
) -> None:
    """The broker says something when somebody waits for it."""
    read = link._read

    def late(wait_s: float) -> bytes | None:
        theirs.sendall(HEARTBEAT_FRAME)
        return read(wait_s)

    monkeypatch.setattr(link, "_read", late)


@pytest.mark.parametrize("gather", [True, False])
def test_what_was_there_before_it_was_read_is_no_sign_of_life(
    ends: tuple[BlockingConnection, socket.socket], gather: bool
) -> None:
    link, theirs = ends
    said_at = moment()
    theirs.sendall(HEARTBEAT_FRAME * 1000)

    while link.pump(0.0, gather=gather):
        pass

    assert link.alive_at < said_at


@pytest.mark.parametrize("waiting", [0, 1, 1000])
def test_what_comes_while_it_is_waited_for_is(
    monkeypatch: pytest.MonkeyPatch, ends: tuple[BlockingConnection, socket.socket], waiting: int
) -> None:
    link, theirs = ends
    alive_at = link.alive_at
    theirs.sendall(HEARTBEAT_FRAME * waiting)
    say_when_asked(monkeypatch, link, theirs)

    assert link.pump(1.0, gather=True)

    assert link.alive_at > alive_at


def test_a_broker_that_has_more_than_can_be_read_at_once_is_there(
    monkeypatch: pytest.MonkeyPatch, ends: tuple[BlockingConnection, socket.socket]
) -> None:
    link, theirs = ends
    monkeypatch.setattr(blocking, "RECEIVE_BYTES", 10 * len(HEARTBEAT_FRAME))
    seen = set()
    for _ in range(10):
        theirs.sendall(HEARTBEAT_FRAME * 100)
        for _ in range(10):
            assert link.pump(1.0)
        seen.add(link.alive_at)

    assert len(seen) == 10


def test_that_nothing_comes_is_no_sign_of_life(
    ends: tuple[BlockingConnection, socket.socket],
) -> None:
    """A machine without power says nothing either, not even that the connection is gone."""
    link, _ = ends
    alive_at = link.alive_at

    assert not link.pump(0.01)

    assert link.alive_at == alive_at


def test_octets_that_wait_are_counted(ends: tuple[BlockingConnection, socket.socket]) -> None:
    link, theirs = ends
    assert unread(link._socket) == 0
    theirs.sendall(bytes(300_000 // 10))
    assert unread(link._socket) == 30_000
