"""Two lively clients without sockets: whatever they do, in whatever order, the books are right.

A client that is refused opens its channel or connection again and goes on, so that long sequences
get far. Time moves between their steps. Bounded by ``WARREN_FUZZ_SECONDS``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import strategies as st
from pika import spec

from tests.fuzz.arena import HANDSHAKE, SECONDS, VHOST, Keep, fuzz, method, read_frames
from tests.fuzz.operations import senseless, sensible
from warren.broker.core import BrokerCore
from warren.testing import FakeClock

pytestmark = [pytest.mark.timeout(60 + 4 * SECONDS)]
CLOSE_OK = bytes.fromhex("01 0001 00000004 0014 0029 ce")


class Shell:
    """What a connection expects of its socket."""

    def write(self) -> None: ...

    def reading_changed(self) -> None: ...

    def opened(self) -> None: ...

    def abort(self) -> None: ...


class Client:
    """Sends frames and answers what the broker sends back, as far as it must be answered."""

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        self._connect()

    def _connect(self) -> None:
        self.connection = self.core.connect(("127.0.0.1", 1), ("127.0.0.1", 2))
        self.connection.shell = Shell()
        for frame in (*HANDSHAKE, method(spec.Channel.Open(), 2)):
            self.connection.session.receive(frame)
        self.react()

    def send(self, frame: bytes) -> None:
        self.connection.session.receive(frame)

    def react(self) -> None:
        """Read what came; answer closes; connect anew when the connection is over."""
        session = self.connection.session
        answers = b""
        for kind, channel, payload in read_frames(session.data_to_send()):
            if kind == 1 and payload[:4] == b"\x00\x14\x00\x28":
                number = channel.to_bytes(2, "big")
                answers += CLOSE_OK[:1] + number + CLOSE_OK[3:] + method(spec.Channel.Open(), channel)
        self.connection.refill()
        if session.state != "running":
            self.leave()
            self._connect()
        elif answers:
            session.receive(answers)

    def leave(self) -> None:
        self.connection.session.lost()


class Stage:
    """A broker, two clients and a clock."""

    def __init__(self, memory_limit_bytes: int = 0) -> None:
        self.clock = FakeClock()
        self.core = BrokerCore(clock=self.clock, memory_limit_bytes=memory_limit_bytes)
        self.core.add_vhost(VHOST)
        self.clients = [Client(self.core), Client(self.core)]

    def play(self, step: tuple[int, Any]) -> None:
        who, what = step
        if isinstance(what, float):
            self.clock.advance(what)
            self.core.tick()
        else:
            self.clients[who].send(what)
        for _ in range(3):
            self.core.settle()
            for client in self.clients:
                client.react()

    def check_books(self) -> None:
        for queue in self.core.vhosts[VHOST].queues.values():
            if queue.kind == "stream":
                continue
            entries = list(queue.ready)
            assert len(entries) == len(queue.ready)
            assert sum(entry[1].body_size for entry in entries) == queue.ready_bytes
            held = [
                delivery
                for client in self.clients
                for channel in client.connection.session.ready.values()
                for delivery in channel.unacked.values()  # type: ignore[attr-defined]
                if delivery[0] is queue
            ]
            assert queue.unacked >= len(held)

    def close(self) -> None:
        """Everybody leaves, the vhost goes: nothing is held any more, nothing waits."""
        for client in self.clients:
            client.leave()
        self.core.settle()
        for queue in self.core.vhosts[VHOST].queues.values():
            left = queue.snapshot()
            assert (left["consumers"], left["messages_unacknowledged"]) == (0, 0), left
            assert not left["exclusive"], left
        self.core.delete_vhost(VHOST)
        self.core.settle()
        assert self.core.held_bytes == 0
        assert not self.core.connections
        assert not self.core.reply_consumers
        assert self.core.timers.next_deadline_ms() is None


steps = st.tuples(st.integers(0, 1), sensible | st.sampled_from([0.001, 0.1, 60.0, 100.0]))
odd_steps = st.tuples(st.integers(0, 1), senseless | st.sampled_from([0.1, 60.0]))


@pytest.fixture
def problems() -> Iterator[list[str]]:
    """Everything that is logged as an error."""
    found: list[str] = []
    handler = Keep(found)
    logging.getLogger().addHandler(handler)
    yield found
    logging.getLogger().removeHandler(handler)


def played(script: list[tuple[int, Any]], problems: list[str], **options: Any) -> None:
    problems.clear()
    stage = Stage(**options)
    for step in script:
        stage.play(step)
        assert not problems, "\n".join(problems)
        stage.check_books()
    stage.close()
    assert not problems, "\n".join(problems)


def test_the_books_are_right_whatever_clients_do(problems: list[str]) -> None:
    fuzz(st.lists(steps, max_size=40), lambda script: played(script, problems), 0.3)


def test_the_books_are_right_when_some_of_it_makes_no_sense(problems: list[str]) -> None:
    fuzz(st.lists(odd_steps, max_size=25), lambda script: played(script, problems), 0.1)


def test_the_books_are_right_when_memory_is_short(problems: list[str]) -> None:
    def example(script: list[tuple[int, Any]]) -> None:
        played(script, problems, memory_limit_bytes=200)

    fuzz(st.lists(steps, max_size=40), example, 0.1)
