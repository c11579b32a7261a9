"""What the proof of exactly once reads from and kills: warren, a RabbitMQ, three of them."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from pathlib import Path

from tests.spark.exactly_once_load import CLASSIC, QUORUM
from tests.support import guard, rabbitmq
from tests.support.process import BrokerProcess
from tests.support.rabbitmq import Node
from tests.support.servers import Run

#: A node that shares two cores with Spark and publishers takes its time.
_READY_S = 180.0


class Target(ABC):
    """A broker, or several that are one, with durable queues."""

    #: What ``kill`` ends.
    kind = "broker"
    #: What its queues are like, in turn.
    queues = CLASSIC

    @abstractmethod
    def start(self) -> None: ...

    @property
    @abstractmethod
    def urls(self) -> list[str]:
        """Of all its nodes, dead or alive: always the same."""

    @abstractmethod
    def aim(self, choice: random.Random) -> set[int]:
        """Choose what ``kill`` ends: its processes."""

    @abstractmethod
    def kill(self) -> None:
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

    def aim(self, choice: random.Random) -> set[int]:
        return {self._process.pid}

    def kill(self) -> None:
        port = self._process.url.rstrip("/").rpartition(":")[2]
        self._process.kill()
        self._process.start("--port", port)

    def end(self) -> None:
        self._process.kill()


class RabbitMQ(Target):
    """A private RabbitMQ node with classic queues."""

    def __init__(self, folder: Path) -> None:
        self._nodes: list[Node] = []
        self._victim: Node | None = None

    def start(self) -> None:
        self._nodes = [rabbitmq.restartable()]

    @property
    def urls(self) -> list[str]:
        return [node.url for node in self._nodes]

    def aim(self, choice: random.Random) -> set[int]:
        self._victim = choice.choice(self._nodes)
        return guard.processes(
            **{guard.SERVER: str(Run.current().folder), "RABBITMQ_NODENAME": self._victim.name}
        )

    def kill(self) -> None:
        victim = self._victim
        assert victim is not None
        victim.kill()
        victim.start()
        victim.wait_ready(_READY_S)


class RabbitMQCluster(RabbitMQ):
    """Three nodes with quorum queues, one killed at a time: the other two go on meanwhile."""

    kind = "node"
    queues = QUORUM

    def start(self) -> None:
        self._nodes = rabbitmq.cluster()


TARGETS: dict[str, type[Warren | RabbitMQ]] = {
    "warren": Warren,
    "rabbitmq": RabbitMQ,
    "rabbitmq-cluster": RabbitMQCluster,
}
