"""An answer of the HTTP API to a change means that the change is on disk."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import warren
from tests.support.eventually import eventually
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
        for job in self.held:
            self._commit(*job)


@pytest.fixture
def disk(broker: warren.Broker) -> Iterator[HeldDisk]:
    disk = HeldDisk(broker)
    yield disk
    disk.let_go()


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
