"""Two lively clients without sockets: whatever they do, in whatever order, the books are right.

A client that is refused opens its channel or connection again and goes on, so that long scripts
get far. Time moves between their steps. Bounded by ``WARREN_FUZZ_SECONDS``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pika import spec

from tests.fuzz.arena import HANDSHAKE, SECONDS, VHOST, Keep, method, read_frames
from tests.fuzz.operations import Script, Step, octets
from warren.broker import connection
from warren.broker.channel import Channel
from warren.broker.core import BrokerCore
from warren.broker.message import OVERHEAD
from warren.testing import FakeClock

pytestmark = [pytest.mark.timeout(60 + 4 * SECONDS)]
CLOSE_OK = spec.Channel.CloseOk()


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
        self.reads = True
        self.connect()

    def connect(self) -> None:
        self.reads = True
        self.connection = self.core.connect(("127.0.0.1", 1), ("127.0.0.1", 2))
        self.connection.shell = Shell()
        for frame in (*HANDSHAKE, method(spec.Channel.Open(), 2)):
            self.connection.session.receive(frame)
        self.react()

    def send(self, data: bytes) -> None:
        self.connection.session.receive(data)

    def settle(self, channel: int, how: str, tag: int, multiple: bool) -> None:
        opened: Any = self.connection.session.ready.get(channel)
        held = sorted(opened.unacked) if opened is not None else []
        if tag in (1, -1) and held:
            tag = held[0 if tag == 1 else -1]
        methods = {
            "ack": spec.Basic.Ack(abs(tag), multiple),
            "nack": spec.Basic.Nack(abs(tag), multiple, requeue=False),
            "requeue": spec.Basic.Nack(abs(tag), multiple, requeue=True),
            "reject": spec.Basic.Reject(abs(tag), requeue=False),
        }
        if held or tag == 99:
            self.send(method(methods[how], channel))

    def react(self) -> None:
        """Read what came; answer closes; connect anew when the connection is over."""
        session = self.connection.session
        if not self.reads and session.state == "running":
            return
        answers = b""
        for kind, channel, payload in read_frames(session.data_to_send()):
            if kind == 1 and payload[:4] == b"\x00\x14\x00\x28":  # channel.close
                answers += method(CLOSE_OK, channel) + method(spec.Channel.Open(), channel)
            elif kind == 1 and payload[:4] == b"\x00\x14\x00\x29":  # the answer to ours
                answers += method(spec.Channel.Open(), channel)
        self.connection.refill()
        if session.state != "running":
            self.leave()
            self.connect()
            return
        if answers:
            session.receive(answers)
        if session.held and not self.connection.blocked:
            session.go_on("unread")  # it has read, so it is listened to again

    def channels(self) -> list[Channel]:
        session = self.connection.session
        waiting = [assembly.handler for assembly in session.assembling.values()]
        return [c for c in (*session.ready.values(), *waiting) if isinstance(c, Channel)]

    def uncommitted(self) -> list[Any]:
        """Messages of open transactions."""
        return [
            message
            for channel in self.channels()
            for _, message, _ in channel.publisher.transaction or ()
        ]

    def unacked(self) -> list[Any]:
        """Queue, entry and consumer of everything that the broker waits to hear of."""
        return [
            delivery
            for channel in self.channels()
            for delivery in (
                *channel.unacked.values(),
                *(delivery for _, _, delivery in channel._settled_in_transaction),
            )
        ]

    def leave(self) -> None:
        self.connection.session.lost()


class Stage:
    """A broker, two clients and a clock."""

    def __init__(self, memory_limit_bytes: int = 0) -> None:
        self.clock = FakeClock()
        self.core = BrokerCore(clock=self.clock, memory_limit_bytes=memory_limit_bytes)
        self.core.add_vhost(VHOST)
        self.clients = [Client(self.core), Client(self.core)]

    def play(self, step: Step) -> None:
        what, who, data = step
        client = self.clients[who]
        if what == "wait":
            self.clock.advance(data)
            self.core.tick()
        elif what == "alarm":
            self.core.memory_alarm(data)
        elif what == "vanish":
            client.leave()
            client.connect()
        elif what == "read":
            client.reads = data
        elif what == "settle":
            client.settle(data[0], *data[1])
        else:
            client.send(octets(step))
        self._rest()

    def _rest(self) -> None:
        """Give out and read until there is nothing more to do."""
        while True:
            self.core.settle()
            busy = [one for one in self.clients if one.reads and one.connection.session.out]
            for client in self.clients:
                client.react()
            if not busy and not self.core.pending:
                return

    def check_books(self) -> None:
        """Counts and bytes agree with what is really there."""
        unacked = [delivery for client in self.clients for delivery in client.unacked()]
        messages = {entry[1] for _, entry, _ in unacked}
        messages.update(message for client in self.clients for message in client.uncommitted())
        queues = self.core.vhosts[VHOST].queues.values()
        for queue in queues:
            held = [entry[1] for holder, entry, _ in unacked if holder is queue]
            assert queue.unacked == len(held)
            if queue.kind == "stream":
                continue
            ready = [entry[1] for entry in queue.ready]
            assert len(ready) == len(queue.ready)
            assert sum(message.body_size for message in ready) == queue.ready_bytes
            assert sum(message.body_size for message in held) == queue.unacked_bytes
            messages.update(ready)
        if all(queue.kind != "stream" for queue in queues):
            messages.update(message.origin for message in list(messages) if message.origin)
            whole = sum(len(message.content) + OVERHEAD for message in messages)
            halves = sum(client.connection.session.half_bytes for client in self.clients)
            assert self.core.held_bytes == whole + halves

    def check_nobody_waits_in_vain(self) -> None:
        """A message that is ready has no consumer that could take it."""
        if not all(client.reads for client in self.clients):
            return
        for queue in self.core.vhosts[VHOST].queues.values():
            if queue.kind != "stream" and len(queue.ready):
                rota = queue.rota
                candidates = list(rota) if not rota.single else [rota.active]
                assert not any(one.room() > 0 for one in candidates if one is not None), queue.name

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


@pytest.fixture(autouse=True)
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not read gets a few messages, not half a megabyte."""
    monkeypatch.setattr(connection, "BUDGET", 300)


@pytest.fixture
def problems() -> Iterator[list[str]]:
    """Everything that is logged as an error."""
    found: list[str] = []
    handler = Keep(found)
    logging.getLogger().addHandler(handler)
    yield found
    logging.getLogger().removeHandler(handler)


def failure(script: list[Step], problems: list[str], memory_limit_bytes: int) -> Exception | None:
    """What goes wrong when this is played."""
    problems.clear()
    try:
        stage = Stage(memory_limit_bytes)
        for step in script:
            stage.play(step)
            stage.check_books()
            stage.check_nobody_waits_in_vain()
        stage.close()
        assert not problems, "\n".join(problems)
    except Exception as error:  # noqa: BLE001 - it is shown with its script
        return error
    return None


def shortened(script: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    """Leave steps out as long as it still goes wrong."""
    size = len(script) // 2
    while size:
        at = 0
        while at < len(script):
            shorter = script[:at] + script[at + size :]
            if fails(shorter):
                script = shorter
            else:
                at += size
        size //= 2
    return script


def show(seed: int, script: list[Step], error: Exception | None) -> AssertionError:
    steps = "\n".join(map(repr, script))
    return AssertionError(f"seed {seed}: {error!r} after\n{steps}")


@pytest.mark.parametrize(
    ("nonsense", "memory_limit_bytes"), [(0.0, 0), (0.1, 0), (0.0, 300)], ids=str
)
def test_the_books_are_right_whatever_clients_do(
    problems: list[str], nonsense: float, memory_limit_bytes: int
) -> None:
    deadline = time.monotonic() + SECONDS * 0.1
    seed = 0
    while seed == 0 or time.monotonic() < deadline:
        script = Script(seed, nonsense).steps(200)
        if failure(script, problems, memory_limit_bytes) is not None:
            script = shortened(
                script, lambda shorter: failure(shorter, problems, memory_limit_bytes) is not None
            )
            error = failure(script, problems, memory_limit_bytes)
            raise show(seed, script, error) from error
        seed += 1
