"""Numbers into queues for the proof of exactly once; and processes of a job, to be killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pika import frame, spec

from tests.support.bulk import Bulk
from tests.support.wire import Closed, Connection
from tests.support.wire_frames import TIMEOUT_S, Gone

#: An AssertionError is Bulk's word for a nack: a quorum queue whose leader is dead may send one.
OVER = (Gone, Closed, OSError, TimeoutError, AssertionError)


#: What comes behind the number in the bodies of heavy messages.
_HEAVY = b" " * (100 << 10)


@dataclass(frozen=True)
class Kind:
    """What a queue is like, and its messages."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    #: Messages have ids, and nothing else tells them apart.
    ids: bool = False
    #: One message of so many is heavy; 0: none.
    heavy: int = 0
    #: How many priorities messages have.
    priorities: int = 0

    def body(self, number: int) -> bytes:
        number = 0 if self.ids else number
        return b"%08d" % number + (_HEAVY if self.heavy and not number % self.heavy else b"")

    def priority(self, number: int) -> int:
        return number // 3 % self.priorities if self.priorities else 0

    def properties(self, number: int) -> spec.BasicProperties:
        return spec.BasicProperties(
            delivery_mode=2,
            message_id=f"{number:08d}" if self.ids else None,
            priority=self.priority(number) if self.priorities else None,
        )


ALONE = {"x-single-active-consumer": True}
CLASSIC = [
    Kind("plain"),
    Kind("alone", ALONE),
    Kind("ids", ids=True),
    Kind("heavy", heavy=40),
    Kind("priority", {"x-max-priority": 5}, priorities=3),
]
_QUORUM = {"x-queue-type": "quorum", **ALONE}
QUORUM = [Kind("plain", _QUORUM), Kind("ids", _QUORUM, ids=True), Kind("heavy", _QUORUM, heavy=40)]


@dataclass
class Source:
    """What one queue's publisher knows."""

    queue: str
    kind: Kind
    sent: int = 0
    confirmed: set[int] = field(default_factory=set)


class Link(Bulk):
    """A connection for messages of any kind: RabbitMQ confirms a heavy one behind later ones."""

    def publish_numbers(self, source: Source, numbers: Sequence[int]) -> None:
        """Publish, and wait for all confirms."""
        if not self.confirming:
            self.confirm()
        method = frame.Method(1, spec.Basic.Publish(exchange="", routing_key=source.queue))
        parts, head = [], method.marshal()
        for number in numbers:
            body = source.kind.body(number)
            header = frame.Header(1, len(body), source.kind.properties(number))
            parts += (head, header.marshal(), frame.Body(1, body).marshal())
        self._waiting = set(range(self.published + 1, self.published + len(numbers) + 1))
        self.published += len(numbers)
        self.connection.wire.send(b"".join(parts))
        deadline = time.monotonic() + TIMEOUT_S
        while self._waiting:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self._waiting)} messages were not confirmed")
            self.poll_confirms(TIMEOUT_S)

    def _note_confirm(self, kind: int, payload: bytes) -> None:
        class_id, method_id = struct.unpack_from(">HH", payload)
        if kind == 1 and (class_id, method_id) == (60, 80):
            tag, multiple = struct.unpack_from(">Q?", payload, 4)
            upto = range(min(self._waiting, default=tag), tag) if multiple else ()
            self._waiting.difference_update((tag, *upto))
        else:
            assert kind == 8 or class_id == 10, (class_id, method_id)  # connection.blocked


class Publisher(threading.Thread):
    """Numbers to one queue at a steady pace, as long as there is ``room``; after a broken
    connection it goes on with new ones: what was not confirmed may be in the queue or not."""

    def __init__(
        self, source: Source, urls: Sequence[str], stop: threading.Event, room: Callable[[], bool]
    ) -> None:
        super().__init__(name=f"publish {source.queue}", daemon=True)
        self.source, self._urls, self._halt, self._room = source, urls, stop, room
        self._random = random.Random(source.queue)

    def run(self) -> None:
        while not self._halt.is_set():
            with contextlib.suppress(*OVER):
                self._publish(Link(self._random.choice(self._urls)))
            self._halt.wait(0.1)

    def _publish(self, link: Link) -> None:
        try:
            while not self._halt.is_set():
                if self._room():
                    self.publish(link, 50)
                self._halt.wait(0.1)
        finally:
            link.close()

    def publish(self, link: Link, count: int) -> None:
        numbers = range(self.source.sent, self.source.sent + count)
        self.source.sent += count
        link.publish_numbers(self.source, numbers)
        self.source.confirmed.update(numbers)

    def publish_one(self) -> None:
        """One more, when the thread is done."""
        link = Link(self._random.choice(self._urls))
        self.publish(link, 1)
        link.close()


def connected(urls: Sequence[str]) -> Connection:
    """To the first broker that answers."""
    for url in urls[:-1]:
        with contextlib.suppress(*OVER):
            return Connection.open(url)
    return Connection.open(urls[-1])


# -- processes -----------------------------------------------------------------------------------
def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def python_workers(pids: set[int]) -> list[int]:
    """The children of Spark's daemon: they run tasks."""
    daemons = {pid for pid in pids if b"pyspark.daemon" in command(pid)}
    return sorted(pid for pid in daemons if parent(pid) in daemons)


def executors(pids: set[int]) -> list[int]:
    return sorted(pid for pid in pids if b"CoarseGrainedExecutorBackend" in command(pid))


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def kill(pid: int, how: signal.Signals = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)
