"""Reading a stream in bulk, from an offset on."""

from __future__ import annotations

from warren.amqp import methods as m
from warren.amqp.properties import split_properties
from warren.amqp.tables import Table, decode_table
from warren.client.blocking import BlockingChannel, BlockingConnection
from warren.client.blocking_reader import Deliveries
from warren.errors import Refusal, WarrenError


class StreamTap(BlockingChannel):
    """Reads a stream from an offset on; nothing is taken off it."""

    def __init__(self, connection: BlockingConnection) -> None:
        super().__init__(connection)
        self.took = Deliveries()
        #: The offset of each delivery.
        self.offsets: list[int] = []
        self.refusal: WarrenError | None = None
        self._window = 0
        self._to_ack = 0

    def start(self, queue: str, offset: int | str, window: int) -> None:
        """``offset``: a number, ``first``, ``last`` (the last chunk) or ``next``."""
        self._window = window
        where = Table({"x-stream-offset": offset})
        if isinstance(offset, int):
            where.kinds["x-stream-offset"] = "long"
        self.send(m.BasicQos(prefetch_count=window))
        self.send(m.BasicConsume(queue=queue, consumer_tag="warren", arguments=where))

    def deliver(
        self,
        consumer_tag: bytes,
        delivery_tag: int,
        redelivered: bool,
        route: bytes,
        properties: bytes,
        body: bytes,
    ) -> None:
        self._keep(route, properties, body)
        self._to_ack += 1
        if self._to_ack * 2 >= self._window:
            self._to_ack = 0
            self.send(m.BasicAck(delivery_tag=delivery_tag, multiple=True))

    def _keep(self, route: bytes, properties: bytes, body: bytes) -> None:
        took = self.took
        took.routes.append(route)
        took.properties.append(properties)
        took.bodies.append(body)
        took.body_bytes += len(body)
        took.property_bytes += len(properties)
        self.offsets.append(stream_offset(properties))

    def method(self, method: m.Method) -> None:
        """Answers carry nothing that is needed; the stream may be deleted, or lose its node."""
        if isinstance(method, m.BasicCancel):
            super().method(method)

    def closed(self, refusal: Refusal | None) -> None:
        super().closed(refusal)
        self.refusal = refusal

    def take(self) -> tuple[Deliveries, list[int]]:
        """What came since the last call."""
        taken = self.took, self.offsets
        self.took, self.offsets = Deliveries(), []
        return taken


class StreamEdge(StreamTap):
    """Learns offsets, and keeps nothing else of what comes.

    RabbitMQ gives out all that a stream has, as far as the window goes, before it does anything
    else for the channel. So what was there when the first message came has come when what was
    asked then is answered, however much is being written.
    """

    def __init__(self, connection: BlockingConnection) -> None:
        super().__init__(connection)
        #: The broker has begun to give out.
        self.began = False
        #: The first offset that came; None until one has.
        self.first: int | None = None
        #: The one behind the last that came.
        self.end = 0
        #: The broker has answered ``ask``.
        self.answered = False

    def ask(self, queue: str) -> None:
        """Have the broker answer behind what it is giving out now."""
        self.send(m.QueueDeclare(queue=queue, passive=True))

    def _keep(self, route: bytes, properties: bytes, body: bytes) -> None:
        offset = stream_offset(properties)
        if self.first is None:
            self.first = offset
        self.end = offset + 1

    def method(self, method: m.Method) -> None:
        if isinstance(method, m.BasicConsumeOk):
            self.began = True
        elif isinstance(method, m.QueueDeclareOk):
            self.answered = True
        else:
            super().method(method)


def stream_offset(properties: bytes) -> int:
    """Where in its stream a message stands: the broker says so in a header."""
    headers = decode_table(split_properties(properties)["headers"], 4)
    return int(headers["x-stream-offset"])
