"""One connection with one channel of ``warren.client``, in the few words that the scenes need.

Nothing in it knows warren's broker: it talks to any RabbitMQ.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar

from warren.amqp import methods
from warren.amqp.client_hot import encode_ack, encode_message, publish_frame
from warren.amqp.methods import Method
from warren.amqp.properties import Properties, decode_properties, encode_properties
from warren.amqp.tables import Table
from warren.client.blocking import BlockingChannel, BlockingConnection
from warren.client.endpoint import Endpoint

A = TypeVar("A", bound=Method)

#: The number of a connection's first channel.
CHANNEL = 1
TIMEOUT_S = 15.0
_PLAIN = Properties()


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that came: delivered, or returned and then without a consumer."""

    consumer: str
    tag: int
    redelivered: bool
    raw_properties: bytes
    body: bytes

    @property
    def properties(self) -> Properties:
        return decode_properties(self.raw_properties)

    @property
    def headers(self) -> Mapping[str, Any]:
        return self.properties.headers or {}


class _Channel(BlockingChannel):
    """Keeps what comes until somebody asks."""

    def __init__(self, connection: BlockingConnection) -> None:
        super().__init__(connection)
        self.inbox: deque[Delivery] = deque()
        #: Delivery tags of publishes, in their order.
        self.unconfirmed: dict[int, None] = {}
        self.nacked = 0

    def deliver(
        self,
        consumer_tag: bytes,
        delivery_tag: int,
        redelivered: bool,
        route: bytes,
        properties: bytes,
        body: bytes,
    ) -> None:
        consumer = consumer_tag.decode()
        self.inbox.append(Delivery(consumer, delivery_tag, redelivered, properties, body))

    def content(self, method: Method, properties: bytes, body: bytes) -> None:
        self.inbox.append(Delivery("", 0, False, properties, body))

    def confirm(self, delivery_tag: int, multiple: bool, ack: bool) -> None:
        tags = [delivery_tag]
        if multiple:
            first = next(iter(self.unconfirmed), delivery_tag)
            tags = [tag for tag in range(first, delivery_tag + 1) if tag in self.unconfirmed]
        for tag in tags:
            del self.unconfirmed[tag]
        self.nacked += 0 if ack else len(tags)


class Link:
    """An open connection and its channel. Messages that come wait in ``inbox``."""

    def __init__(self, url: str, name: str = "warren demo") -> None:
        # A scene may pause for as long as it likes: no heartbeats.
        self._connection = BlockingConnection(Endpoint.from_uri(url).but(heartbeat_s=0), name=name)
        self._published = 0
        self._confirms = False
        self.open_channel()

    def __enter__(self) -> Link:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._connection.close()
        else:
            self._connection.abandon()

    @property
    def server_properties(self) -> Mapping[str, Any]:
        return self._connection.session.server_properties

    @property
    def inbox(self) -> deque[Delivery]:
        return self._channel.inbox

    @property
    def nacked(self) -> int:
        return self._channel.nacked

    # -- asking ----------------------------------------------------------------------------------
    def call(self, method: Method, answer: type[A]) -> A:
        """Send a method and wait for its answer."""
        return self._channel.call(method, answer, TIMEOUT_S)

    def open_channel(self) -> None:
        """Open the channel; once more after a refusal closed it."""
        self._channel: _Channel = self._connection.channel(_Channel)

    def queue(self, name: str, **arguments: Any) -> int:
        """Declare a queue; ``x_max_length=5`` is x-max-length. Returns how many messages wait."""
        declare = methods.QueueDeclare(queue=name, arguments=_table(arguments))
        return self.call(declare, methods.QueueDeclareOk).message_count

    def delete(self, queue: str) -> int:
        """Delete a queue; returns how many messages were in it."""
        return self.call(methods.QueueDelete(queue=queue), methods.QueueDeleteOk).message_count

    def consume(
        self, queue: str, *, prefetch: int = 0, no_ack: bool = False, exclusive: bool = False
    ) -> None:
        """Consume under a tag that is the queue's name."""
        self.call(methods.BasicQos(prefetch_count=prefetch), methods.BasicQosOk)
        consume = methods.BasicConsume(
            queue=queue, consumer_tag=queue, no_ack=no_ack, exclusive=exclusive
        )
        self.call(consume, methods.BasicConsumeOk)

    # -- messages --------------------------------------------------------------------------------
    def confirms(self) -> None:
        """From now on the broker confirms what is published."""
        self.call(methods.ConfirmSelect(), methods.ConfirmSelectOk)
        self._confirms = True

    def publish(
        self,
        exchange: str,
        key: str,
        body: bytes,
        properties: Properties = _PLAIN,
        *,
        mandatory: bool = False,
    ) -> None:
        number, frame_max = self._channel.number, self._connection.session.frame_max
        method = publish_frame(number, exchange, key, mandatory=mandatory)
        message = encode_message(method, number, encode_properties(properties), body, frame_max)
        self.send_encoded(message, count=1)

    def send_encoded(self, messages: bytes, count: int) -> None:
        """Publish messages that are frames already."""
        first = self._published + 1
        self._published += count
        if self._confirms:
            self._channel.unconfirmed.update(dict.fromkeys(range(first, first + count)))
        self._connection.session.out.append(messages)
        self._connection.flush()

    def wait_confirmed(self, but: int = 0) -> None:
        """Return when everything published has been confirmed, or all but this many."""
        self._connection.wait(lambda: len(self._channel.unconfirmed) <= but, TIMEOUT_S)

    def ack(self, *deliveries: Delivery) -> None:
        """Acknowledge each of them."""
        number = self._channel.number
        acks = [encode_ack(number, each.tag, multiple=False) for each in deliveries]
        self._connection.session.out.extend(acks)
        self._connection.flush()

    def reject(self, delivery: Delivery) -> None:
        """Refuse a message for good: it is dead-lettered, if the queue says where."""
        self._channel.send(methods.BasicReject(delivery.tag, requeue=False))
        self._connection.flush()

    def next(self, timeout_s: float = TIMEOUT_S) -> Delivery | None:
        """The next message; None if none comes in time."""
        deadline = time.monotonic() + timeout_s
        while not self.inbox:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return None
            self._connection.pump(left_s)
        return self.inbox.popleft()

    def come(self, timeout_s: float = TIMEOUT_S) -> list[Delivery]:
        """The messages that are here, at least one; none if none comes in time."""
        first = self.next(timeout_s)
        if first is None:
            return []
        messages = [first, *self.inbox]
        self.inbox.clear()
        return messages


def _table(arguments: Mapping[str, Any]) -> Table:
    return Table({name.replace("_", "-"): value for name, value in arguments.items()})
