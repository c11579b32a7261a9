"""Messages as a client gets them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warren.amqp.properties import Properties, decode_properties
from warren.amqp.tables import text

if TYPE_CHECKING:
    from warren.client.consumer import Consumer
    from warren.client.lane import Lane


class Delivery:
    """A message from a queue, with its delivery tag.

    ``ack``, ``nack`` and ``reject`` may be called from any thread and never wait. They return
    False when there is nothing left to settle: the delivery was settled before, or its channel is
    gone (then the broker gives the message to somebody else). They never reach a channel other
    than the one the message came on.
    """

    _properties: Properties
    #: How many messages are left in the queue; of one that was got.
    message_count: int
    __slots__ = (
        "_properties",
        "_properties_data",
        "_route",
        "body",
        "consumer",
        "delivery_tag",
        "lane",
        "message_count",
        "redelivered",
    )

    def __init__(
        self,
        lane: Lane,
        consumer: Consumer | None,
        delivery_tag: int,
        redelivered: bool,
        route: bytes,
        properties: bytes,
        body: bytes,
    ) -> None:
        self.lane = lane
        #: The consumer it came to; None for one that was got.
        self.consumer = consumer
        self.delivery_tag = delivery_tag
        self.redelivered = redelivered
        self.body = body
        self._route = route
        self._properties_data = properties

    @property
    def properties(self) -> Properties:
        """Read when first asked for."""
        try:
            return self._properties
        except AttributeError:
            self._properties = decode_properties(self._properties_data)
            return self._properties

    @property
    def headers(self) -> Mapping[str, Any]:
        return self.properties.headers or {}

    @property
    def exchange(self) -> str:
        return text(self._route[1 : 1 + self._route[0]])

    @property
    def routing_key(self) -> str:
        return text(self._route[2 + self._route[0] :])

    @property
    def queue(self) -> str:
        """The queue that was consumed; empty for a message that was got."""
        return self.consumer.queue if self.consumer is not None else ""

    @property
    def consumer_tag(self) -> str:
        return self.consumer.tag if self.consumer is not None else ""

    @property
    def generation(self) -> int:
        """Grows with each connection that is made: of which of them the delivery is."""
        return self.lane.generation

    @property
    def stale(self) -> bool:
        """True when the channel it came on is gone: the message will come again, to somebody.

        Also when this process was stopped for so long that the broker may have given it up.
        """
        return not self.lane.open or self.lane.link.overslept(time.monotonic())

    def ack(self) -> bool:
        """The message is done."""
        return self.lane.ack(self.delivery_tag)

    def nack(self, *, requeue: bool = True) -> bool:
        """The message is not done: back to the queue, or dead-lettered."""
        return self.lane.nack(self.delivery_tag, requeue)

    def reject(self, *, requeue: bool = False) -> bool:
        """As ``nack``, by basic.reject: what counts against a delivery limit in newer RabbitMQ."""
        return self.lane.reject(self.delivery_tag, requeue)

    def __repr__(self) -> str:
        return (
            f"<delivery {self.delivery_tag} from {self.queue or 'a queue'}, "
            f"{len(self.body)} octets>"
        )


@dataclass(frozen=True)
class Returned:
    """A mandatory message that no queue would have got."""

    code: int
    text: str
    exchange: str
    routing_key: str
    properties: Properties
    body: bytes


@dataclass(frozen=True)
class QueueInfo:
    """What queue.declare-ok tells."""

    name: str
    messages: int
    consumers: int
