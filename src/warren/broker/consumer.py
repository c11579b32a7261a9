"""A consumer: where a queue's messages go, and how many of them at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warren.amqp.frames import FRAME, FRAME_MAX_DEFAULT, HEADER_BYTE, OVERHEAD
from warren.amqp.hot import DELIVERY, deliver_prefix
from warren.amqp.methods import shortstr
from warren.amqp.tables import Table
from warren.broker.message import Address

if TYPE_CHECKING:
    from warren.broker.channel import Channel
    from warren.broker.queues.queue import Queue
    from warren.broker.queues.ready import Entry
    from warren.broker.queues.stream import StreamQueue

#: Frame prefixes kept for each consumer, one an address.
_PREFIXES = 256
_NOTHING: Any = None
#: No prefetch limit.
UNLIMITED = 1 << 62


class Consumer:
    """One basic.consume."""

    __slots__ = (
        "_prefixes",
        "_tag",
        "arguments",
        "channel",
        "exclusive",
        "no_ack",
        "outstanding",
        "parked",
        "prefetch",
        "priority",
        "queue",
        "tag",
    )

    def __init__(
        self,
        channel: Channel,
        queue: Queue | StreamQueue,
        tag: str,
        *,
        no_ack: bool,
        exclusive: bool,
        prefetch: int,
        arguments: Table,
    ) -> None:
        self.channel = channel
        self.queue = queue
        self.tag = tag
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.prefetch = prefetch
        self.arguments = arguments
        priority = arguments.get("x-priority", 0)
        self.priority: int = priority if isinstance(priority, int) else 0
        self.outstanding = 0
        self.parked = False
        self._tag = shortstr(tag)
        self._prefixes: dict[Address, bytes] = {}

    def can_take(self) -> bool:
        return self.room() > 0

    def room(self) -> int:
        """How many messages it may be given now."""
        channel = self.channel
        if channel.connection.budget <= 0:
            channel.connection.starved[self] = None
            return 0
        room = UNLIMITED
        if self.prefetch and not self.no_ack:
            room = self.prefetch - self.outstanding
        if channel.global_prefetch and self.queue.kind == "classic":
            # A full window of the channel holds back consumers without acknowledgement too.
            room = min(room, channel.global_prefetch - channel.outstanding)
        return room

    def feed(self, queue: Queue, limit: int) -> None:
        """Send messages of a queue, at most ``limit``, until the connection's budget is used up.

        The hottest loop of the broker, together with ``hot.read_frames``.
        """
        channel = self.channel
        connection = channel.connection
        number, out, unacked = channel.number, connection.session.out, channel.unacked
        no_ack, prefixes, pack = self.no_ack, self._prefixes, DELIVERY.pack
        frame, octets = FRAME.unpack_from, number.to_bytes(2)
        opening = HEADER_BYTE + octets
        frame_max = connection.session.frame_max
        small_frames = 0 < frame_max < FRAME_MAX_DEFAULT
        tag, budget, sent, sent_bytes, redelivered = channel.last_tag, connection.budget, 0, 0, 0
        entry: Entry = _NOTHING
        for entry in queue.ready.run(limit):
            message = entry[1]
            address = message.address
            prefix = prefixes.get(address)
            if prefix is None:
                prefix = self._prefix(address)
            content = message.content
            if message.channel != number or small_frames:
                head = len(content) - message.body_size - OVERHEAD
                if not small_frames and frame(content)[2] == head - OVERHEAD:
                    # One body frame, as nearly always: ``on_channel`` without the calls.
                    content = opening + content[3 : head + 1] + octets + content[head + 3 :]
                else:
                    content = message.content_for(number, frame_max)
            tag += 1
            sent += 1
            sent_bytes += message.body_size
            if entry[3]:
                redelivered += 1
                content = queue.counted_content(entry, content, number, frame_max)
                out += (prefix, pack(tag, 1), address.suffix, content)
            else:
                out += (prefix, pack(tag, 0), address.suffix, content)
            budget -= len(content)
            if no_ack:
                queue.done_with(entry)
            else:
                unacked[tag] = (queue, entry, self)
            if budget <= 0:
                break
        if queue.log_id and sent:
            queue.given_out(entry[0], connection)
        channel.last_tag = tag
        connection.budget = budget
        queue.ready_bytes -= sent_bytes
        queue.delivered += sent
        queue.redelivered += redelivered
        channel.redelivered += redelivered
        if no_ack:
            queue.delivered_unasked += sent
            channel.delivered_unasked += sent
        else:
            queue.unacked += sent
            queue.unacked_bytes += sent_bytes
            self.outstanding += sent
            channel.outstanding += sent
        connection.wants_write()

    def _prefix(self, address: Address) -> bytes:
        if len(self._prefixes) >= _PREFIXES:
            self._prefixes.clear()
        prefix = deliver_prefix(self.channel.number, self._tag, address.suffix)
        self._prefixes[address] = prefix
        return prefix

    def settled(self, count: int = 1) -> None:
        """So many of its messages were acknowledged or given back."""
        self.outstanding -= count
        if self.parked:
            self.wake()

    def wake(self) -> None:
        """It may take messages again: ask the queue."""
        self.queue.rota.wake(self)
        self.queue.core.pending[self.queue] = None
