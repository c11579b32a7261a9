"""A small blocking AMQP 0-9-1 client for tests: every frame in the open, nothing repaired.

It rests on pika's codec, not on warren's, so that a mistake in ours can't hide. Methods are
``pika.spec`` objects; what the broker sends unasked (deliveries, confirms, returns, cancels)
waits in ``channel.inbox``.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from pika import amqp_object, frame, spec

from tests.support.wire_frames import TIMEOUT_S, Gone, Wire

PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
CAPABILITIES = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}


class Closed(Exception):
    """The broker closed the channel or the connection, with these words."""

    def __init__(self, scope: str, code: int, text: str, class_id: int, method_id: int) -> None:
        super().__init__(scope, code, text, class_id, method_id)
        self.scope, self.code, self.text = scope, code, text
        self.class_id, self.method_id = class_id, method_id


@dataclass
class Message:
    """A deliver, get-ok or return with its content."""

    method: Any
    properties: spec.BasicProperties
    body: bytes

    @property
    def tag(self) -> int:
        return self.method.delivery_tag


class Connection:
    """An opened connection and its channels."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.channels: dict[int, Channel] = {}
        self.inbox: deque[Any] = deque()  # channel-0 methods nobody waited for
        self.start: Any = None
        self.tune: Any = None
        self.frame_max = 131072
        self.closed: Closed | None = None

    @classmethod
    def open(
        cls,
        url: str,
        *,
        vhost: str | None = None,
        user: str | None = None,
        password: str | None = None,
        properties: dict[str, Any] | None = None,
        channel_max: int | None = None,
        frame_max: int | None = None,
        heartbeat: int = 0,
    ) -> Connection:
        parts = urlsplit(url)
        connection = cls(Wire(parts.hostname or "127.0.0.1", parts.port or 5672))
        wire = connection.wire
        try:
            wire.send(PROTOCOL_HEADER)
            connection.start = wire.read().method
            response = "\0{}\0{}".format(
                user or unquote(parts.username or "guest"),
                password or unquote(parts.password or "guest"),
            )
            wire.send_method(
                0,
                spec.Connection.StartOk(
                    client_properties={"capabilities": CAPABILITIES}
                    if properties is None
                    else properties,
                    mechanism="PLAIN",
                    response=response,
                    locale="en_US",
                ),
            )
            connection.tune = connection.expect(spec.Connection.Tune)
            connection.frame_max = connection.tune.frame_max if frame_max is None else frame_max
            wire.send_method(
                0,
                spec.Connection.TuneOk(
                    connection.tune.channel_max if channel_max is None else channel_max,
                    connection.frame_max,
                    heartbeat,
                ),
            )
            path = unquote(parts.path[1:]) if len(parts.path) > 1 else "/"
            wire.send_method(0, spec.Connection.Open(virtual_host=path if vhost is None else vhost))
            connection.expect(spec.Connection.OpenOk)
        except BaseException:
            wire.close()
            raise
        return connection

    def channel(self, number: int | None = None) -> Channel:
        number = number or max(self.channels, default=0) + 1
        channel = Channel(self, number)
        self.channels[number] = channel
        channel.call(spec.Channel.Open())
        return channel

    def pump(self, timeout_s: float = TIMEOUT_S) -> None:
        """Read one frame and put it where it belongs."""
        value = self.wire.read(timeout_s)
        if isinstance(value, frame.Heartbeat):
            return
        if value.channel_number:
            self.channels[value.channel_number].feed(value)
            return
        method = value.method
        if isinstance(method, spec.Connection.Close):
            self.closed = Closed(
                "connection",
                method.reply_code,
                method.reply_text,
                method.class_id,
                method.method_id,
            )
            with suppress(OSError):  # a peer that had a reason to hurry is gone by now
                self.wire.send_method(0, spec.Connection.CloseOk())
            raise self.closed
        self.inbox.append(method)

    def expect(self, kind: type, timeout_s: float = TIMEOUT_S) -> Any:
        """The next channel-0 method of this kind."""
        deadline = time.monotonic() + timeout_s
        while True:
            for method in self.inbox:
                if isinstance(method, kind):
                    self.inbox.remove(method)
                    return method
            self.pump(max(0.0, deadline - time.monotonic()))

    def expect_closed(self, timeout_s: float = TIMEOUT_S) -> Closed:
        """Wait until the broker closes the connection, and say with what words."""
        try:
            while True:
                self.pump(timeout_s)
        except Closed as closed:
            if closed.scope != "connection":
                raise
            return closed

    def close(self) -> None:
        """Close in the orderly way; a connection that is gone already is fine."""
        try:
            if self.closed is None:
                self.wire.send_method(0, spec.Connection.Close(200, "bye", 0, 0))
                self.expect(spec.Connection.CloseOk)
        except (Gone, Closed, OSError):
            pass
        finally:
            self.wire.close()

    def drop(self) -> None:
        """Cut the TCP connection with a reset, as a killed process does."""
        self.wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.wire.close()


class Channel:
    """One channel: synchronous calls, and an inbox for the rest."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.connection = connection
        self.number = number
        self.inbox: deque[Any] = deque()
        self.closed: Closed | None = None
        self._content: list[Any] | None = None  # [method, properties, size left, parts]

    # -- receiving ---------------------------------------------------------------------------
    def feed(self, value: Any) -> None:
        if isinstance(value, frame.Header):
            assert self._content is not None, "content header without a method"
            self._content[1:3] = [value.properties, value.body_size]
            self._content_done()
        elif isinstance(value, frame.Body):
            assert self._content is not None, "body frame without a method"
            self._content[2] -= len(value.fragment)
            self._content[3].append(value.fragment)
            self._content_done()
        elif isinstance(value.method, spec.Channel.Close):
            method = value.method
            self.closed = Closed(
                "channel", method.reply_code, method.reply_text, method.class_id, method.method_id
            )
            self.connection.wire.send_method(self.number, spec.Channel.CloseOk())
            raise self.closed
        elif spec.has_content(value.method.INDEX):
            self._content = [value.method, None, None, []]
        else:
            self.inbox.append(value.method)

    def _content_done(self) -> None:
        assert self._content is not None
        method, properties, left, parts = self._content
        if left == 0:
            self._content = None
            self.inbox.append(Message(method, properties, b"".join(parts)))

    def wait(self, wanted: Callable[[Any], bool], timeout_s: float = TIMEOUT_S) -> Any:
        """Take the first inbox entry that is wanted, reading on until there is one."""
        deadline = time.monotonic() + timeout_s
        while True:
            for entry in self.inbox:
                if wanted(entry):
                    self.inbox.remove(entry)
                    return entry
            self.connection.pump(max(0.0, deadline - time.monotonic()))

    def expect(self, *kinds: type, timeout_s: float = TIMEOUT_S) -> Any:
        """The next method of one of these kinds; of a Message, its method counts."""
        return self.wait(
            lambda entry: isinstance(getattr(entry, "method", entry), kinds), timeout_s
        )

    def expect_closed(self, timeout_s: float = TIMEOUT_S) -> Closed:
        """Wait until the broker closes this channel, and say with what words."""
        try:
            while True:
                self.connection.pump(timeout_s)
        except Closed as closed:
            assert closed.scope == "channel", closed
            return closed

    def quiet(self, for_s: float = 0.3) -> bool:
        """True if nothing arrives on this channel for a while (and nothing waits)."""
        try:
            while not self.inbox:
                self.connection.pump(for_s)
        except TimeoutError:
            return True
        return False

    # -- sending -----------------------------------------------------------------------------
    def send(self, method: amqp_object.Method) -> None:
        self.connection.wire.send_method(self.number, method)

    def call(self, method: amqp_object.Method) -> Any:
        """Send a synchronous method and return its answer (or raise Closed)."""
        self.send(method)
        return self.expect(*_REPLIES[method.NAME])

    def refused(self, method: amqp_object.Method) -> Closed:
        """Send a method that must close the channel or the connection; say with what words."""
        self.send(method)
        try:
            while True:
                self.connection.pump()
        except Closed as closed:
            return closed

    def publish(self, routing_key: str = "", body: bytes = b"", **options: Any) -> None:
        """Takes what ``publishing`` takes."""
        self.connection.wire.send(self.publishing(routing_key, body, **options))

    def publishing(
        self,
        routing_key: str = "",
        body: bytes = b"",
        *,
        exchange: str = "",
        mandatory: bool = False,
        immediate: bool = False,
        **properties: Any,
    ) -> bytes:
        """A basic.publish with its content, as it goes over the wire."""
        method = spec.Basic.Publish(
            exchange=exchange, routing_key=routing_key, mandatory=mandatory, immediate=immediate
        )
        header = frame.Header(self.number, len(body), spec.BasicProperties(**properties))
        step = self.connection.frame_max - 8
        pieces = [
            frame.Body(self.number, body[at : at + step]).marshal()
            for at in range(0, len(body), step)
        ]
        return b"".join([frame.Method(self.number, method).marshal(), header.marshal(), *pieces])

    # -- shorthands --------------------------------------------------------------------------
    def declare(self, queue: str = "", **options: Any) -> Any:
        """queue.declare; returns declare-ok (``queue``, ``message_count``, ``consumer_count``)."""
        return self.call(spec.Queue.Declare(queue=queue, **options))

    def declare_exchange(self, exchange: str, type: str = "direct", **options: Any) -> Any:
        return self.call(spec.Exchange.Declare(exchange=exchange, type=type, **options))

    def bind(self, queue: str, exchange: str, routing_key: str = "", arguments: Any = None) -> Any:
        return self.call(
            spec.Queue.Bind(
                queue=queue, exchange=exchange, routing_key=routing_key, arguments=arguments
            )
        )

    def unbind(
        self, queue: str, exchange: str, routing_key: str = "", arguments: Any = None
    ) -> Any:
        return self.call(
            spec.Queue.Unbind(
                queue=queue, exchange=exchange, routing_key=routing_key, arguments=arguments
            )
        )

    def bind_exchange(
        self, destination: str, source: str, routing_key: str = "", arguments: Any = None
    ) -> Any:
        return self.call(
            spec.Exchange.Bind(
                destination=destination,
                source=source,
                routing_key=routing_key,
                arguments=arguments,
            )
        )

    def unbind_exchange(
        self, destination: str, source: str, routing_key: str = "", arguments: Any = None
    ) -> Any:
        return self.call(
            spec.Exchange.Unbind(
                destination=destination,
                source=source,
                routing_key=routing_key,
                arguments=arguments,
            )
        )

    def get(self, queue: str, no_ack: bool = True) -> Message | None:
        answer = self.call(spec.Basic.Get(queue=queue, no_ack=no_ack))
        return answer if isinstance(answer, Message) else None

    def drain(self, queue: str) -> list[bytes]:
        """The bodies of all that is ready in the queue, taken off it."""
        bodies = []
        while (message := self.get(queue)) is not None:
            bodies.append(message.body)
        return bodies

    def consume(self, queue: str, consumer_tag: str = "", **options: Any) -> str:
        """basic.consume; returns the consumer tag."""
        return self.call(
            spec.Basic.Consume(queue=queue, consumer_tag=consumer_tag, **options)
        ).consumer_tag

    def cancel(self, consumer_tag: str) -> Any:
        return self.call(spec.Basic.Cancel(consumer_tag=consumer_tag))

    def delivery(self, timeout_s: float = TIMEOUT_S) -> Message:
        return self.expect(spec.Basic.Deliver, timeout_s=timeout_s)

    def deliveries(self, count: int) -> list[Message]:
        return [self.delivery() for _ in range(count)]

    def ack(self, tag: int, multiple: bool = False) -> None:
        self.send(spec.Basic.Ack(delivery_tag=tag, multiple=multiple))

    def nack(self, tag: int, multiple: bool = False, requeue: bool = True) -> None:
        self.send(spec.Basic.Nack(delivery_tag=tag, multiple=multiple, requeue=requeue))

    def reject(self, tag: int, requeue: bool = True) -> None:
        self.send(spec.Basic.Reject(delivery_tag=tag, requeue=requeue))

    def qos(self, prefetch_count: int, global_qos: bool = False) -> None:
        self.call(spec.Basic.Qos(prefetch_count=prefetch_count, global_qos=global_qos))

    def confirm(self) -> None:
        self.call(spec.Confirm.Select())

    def wait_confirms(self, upto: int) -> dict[int, str]:
        """Read acks and nacks until every tag up to ``upto`` is settled: {tag: "ack"|"nack"}."""
        settled: dict[int, str] = {}
        while len(settled) < upto:
            method = self.expect(spec.Basic.Ack, spec.Basic.Nack)
            word = "ack" if isinstance(method, spec.Basic.Ack) else "nack"
            first = 1 if method.multiple else method.delivery_tag
            for tag in range(first, method.delivery_tag + 1):
                settled.setdefault(tag, word)
        return settled

    def sync(self) -> None:
        """Return once the broker has worked through all that was sent on this channel."""
        self.call(spec.Exchange.Declare(exchange="amq.direct", passive=True))

    def count(self, queue: str) -> int:
        """Ready messages, by passive declare."""
        return self.declare(queue, passive=True).message_count

    def close(self) -> None:
        self.call(spec.Channel.Close(200, "bye", 0, 0))


_REPLIES = {
    spec.Channel.Open.NAME: (spec.Channel.OpenOk,),
    spec.Channel.Flow.NAME: (spec.Channel.FlowOk,),
    spec.Channel.Close.NAME: (spec.Channel.CloseOk,),
    spec.Exchange.Declare.NAME: (spec.Exchange.DeclareOk,),
    spec.Exchange.Delete.NAME: (spec.Exchange.DeleteOk,),
    spec.Exchange.Bind.NAME: (spec.Exchange.BindOk,),
    spec.Exchange.Unbind.NAME: (spec.Exchange.UnbindOk,),
    spec.Queue.Declare.NAME: (spec.Queue.DeclareOk,),
    spec.Queue.Bind.NAME: (spec.Queue.BindOk,),
    spec.Queue.Unbind.NAME: (spec.Queue.UnbindOk,),
    spec.Queue.Purge.NAME: (spec.Queue.PurgeOk,),
    spec.Queue.Delete.NAME: (spec.Queue.DeleteOk,),
    spec.Basic.Qos.NAME: (spec.Basic.QosOk,),
    spec.Basic.Consume.NAME: (spec.Basic.ConsumeOk,),
    spec.Basic.Cancel.NAME: (spec.Basic.CancelOk,),
    spec.Basic.Get.NAME: (
        spec.Basic.GetOk,
        spec.Basic.GetEmpty,
    ),
    spec.Basic.Recover.NAME: (spec.Basic.RecoverOk,),
    spec.Confirm.Select.NAME: (spec.Confirm.SelectOk,),
    spec.Tx.Select.NAME: (spec.Tx.SelectOk,),
    spec.Tx.Commit.NAME: (spec.Tx.CommitOk,),
    spec.Tx.Rollback.NAME: (spec.Tx.RollbackOk,),
}
