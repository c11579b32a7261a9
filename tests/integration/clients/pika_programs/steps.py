"""What the programs have in common."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel

from tests.integration.clients.programs import DEADLINE_S, Consumer, Process

Name = Callable[[str], str]
Start = Callable[[Callable[[BlockingChannel], Any]], Consumer]
StartProcess = Callable[..., Process]
Connect = Callable[..., pika.BlockingConnection]


class Inbox:
    """What a consumer got, in the order in which it came."""

    def __init__(self) -> None:
        self._got: queue.Queue[tuple[Any, pika.BasicProperties, bytes]] = queue.Queue()

    def callback(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self._got.put((method, properties, body))

    def acking_callback(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        channel.basic_ack(method.delivery_tag)
        self.callback(channel, method, properties, body)

    def next(self) -> bytes:
        return self._got.get(timeout=DEADLINE_S)[2]

    def take(self, count: int) -> list[bytes]:
        return [self.next() for _ in range(count)]

    def next_routing_key(self) -> str:
        return self._got.get(timeout=DEADLINE_S)[0].routing_key

    @property
    def empty(self) -> bool:
        return self._got.empty()
