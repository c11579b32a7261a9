"""A broker to be ill-treated, and a witness that must not notice."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pika.frame
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pika import spec

import warren
from tests.support.eventually import eventually
from tests.support.wire import Connection
from warren.server.thread import run

#: How long all tests of this folder that can go on for ever may take together.
SECONDS = float(os.environ.get("WARREN_FUZZ_SECONDS", "20"))
VHOST = "fuzz"
#: Reply codes that AMQP 0-9-1 has.
CODES = {200, 311, 312, 313, 320, 402, 403, 404, 405, 406, 501, 502, 503, 504, 505, 506, 530, 540}
CODES |= {541}


class Arena:
    """A running broker, a connection to it that stays open, and everything that was logged."""

    def __init__(self, broker: warren.Broker, problems: list[str]) -> None:
        self.broker = broker
        self.problems = problems
        self._witness = Connection.open(broker.url).channel()
        self._queue = self._witness.declare("witness").queue
        self._count = 0
        broker.add_vhost(VHOST)

    # -- a peer ------------------------------------------------------------------------------
    def dial(self) -> socket.socket:
        sock = socket.create_connection((self.broker.host, self.broker.port), timeout=5)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def say(self, pieces: Iterable[bytes]) -> bytes:
        """Connect, send, say that this was all, and return everything the broker answered."""
        answer = b""
        with self.dial() as sock, contextlib.suppress(ConnectionError):
            for piece in pieces:
                sock.sendall(piece)
            with contextlib.suppress(OSError):  # cut off already
                sock.shutdown(socket.SHUT_WR)
            while data := sock.recv(1 << 20):
                answer += data
        return answer

    # -- afterwards --------------------------------------------------------------------------
    def check(self) -> None:
        """The broker works, and nothing is left of the peer."""
        self.works()
        eventually(self._peers_are_gone, 5, 0.001)
        for queue in self.broker.snapshot()["queues"]:
            left = {key: queue[key] for key in ("messages_unacknowledged", "consumers")}
            assert not any(left.values()), queue
            assert not queue["exclusive"], queue
        self.broker.delete_vhost(VHOST)
        self.broker.add_vhost(VHOST)
        snapshot = self.broker.snapshot()
        assert [queue["name"] for queue in snapshot["queues"]] == [self._queue]
        assert snapshot["held_bytes"] == 0
        problems = self.problems.copy()
        self.problems.clear()
        assert not problems, "\n".join(problems)

    def works(self) -> None:
        """A connection that was open all the time publishes and gets."""
        self._count += 1
        body = b"%d" % self._count
        self._witness.publish(self._queue, body)
        message = self._witness.get(self._queue)
        assert message is not None
        assert message.body == body

    def close(self) -> None:
        self._witness.connection.close()

    def _peers_are_gone(self) -> bool:
        snapshot = self.broker.snapshot()
        return (snapshot["connections"], snapshot["channels"]) == (1, 1)


@contextlib.contextmanager
def arena(run: Callable[[Callable[[], Any]], None] = run) -> Iterator[Arena]:
    """A broker on a thread of its own; what its event loop or its log complain of is kept."""
    problems: list[str] = []
    started: Future[tuple[warren.Broker, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def main() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(lambda _, context: problems.append(_told(context)))
        async with warren.Broker(port=0) as broker:
            started.set_result((broker, loop, stop))
            await stop.wait()

    thread = threading.Thread(target=run, args=(main,))
    thread.start()
    broker, loop, stop = started.result(10)
    handler = Keep(problems)
    logging.getLogger().addHandler(handler)
    try:
        ring = Arena(broker, problems)
        yield ring
        ring.close()
    finally:
        logging.getLogger().removeHandler(handler)
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def run_on_plain_asyncio(main: Callable[[], Any]) -> None:
    """Where uvloop is not there."""
    asyncio.run(main())


class Keep(logging.Handler):
    """Keeps what is an error or worse."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._problems = problems

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._problems.append(f"{record.name}: {record.getMessage()}: {error!r}")


def _told(context: dict[str, Any]) -> str:
    return f"event loop: {context.get('message')}: {context.get('exception')!r}"


# -- many examples -----------------------------------------------------------------------------
def fuzz(strategy: st.SearchStrategy[Any], test: Callable[[Any], None], share: float) -> None:
    """Try examples in rounds until this test's share of the time is used up.

    Round n has seed n: a run with more time goes on where a shorter one ended.
    """
    deadline = time.monotonic() + SECONDS * share
    number = 0
    while number == 0 or time.monotonic() < deadline:
        seed(number)(_round(strategy, test))()
        number += 1


def _round(strategy: st.SearchStrategy[Any], test: Callable[[Any], None]) -> Callable[[], None]:
    @settings(
        max_examples=50,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(strategy)
    def examples(example: Any) -> None:
        test(example)

    return examples


def memory_bytes() -> int:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


# -- words ---------------------------------------------------------------------------------------
def method(value: Any, channel: int = 1) -> bytes:
    return pika.frame.Method(channel, value).marshal()


def header(size: int, channel: int = 1, **properties: Any) -> bytes:
    return pika.frame.Header(channel, size, spec.BasicProperties(**properties)).marshal()


def body(data: bytes, channel: int = 1) -> bytes:
    return pika.frame.Body(channel, data).marshal()


def raw(kind: int, channel: int, payload: bytes, size: int | None = None) -> bytes:
    """A frame; ``size`` may lie."""
    head = struct.pack(">BHI", kind, channel, len(payload) if size is None else size)
    return head + payload + b"\xce"


CAPABILITIES = {
    "publisher_confirms": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}
#: A handshake, step by step, and a channel.
HANDSHAKE = [
    b"AMQP\x00\x00\x09\x01",
    method(
        spec.Connection.StartOk({"capabilities": CAPABILITIES}, "PLAIN", "\0guest\0guest", "en_US"),
        0,
    ),
    method(spec.Connection.TuneOk(2047, 131072, 0), 0),
    method(spec.Connection.Open(VHOST), 0),
    method(spec.Channel.Open()),
]


def publish(
    key: str,
    data: bytes,
    channel: int = 1,
    *,
    exchange: str = "",
    mandatory: bool = False,
    **properties: Any,
) -> bytes:
    octets = method(
        spec.Basic.Publish(exchange=exchange, routing_key=key, mandatory=mandatory), channel
    )
    octets += header(len(data), channel, **properties)
    for at in range(0, len(data), 9):
        octets += body(data[at : at + 9], channel)
    return octets


#: A conversation that touches most of what a broker does, frame by frame.
CONVERSATION = [
    *HANDSHAKE,
    method(spec.Confirm.Select()),
    method(spec.Exchange.Declare(exchange="topics", type="topic", auto_delete=True)),
    method(spec.Queue.Declare(queue="mine", exclusive=True, arguments={"x-max-priority": 5})),
    method(
        spec.Queue.Declare(
            queue="short",
            auto_delete=True,
            arguments={
                "x-message-ttl": 60000,
                "x-max-length": 2,
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": "mine",
            },
        )
    ),
    method(spec.Queue.Bind(queue="short", exchange="topics", routing_key="a.*")),
    method(spec.Basic.Qos(prefetch_count=2)),
    method(spec.Basic.Consume(queue="mine", consumer_tag="c")),
    publish("a.b", b"one", exchange="topics", priority=3, headers={"n": 1, "CC": ["mine"]}),
    publish("short", b"a body in several frames", expiration="60000"),
    publish("short", b"x"),
    method(spec.Channel.Open(), 2),
    publish("mine", b"y", 2, delivery_mode=2, user_id="guest"),
    method(spec.Basic.Get(queue="short"), 2),
    method(spec.Basic.Nack(1, False, True), 2),
    method(spec.Basic.Ack(1, False)),
    b"\x08\x00\x00\x00\x00\x00\x00\xce",
    method(spec.Basic.Reject(2, False)),
    method(spec.Tx.Select(), 2),
    publish("mine", b"z", 2),
    method(spec.Tx.Rollback(), 2),
    method(spec.Basic.Cancel("c")),
    method(spec.Queue.Purge(queue="mine")),
    method(spec.Channel.Close(200, "bye", 0, 0), 2),
    method(spec.Connection.Close(200, "bye", 0, 0), 0),
]


def read_frames(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Kind, channel and payload of each whole frame: the broker itself makes no mistakes."""
    at = 0
    while len(data) - at >= 8:
        kind, channel, size = struct.unpack_from(">BHI", data, at)
        stop = at + 7 + size
        assert kind in (1, 2, 3, 8), data[at : at + 40]
        if stop >= len(data):
            return  # cut off by the end of the connection
        assert data[stop] == 0xCE, data[at : stop + 1]
        yield kind, channel, data[at + 7 : stop]
        at = stop + 1


def split(data: bytes, chance: random.Random, pieces: int) -> list[bytes]:
    """The same bytes, cut at random."""
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(pieces - 1))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
