"""What is answered is on disk: nothing is said before the commit, over AMQP and over HTTP."""

from __future__ import annotations

import base64
import json
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pika import spec

import warren
from tests.support.eventually import eventually
from tests.support.wire import Channel, Connection
from warren.broker import journal
from warren.server import http

Ask = Callable[..., int]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[warren.Broker]:
    with warren.Broker.in_thread(data_dir=str(tmp_path / "data"), management_port=0) as broker:
        yield broker


@pytest.fixture
def ask(broker: warren.Broker) -> Ask:
    return lambda *arguments: request(broker.management_url, *arguments)


def request(url: str, method: str, path: str, body: Any = None) -> int:
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(f"{url}/api/{path}", data, method=method)
    asked.add_header("Authorization", f"Basic {base64.b64encode(b'guest:guest').decode()}")
    asked.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


class HeldDisk:
    """Keeps what the broker hands over until the test lets it go."""

    def __init__(self, broker: warren.Broker) -> None:
        journal = broker.core.journal
        assert journal is not None
        eventually(lambda: journal.idle)
        self._commit = journal.store.commit
        self.held: list[tuple[Any, Any]] = []
        journal.store.commit = lambda *job: self.held.append(job)  # type: ignore[method-assign]
        self._store = journal.store

    def let_go(self) -> None:
        self._store.commit = self._commit  # type: ignore[method-assign]
        held, self.held = self.held, []
        for job in held:
            self._commit(*job)


Hold = Callable[[], HeldDisk]


@pytest.fixture
def hold(broker: warren.Broker) -> Iterator[Hold]:
    """Takes hold of the disk; after the test it is let go in any case."""
    disks: list[HeldDisk] = []

    def hold() -> HeldDisk:
        disks.append(HeldDisk(broker))
        return disks[-1]

    yield hold
    for disk in disks:
        disk.let_go()


@pytest.fixture
def disk(hold: Hold) -> HeldDisk:
    return hold()


QUEUE = {"name": "q", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
CHANGES = [
    ("PUT", "queues/%2F/q", {"durable": True}),
    ("PUT", "exchanges/%2F/ex", {"type": "fanout", "durable": True}),
    ("PUT", "vhosts/other", None),
    ("PUT", "users/ann", {"password": "x", "tags": ""}),
    ("PUT", "permissions/%2F/guest", {"configure": "a", "write": "b", "read": "c"}),
    ("PUT", "policies/%2F/p", {"pattern": "^a", "definition": {"max-length": 5}}),
    ("POST", "definitions", {"queues": [QUEUE]}),
    ("DELETE", "users/guest", None),
]


@pytest.mark.parametrize("change", CHANGES, ids=[f"{method} {path}" for method, path, _ in CHANGES])
def test_a_change_is_answered_when_it_is_on_disk(ask: Ask, disk: HeldDisk, change: Any) -> None:
    with ThreadPoolExecutor(1) as pool:
        answer: Future[int] = pool.submit(ask, *change)
        try:
            eventually(lambda: disk.held)
            assert ask("GET", "overview") in (200, 401)  # who only looks does not wait
            assert not answer.done()
        finally:
            disk.let_go()
        assert answer.result(20) in (201, 204)


def test_a_change_that_does_not_get_to_the_disk_is_said_to_be_so(
    ask: Ask, disk: HeldDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "COMMIT_TIMEOUT_S", 0.05)
    assert ask("PUT", "queues/%2F/q", {"durable": True}) == 503
    assert ask("GET", "queues/%2F/q") == 200


def test_what_was_answered_is_there_after_a_kill(
    broker: warren.Broker, ask: Ask, tmp_path: Path
) -> None:
    for method, path, body in CHANGES[:-1]:
        assert ask(method, path, body) in (201, 204)
    (tmp_path / "killed").mkdir()
    with (
        closing(sqlite3.connect(tmp_path / "data/warren.db")) as live,
        closing(sqlite3.connect(tmp_path / "killed/warren.db")) as killed,
    ):
        live.backup(killed)  # what is committed this moment
    copy = str(tmp_path / "killed")
    with warren.Broker.in_thread(data_dir=copy, management_port=0) as found:
        for kind, name in (
            ("queues/%2F", "q"),
            ("exchanges/%2F", "ex"),
            ("vhosts", "other"),
            ("users", "ann"),
            ("policies/%2F", "p"),
        ):
            assert request(found.management_url, "GET", f"{kind}/{name}") == 200, name
        (guest,) = found.administer(lambda admin: admin.permissions("guest", "/"))
        assert (guest.configure, guest.write, guest.read) == ("a", "b", "c")


# -- over AMQP -----------------------------------------------------------------------------------
@pytest.fixture
def channel(broker: warren.Broker) -> Iterator[Channel]:
    connection = Connection.open(broker.url)
    channel = connection.channel()
    channel.declare("q", durable=True)
    yield channel
    connection.close()


def publish(channel: Channel) -> None:
    channel.publish("q", b"x", delivery_mode=2)


def test_a_confirm_waits_for_the_disk(channel: Channel, hold: Hold) -> None:
    channel.confirm()
    disk = hold()
    publish(channel)
    eventually(lambda: disk.held)
    assert channel.quiet()
    disk.let_go()
    assert channel.wait_confirms(1) == {1: "ack"}


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        (spec.Tx.Commit(), spec.Tx.CommitOk),
        (spec.Queue.Declare(queue="new", durable=True), spec.Queue.DeclareOk),
        (spec.Exchange.Declare(exchange="new", durable=True), spec.Exchange.DeclareOk),
        (spec.Queue.Bind(queue="q", exchange="amq.fanout"), spec.Queue.BindOk),
        (spec.Queue.Purge(queue="q"), spec.Queue.PurgeOk),
        (spec.Queue.Delete(queue="q"), spec.Queue.DeleteOk),
    ],
    ids=lambda value: getattr(value, "NAME", None),
)
def test_an_answer_waits_for_the_disk(
    channel: Channel, hold: Hold, method: Any, answer: Any
) -> None:
    if isinstance(method, spec.Tx.Commit):
        channel.call(spec.Tx.Select())
    elif isinstance(method, spec.Queue.Purge):
        channel.confirm()
        publish(channel)
        channel.wait_confirms(1)
    disk = hold()
    if isinstance(method, spec.Tx.Commit):
        publish(channel)
    channel.send(method)
    eventually(lambda: disk.held)
    assert channel.quiet()
    disk.let_go()
    channel.expect(answer)


def test_publishers_are_blocked_when_the_disk_can_not_follow(
    channel: Channel, broker: warren.Broker, hold: Hold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MOST_WAITING", 10_000)
    channel.confirm()
    disk = hold()
    publish(channel)  # it is being written
    eventually(lambda: disk.held)
    channel.publish("q", bytes(20_000), delivery_mode=2)  # it waits
    eventually(lambda: broker.core.alarm)
    channel.publish("q", b"one too many", delivery_mode=2)
    assert channel.connection.expect(spec.Connection.Blocked).reason == "low on disk"
    disk.let_go()
    channel.connection.expect(spec.Connection.Unblocked)
    channel.wait_confirms(3)
