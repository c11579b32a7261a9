"""Publishing messages of a ledger to one queue, each confirmed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from warren.amqp import methods as m
from warren.amqp.client_hot import encode_message, publish_frame
from warren.amqp.properties import Properties, encode_properties
from warren.client.blocking import ANSWER_S, BlockingChannel, BlockingConnection
from warren.client.publish_columns import room
from warren.errors import Nacked, Unroutable, WarrenError

#: Messages, and octets of them, that may be unconfirmed.
_WINDOW = 1_000
_WINDOW_BYTES = 16 << 20
#: Heartbeats are sent and heard when there was nothing to wait for in so long.
_BEAT_S = 1.0


class Replayer(BlockingChannel):
    """A channel in confirm mode; the queue must be there, and stay."""

    def __init__(self, connection: BlockingConnection, queue: str) -> None:
        super().__init__(connection)
        self.number = connection.session.open_channel(self)
        self.expect(m.ChannelOpenOk)
        self.ready_messages(queue)
        self.call(m.ConfirmSelect(), m.ConfirmSelectOk)
        self.queue = queue
        #: How many messages the broker has taken for certain.
        self.confirmed = 0
        #: All before this offset; None if nothing was published.
        self._end: int | None = None
        # Mandatory: what is published to a queue that was deleted is confirmed, and gone.
        self._frame = publish_frame(self.number, "", queue, mandatory=True)
        self._published = self._octets = 0
        #: Offsets by delivery tag, oldest first.
        self._unconfirmed: dict[int, int] = {}
        self._refused: WarrenError | None = None
        self._heard_at = time.monotonic()

    @property
    def reached(self) -> int | None:
        """Each message before this offset is confirmed; None if nothing was published."""
        return next(iter(self._unconfirmed.values()), self._end)

    def room(self, properties: Mapping[str, Any]) -> int:
        """Octets that a frame has for headers beside these."""
        return room(self.connection.session.frame_max) - len(_encoded(properties))

    def publish(self, properties: Mapping[str, Any], body: bytes, offset: int) -> None:
        """Send a message; waits when too many are unconfirmed.

        Raises:
            Unroutable: the queue is there no more.
            Nacked: the broker refused one.
        """
        session = self.connection.session
        octets = encode_message(
            self._frame, self.number, _encoded(properties), body, session.frame_max
        )
        session.out.append(octets)
        self._published += 1
        self._unconfirmed[self._published] = offset
        self._end = offset + 1
        self._octets += len(octets)
        if len(self._unconfirmed) >= _WINDOW or self._octets >= _WINDOW_BYTES:
            self._wait(len(self._unconfirmed) // 2)
            self._octets = 0
        elif time.monotonic() - self._heard_at > _BEAT_S:  # who reads the rows may be slow
            self.connection.pump(0.0)
            self._heard_at = time.monotonic()

    def finish(self) -> None:
        """Wait until all are confirmed."""
        self._wait(0)

    def confirm(self, delivery_tag: int, multiple: bool, ack: bool) -> None:
        if not ack:
            self._refused = self._refused or Nacked("", self.queue)
        if self._refused is not None:  # a message that came back is confirmed next, as if taken
            return
        if multiple:
            tags = [tag for tag in self._unconfirmed if tag <= delivery_tag]
        else:
            tags = [delivery_tag] if delivery_tag in self._unconfirmed else []
        for tag in tags:
            del self._unconfirmed[tag]
        self.confirmed += len(tags)

    def content(self, method: m.Method, properties: bytes, body: bytes) -> None:
        if isinstance(method, m.BasicReturn):
            self._refused = self._refused or Unroutable(
                method.exchange, method.routing_key, method.reply_code, method.reply_text
            )

    def _wait(self, left: int) -> None:
        self.connection.wait(
            lambda: len(self._unconfirmed) <= left or self._refused or not self.is_open, ANSWER_S
        )
        self._heard_at = time.monotonic()
        self._check()
        if self._refused is not None:
            raise self._refused


def _encoded(properties: Mapping[str, Any]) -> bytes:
    return encode_properties(Properties(**properties))
