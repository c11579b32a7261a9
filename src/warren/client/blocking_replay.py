"""Publishing a modest number of messages to one queue, each confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warren.amqp import methods as m
from warren.amqp.client_hot import encode_message, publish_frame
from warren.amqp.properties import Properties, encode_properties
from warren.client.blocking import ANSWER_S, BlockingChannel, BlockingConnection
from warren.client.publish_columns import room
from warren.errors import Nacked

_WINDOW = 1_000


class Replayer(BlockingChannel):
    """A channel in confirm mode; the queue must be there."""

    def __init__(self, connection: BlockingConnection, queue: str) -> None:
        super().__init__(connection)
        self.number = connection.session.open_channel(self)
        self.expect(m.ChannelOpenOk)
        self.ready_messages(queue)
        self.call(m.ConfirmSelect(), m.ConfirmSelectOk)
        self._queue = queue
        self._frame = publish_frame(self.number, "", queue, mandatory=False)
        self._published = 0
        self._unconfirmed: set[int] = set()
        self._refused = False

    def room(self, properties: Mapping[str, Any]) -> int:
        """Octets that a frame has for headers beside these."""
        return room(self.connection.session.frame_max) - len(_encoded(properties))

    def publish(self, properties: Mapping[str, Any], body: bytes) -> None:
        """Send a message; waits when too many are unconfirmed."""
        session = self.connection.session
        octets = _encoded(properties)
        session.out.append(
            encode_message(self._frame, self.number, octets, body, session.frame_max)
        )
        self._published += 1
        self._unconfirmed.add(self._published)
        if len(self._unconfirmed) >= _WINDOW:
            self._wait(_WINDOW // 2)

    def finish(self) -> int:
        """Wait until all are confirmed; how many there were."""
        self._wait(0)
        return self._published

    def confirm(self, delivery_tag: int, multiple: bool, ack: bool) -> None:
        self._refused = self._refused or not ack
        if multiple:
            self._unconfirmed = {tag for tag in self._unconfirmed if tag > delivery_tag}
        else:
            self._unconfirmed.discard(delivery_tag)

    def _wait(self, left: int) -> None:
        self.connection.wait(
            lambda: len(self._unconfirmed) <= left or self._refused or not self.is_open, ANSWER_S
        )
        self._check()
        if self._refused:
            raise Nacked("", self._queue)


def _encoded(properties: Mapping[str, Any]) -> bytes:
    return encode_properties(Properties(**properties))
