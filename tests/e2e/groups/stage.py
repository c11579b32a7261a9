"""Brokers, coordinators and networks that a scenario may take away and bring back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from tests.e2e.groups.arena import Arena, World, arena
from tests.support import brokers, rabbitmq
from tests.support.etcd_process import EtcdProcess, etcd_process
from tests.support.process import BrokerProcess
from tests.support.proxy import Proxy
from tests.support.servers import free_ports


class Switch(Protocol):
    """Something that can be killed and started again, at the same address."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


class RabbitNode:
    """A RabbitMQ node of our own."""

    def __init__(self, node: rabbitmq.Node) -> None:
        self.node = node

    def kill(self) -> None:
        self.node.kill()

    def start(self) -> None:
        self.node.start()
        self.node.wait_ready()


@dataclass
class Stage:
    """All that a scenario has."""

    ring: Arena
    #: The broker's nodes, if they may be killed.
    nodes: list[Switch]
    etcd: EtcdProcess | None
    #: In front of the broker, for members that are started with its URL.
    proxy: Proxy


@contextmanager
def stage(
    folder: Path, broker: str, coordinator: str, *, queues: int, seed: int, own: bool = False
) -> Iterator[Stage]:
    """``broker`` is warren, rabbitmq or cluster; ``own``: one that may be killed."""
    with ExitStack() as stack:
        url, management, nodes = _broker(folder, broker, own, stack)
        etcd = None
        if coordinator == "etcd":
            etcd = stack.enter_context(etcd_process(folder / "etcd"))
            coordinator = f"{etcd.url}?ttl_s=5&timeout_s=2"
        arguments: dict[str, object] = {}
        if broker == "cluster":
            arguments = {"x-queue-type": "quorum", "x-single-active-consumer": True}
        world = World(url, coordinator, management, arguments)
        first = urlsplit(url.split(",")[0])
        proxy = stack.enter_context(Proxy(first.hostname or "127.0.0.1", first.port or 5672))
        ring = stack.enter_context(arena(folder / "arena", world, queues, seed=seed))
        yield Stage(ring, nodes, etcd, proxy)


def _broker(
    folder: Path, broker: str, own: bool, stack: ExitStack
) -> tuple[str, str | None, list[Switch]]:
    if broker == "warren":
        port, management_port = free_ports(2)
        options = ("--port", str(port), "--management-port", str(management_port))
        process = BrokerProcess(folder / "broker", *options)
        stack.callback(process.kill)
        process.start()
        return process.url, f"http://guest:guest@127.0.0.1:{management_port}", [process]
    if broker == "cluster":
        nodes = rabbitmq.cluster()
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in nodes)
        switches: list[Switch] = [RabbitNode(node) for node in nodes]
        return f"amqp://guest:guest@{hosts}/", nodes[0].management, switches
    given = None if own else brokers.given_rabbitmq()
    if given is not None:
        return given.url, given.management, []
    node = rabbitmq.restartable() if own else rabbitmq.node()
    return node.url, node.management, [RabbitNode(node)] if own else []
