"""What the proof of exactly once reads from and kills: warren, a RabbitMQ, three of them."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from tests.support import rabbitmq
from tests.support.process import BrokerProcess
from tests.support.rabbitmq import Node

#: A node that shares two cores with Spark and publishers takes its time.
_READY_S = 180.0


class Target(ABC):
    """A broker, or several that are one, with durable queues."""

    #: What ``kill`` ends.
    kind = "broker"
    #: How its queues are declared.
    arguments: dict[str, Any] = {}

    @abstractmethod
    def start(self) -> None: ...

    @property
    @abstractmethod
    def urls(self) -> list[str]:
        """Of all its nodes, dead or alive: always the same."""

    @abstractmethod
    def kill(self, choice: random.Random) -> None:
        """kill -9, and start it again; returns when it can be used."""

    def end(self) -> None:
        """End what the run does not end by itself."""
        return


class Warren(Target):
    """``warren broker`` with a data folder."""

    def __init__(self, folder: Path) -> None:
        self._process = BrokerProcess(folder / "broker")

    def start(self) -> None:
        self._process.start()

    @property
    def urls(self) -> list[str]:
        return [self._process.url]

    def kill(self, choice: random.Random) -> None:
        port = self._process.url.rstrip("/").rpartition(":")[2]
        self._process.kill()
        self._process.start("--port", port)

    def end(self) -> None:
        self._process.kill()


class RabbitMQ(Target):
    """A private RabbitMQ node with classic queues."""

    def __init__(self, folder: Path) -> None:
        self._nodes: list[Node] = []

    def start(self) -> None:
        self._nodes = [rabbitmq.restartable()]

    @property
    def urls(self) -> list[str]:
        return [node.url for node in self._nodes]

    def kill(self, choice: random.Random) -> None:
        victim = choice.choice(self._nodes)
        victim.kill()
        victim.start()
        victim.wait_ready(_READY_S)


class RabbitMQCluster(RabbitMQ):
    """Three nodes with quorum queues, one killed at a time: the other two go on meanwhile."""

    kind = "node"
    arguments = {"x-queue-type": "quorum", "x-single-active-consumer": True}

    def start(self) -> None:
        self._nodes = rabbitmq.cluster()


TARGETS: dict[str, type[Warren | RabbitMQ]] = {
    "warren": Warren,
    "rabbitmq": RabbitMQ,
    "rabbitmq-cluster": RabbitMQCluster,
}
