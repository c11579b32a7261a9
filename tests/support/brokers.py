"""The brokers that a contract test runs on: what it may do to them besides speaking AMQP.

``warren`` is ours, in a thread of the test process; ``durable`` is the same with a data folder.
``rabbitmq`` is a real RabbitMQ, started by the run (see ``rabbitmq.py``) or, with
``WARREN_TEST_RABBITMQ`` set, one that is running already.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
import socket
import subprocess
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.support import rabbitmq
from tests.support.eventually import eventually

NAMES = ("warren", "durable", "rabbitmq")


class ApiError(Exception):
    """The management HTTP API said no."""

    def __init__(self, call: str, code: int, body: bytes) -> None:
        super().__init__(call, code, body)
        self.code = code


class TestBroker(ABC):
    """A running broker as tests see it."""

    __test__ = False  # not a test class, whatever its name says
    name: str
    #: Where the management HTTP API is.
    management: str
    alarmed = False

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "127.0.0.1", parts.port or 5672
        self.url = f"amqp://guest:guest@{self.host}:{self.port}/"

    def __repr__(self) -> str:
        return f"<{self.name} at {self.url}>"

    @abstractmethod
    def add_vhost(self, name: str) -> None:
        """Make a vhost in which guest may do everything."""

    @abstractmethod
    def delete_vhost(self, name: str) -> None: ...

    @abstractmethod
    def add_user(self, name: str, password: str | None, tags: str = "", **more: Any) -> None:
        """Make or change a user; ``more`` as in the HTTP API: password_hash, hashing_algorithm."""

    @abstractmethod
    def delete_user(self, name: str) -> None: ...

    @abstractmethod
    def set_permissions(
        self, user: str, vhost: str, configure: str = ".*", write: str = ".*", read: str = ".*"
    ) -> None: ...

    @abstractmethod
    def clear_permissions(self, user: str, vhost: str) -> None: ...

    @abstractmethod
    def set_topic_permissions(
        self, user: str, vhost: str, exchange: str, write: str, read: str
    ) -> None: ...

    @abstractmethod
    def set_limit(self, kind: str, name: str, limit: str, value: int) -> None:
        """``kind`` is "user" or "vhost"."""

    @abstractmethod
    def close_connections(self, reason: str) -> None:
        """Close every connection of this test process, as an administrator does."""

    def memory_alarm(self, on: bool) -> None:
        """Raise or clear the memory alarm; when this returns it is so."""
        self._memory_alarm(on)
        self.alarmed = on

    @abstractmethod
    def _memory_alarm(self, on: bool) -> None: ...


class WarrenBroker(TestBroker):
    name = "warren"

    def __init__(self, broker: Any) -> None:
        super().__init__(broker.url)
        self.broker = broker
        self.management = broker.management_url

    def add_vhost(self, name: str) -> None:
        self.broker.add_vhost(name)

    def delete_vhost(self, name: str) -> None:
        self.broker.delete_vhost(name)

    def add_user(self, name: str, password: str | None, tags: str = "", **more: Any) -> None:
        if "hashing_algorithm" in more:
            more["hashing"] = more.pop("hashing_algorithm")
        self._admin("put_user", name, password=password, tags=tags, **more)

    def delete_user(self, name: str) -> None:
        self._admin("delete_user", name)

    def set_permissions(
        self, user: str, vhost: str, configure: str = ".*", write: str = ".*", read: str = ".*"
    ) -> None:
        self._admin("set_permissions", user, vhost, configure, write, read)

    def clear_permissions(self, user: str, vhost: str) -> None:
        self._admin("clear_permissions", user, vhost)

    def set_topic_permissions(
        self, user: str, vhost: str, exchange: str, write: str, read: str
    ) -> None:
        self._admin("set_topic_permissions", user, vhost, exchange, write, read)

    def set_limit(self, kind: str, name: str, limit: str, value: int) -> None:
        self._admin(f"set_{kind}_limit", name, limit, value)

    def _admin(self, act: str, *arguments: Any, **options: Any) -> Any:
        return self.broker.administer(lambda admin: getattr(admin, act)(*arguments, **options))

    def close_connections(self, reason: str) -> None:
        self.broker.close_connections(reason)

    def _memory_alarm(self, on: bool) -> None:
        self.broker.memory_alarm(on)


class RabbitBroker(TestBroker):
    name = "rabbitmq"

    def __init__(self, url: str, management: str, evaluate: Callable[[str], str]) -> None:
        super().__init__(url)
        self.management = management.rstrip("/")
        self.evaluate = evaluate
        """Evaluates an Erlang expression on the broker's node."""

    def add_vhost(self, name: str) -> None:
        self.api("PUT", f"vhosts/{quote(name, safe='')}")
        self.api(
            "PUT",
            f"permissions/{quote(name, safe='')}/guest",
            {"configure": ".*", "write": ".*", "read": ".*"},
        )

    def delete_vhost(self, name: str) -> None:
        self.api("DELETE", f"vhosts/{quote(name, safe='')}")

    def add_user(self, name: str, password: str | None, tags: str = "", **more: Any) -> None:
        body = {"tags": tags, **more}
        if password is not None:
            body["password"] = password
        self.api("PUT", f"users/{quote(name, safe='')}", body)

    def delete_user(self, name: str) -> None:
        self.api("DELETE", f"users/{quote(name, safe='')}")

    def set_permissions(
        self, user: str, vhost: str, configure: str = ".*", write: str = ".*", read: str = ".*"
    ) -> None:
        body = {"configure": configure, "write": write, "read": read}
        self.api("PUT", f"permissions/{quote(vhost, safe='')}/{quote(user, safe='')}", body)

    def clear_permissions(self, user: str, vhost: str) -> None:
        self.api("DELETE", f"permissions/{quote(vhost, safe='')}/{quote(user, safe='')}")

    def set_topic_permissions(
        self, user: str, vhost: str, exchange: str, write: str, read: str
    ) -> None:
        body = {"exchange": exchange, "write": write, "read": read}
        self.api("PUT", f"topic-permissions/{quote(vhost, safe='')}/{quote(user, safe='')}", body)

    def set_limit(self, kind: str, name: str, limit: str, value: int) -> None:
        self.api("PUT", f"{kind}-limits/{quote(name, safe='')}/{limit}", {"value": value})

    def close_connections(self, reason: str) -> None:
        # The node may be shared by test processes, so only this one's connections go. The
        # HTTP API learns of a connection up to a statistics interval after its client does.
        host = socket.gethostbyname(self.host)
        for port in _own_ports(to=self.port):
            connection = f"{host}:{port} -> {host}:{self.port}"
            path = f"connections/{quote(connection)}"
            eventually(partial(self._found, "DELETE", path, reason=reason))

    def _memory_alarm(self, on: bool) -> None:
        alarm = "{resource_limit, memory, node()}"
        call = f"set_alarm({{{alarm}, []}})" if on else f"clear_alarm({alarm})"
        self.evaluate(f"rabbit_alarm:{call}.")

    def _found(self, method: str, path: str, *, reason: str) -> bool:
        try:
            self.api(method, path, reason=reason)
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        return True

    def api(self, method: str, path: str, body: Any = None, *, reason: str | None = None) -> Any:
        """Call the management HTTP API; the answer's JSON, or None where it has none."""
        request = urllib.request.Request(
            f"{self.management}/api/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": "Basic " + base64.b64encode(b"guest:guest").decode(),
                "Content-Type": "application/json",
                **({"X-Reason": reason} if reason is not None else {}),
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                data = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise ApiError(f"{method} {path}", error.code, error.read()) from None
        return json.loads(data) if data else None


def _own_ports(to: int) -> set[int]:
    """Local ports of this process's open TCP connections to a local port."""
    sockets = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            sockets.add(os.readlink(entry))
        except FileNotFoundError:  # the folder's own descriptor, closed by now
            continue
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            _, local, remote, state, *rest = line.split()
            established = state == "01" and f"socket:[{rest[5]}]" in sockets
            if established and int(remote.rpartition(":")[2], 16) == to:
                ports.add(int(local.rpartition(":")[2], 16))
    return ports


@contextmanager
def running_warren(data_dir: str = "") -> Iterator[TestBroker]:
    import warren

    with warren.Broker.in_thread(port=0, management_port=0, data_dir=data_dir) as broker:
        yield WarrenBroker(broker)


@contextmanager
def running_durable() -> Iterator[TestBroker]:
    with TemporaryDirectory() as folder, running_warren(folder) as broker:
        yield broker


@contextmanager
def running_rabbitmq() -> Iterator[TestBroker]:
    yield given_rabbitmq() or from_node(rabbitmq.node())


def from_node(node: rabbitmq.Node) -> RabbitBroker:
    return RabbitBroker(node.url, node.management, node.evaluate)


def given_rabbitmq() -> RabbitBroker | None:
    """The RabbitMQ that the environment names, if it names one; xdist's workers share none."""
    url = os.environ.get("WARREN_TEST_RABBITMQ")
    if not url or "PYTEST_XDIST_WORKER" in os.environ:
        return None
    parts = urlsplit(url)
    management = os.environ.get(
        "WARREN_TEST_RABBITMQ_MANAGEMENT",
        f"http://{parts.hostname}:{(parts.port or 5672) + 10000}",
    )
    return RabbitBroker(url, management, _rabbitmqctl_eval)


def _rabbitmqctl_eval(expression: str) -> str:
    ctl = os.environ.get("WARREN_TEST_RABBITMQCTL")
    if not ctl:
        pytest.skip("WARREN_TEST_RABBITMQCTL does not say how to call rabbitmqctl for the node")
    command = [*shlex.split(ctl), "eval", expression]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
