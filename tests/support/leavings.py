"""Deletes what tests leave in a broker."""

from __future__ import annotations

from collections.abc import Sequence

from pika import amqp_object, spec

from tests.support.wire import Channel, Closed, Connection
from tests.support.wire_frames import Gone

_ANSWERS = (spec.Queue.DeleteOk, spec.Exchange.DeleteOk)


class Leavings:
    """Has one connection for all tests of a broker: thousands of tests would open thousands."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None
        self._channel: Channel | None = None

    def delete(self, names: Sequence[str]) -> None:
        """Delete the queues and the exchanges of these names; not all need be there."""
        methods = [
            method
            for name in names
            for method in (spec.Queue.Delete(queue=name), spec.Exchange.Delete(exchange=name))
        ]
        try:
            self._send(methods)
        except (Closed, Gone, OSError):  # one is refused, or a test has ended the connection
            self.close()
            for method in methods:
                self._delete_or_leave(method)

    def _send(self, methods: Sequence[amqp_object.Method]) -> None:
        if self._connection is None:
            self._connection = Connection.open(self._url)
        if self._channel is None or self._channel.closed is not None:
            self._channel = self._connection.channel()
        for method in methods:
            self._channel.send(method)
        for _ in methods:
            self._channel.expect(*_ANSWERS)

    def _delete_or_leave(self, method: amqp_object.Method) -> None:
        try:
            self._send([method])
        except Closed as refusal:  # such as a reserved name
            if refusal.scope == "connection":
                self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._channel = None
