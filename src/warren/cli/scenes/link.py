"""A blocking AMQP client, as small as the demo can do with: one connection with one channel.

It is the demo's own until ``warren.client`` exists, and goes when that comes. No heartbeats, no
reconnecting, no threads. Nothing in it knows warren's broker: it talks to any RabbitMQ.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from warren.amqp import frames, methods
from warren.amqp.content import HEADER_START, encode_content, encode_header
from warren.amqp.methods import Method
from warren.amqp.properties import Properties, decode_properties, encode_properties
from warren.amqp.tables import Table

A = TypeVar("A", bound=Method)

CHANNEL = 1
TIMEOUT_S = 15.0
_RECEIVE_BYTES = 1 << 18
_PLAIN = Properties()


class Refused(ConnectionError):
    """The broker closed the channel or the connection, and said why."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code, self.text = code, text

    def __str__(self) -> str:
        return f"{self.code} {self.text}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that came: delivered, got, or returned."""

    method: Method
    raw_properties: bytes
    body: bytes

    @property
    def properties(self) -> Properties:
        return decode_properties(self.raw_properties)

    @property
    def headers(self) -> Mapping[str, Any]:
        return self.properties.headers or {}

    @property
    def consumer(self) -> str:
        """The consumer tag; empty for a message that was returned."""
        return str(getattr(self.method, "consumer_tag", ""))

    @property
    def tag(self) -> int:
        return int(getattr(self.method, "delivery_tag", 0))

    @property
    def redelivered(self) -> bool:
        return bool(getattr(self.method, "redelivered", False))


class Link:
    """An open connection and its channel. Messages that come wait in ``inbox``."""

    def __init__(self, url: str, name: str = "warren demo") -> None:
        parts = urlsplit(url)
        self.sock = socket.create_connection((parts.hostname, parts.port or 5672), TIMEOUT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.inbox: deque[Delivery] = deque()
        self.server_properties: Mapping[str, Any] = {}
        self.frame_max = frames.FRAME_MAX_DEFAULT
        self._buffer = bytearray()
        self._answers: deque[Method] = deque()
        self._content: tuple[Method, bytes, int, list[bytes]] | None = None
        self._published = 0
        self._unconfirmed: set[int] | None = None
        self.nacked = 0
        self._log_in(unquote(parts.username or "guest"), unquote(parts.password or "guest"), name)
        self._send(methods.ConnectionOpen(unquote(parts.path[1:]) or "/"), channel=0)
        self._answer(methods.ConnectionOpenOk)
        self.open_channel()

    def _log_in(self, user: str, password: str, name: str) -> None:
        self.sock.sendall(frames.PROTOCOL_HEADER)
        self.server_properties = self._answer(methods.ConnectionStart).server_properties
        capabilities = Table(
            dict.fromkeys(
                ("publisher_confirms", "basic.nack", "authentication_failure_close"), True
            )
        )
        about = Table({"product": name, "capabilities": capabilities})
        secret = f"\0{user}\0{password}".encode()
        self._send(methods.ConnectionStartOk(about, "PLAIN", secret, "en_US"), channel=0)
        tune = self._answer(methods.ConnectionTune)
        self.frame_max = tune.frame_max
        self._send(methods.ConnectionTuneOk(tune.channel_max, tune.frame_max, 0), channel=0)

    def __enter__(self) -> Link:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            if error is None:
                self._send(methods.ConnectionClose(200, "bye"), channel=0)
                self._answer(methods.ConnectionCloseOk)
        self.sock.close()

    # -- asking ----------------------------------------------------------------------------------
    def call(self, method: Method, answer: type[A]) -> A:
        """Send a method and wait for its answer."""
        self._send(method)
        return self._answer(answer)

    def open_channel(self) -> None:
        """Open the channel; once more after a refusal closed it."""
        self.call(methods.ChannelOpen(), methods.ChannelOpenOk)

    def queue(self, name: str, **arguments: Any) -> int:
        """Declare a queue; ``x_max_length=5`` is x-max-length. Returns how many messages wait."""
        declare = methods.QueueDeclare(queue=name, arguments=_table(arguments))
        return self.call(declare, methods.QueueDeclareOk).message_count

    def delete(self, queue: str) -> int:
        """Delete a queue; returns how many messages were in it."""
        return self.call(methods.QueueDelete(queue=queue), methods.QueueDeleteOk).message_count

    def consume(
        self,
        queue: str,
        *,
        prefetch: int = 0,
        no_ack: bool = False,
        exclusive: bool = False,
        nowait: bool = False,
    ) -> None:
        """Consume under a tag that is the queue's name."""
        self.call(methods.BasicQos(prefetch_count=prefetch), methods.BasicQosOk)
        consume = methods.BasicConsume(
            queue=queue, consumer_tag=queue, no_ack=no_ack, exclusive=exclusive, nowait=nowait
        )
        self._send(consume)
        if not nowait:
            self._answer(methods.BasicConsumeOk)

    # -- messages --------------------------------------------------------------------------------
    def confirms(self) -> None:
        """From now on the broker confirms what is published."""
        self.call(methods.ConfirmSelect(), methods.ConfirmSelectOk)
        self._unconfirmed = set()

    def publish(
        self,
        exchange: str,
        key: str,
        body: bytes,
        properties: Properties = _PLAIN,
        *,
        mandatory: bool = False,
    ) -> None:
        method = methods.BasicPublish(exchange=exchange, routing_key=key, mandatory=mandatory)
        header = encode_header(len(body), encode_properties(properties))
        self.send_encoded(
            frames.encode_frame(frames.METHOD, CHANNEL, method.encode())
            + encode_content(CHANNEL, header, body, self.frame_max),
            count=1,
        )

    def send_encoded(self, messages: bytes, count: int) -> None:
        """Publish messages that are frames already."""
        first = self._published + 1
        self._published += count
        if self._unconfirmed is not None:
            self._unconfirmed.update(range(first, first + count))
        self.sock.sendall(messages)

    def wait_confirmed(self, but: int = 0) -> None:
        """Return when everything published has been confirmed, or all but this many."""
        while self._unconfirmed and len(self._unconfirmed) > but:
            self._receive(TIMEOUT_S, needed="publisher confirms")

    def ack(self, delivery: Delivery) -> None:
        self._send(methods.BasicAck(delivery.tag))

    def reject(self, delivery: Delivery) -> None:
        """Refuse a message for good: it is dead-lettered, if the queue says where."""
        self._send(methods.BasicReject(delivery.tag, requeue=False))

    def next(self, timeout_s: float = TIMEOUT_S) -> Delivery | None:
        """The next message; None if none comes in time."""
        deadline = time.monotonic() + timeout_s
        while not self.inbox:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not self._receive(left_s):
                return None
        return self.inbox.popleft()

    # -- the wire --------------------------------------------------------------------------------
    def _send(self, method: Method, channel: int = CHANNEL) -> None:
        self.sock.sendall(frames.encode_frame(frames.METHOD, channel, method.encode()))

    def _answer(self, wanted: type[A]) -> A:
        while not self._answers:
            self._receive(TIMEOUT_S, needed=wanted.name)
        method = self._answers.popleft()
        if not isinstance(method, wanted):
            raise ConnectionError(f"{method.name} came instead of {wanted.name}")
        return method

    def _receive(self, timeout_s: float, needed: str = "") -> bool:
        """Read once and take in every whole frame; False when nothing came in time."""
        self.sock.settimeout(timeout_s)
        try:
            data = self.sock.recv(_RECEIVE_BYTES)
        except TimeoutError:
            if needed:
                raise TimeoutError(f"no {needed} from the broker in {timeout_s:.0f} s") from None
            return False
        finally:
            self.sock.settimeout(TIMEOUT_S)
        if not data:
            raise ConnectionError("the broker closed the connection")
        self._buffer += data
        self._take_in()
        return True

    def _take_in(self) -> None:
        buffer, at = self._buffer, 0
        try:
            while len(buffer) - at >= frames.OVERHEAD:
                kind, _, size = frames.FRAME.unpack_from(buffer, at)
                start, stop = at + 7, at + 7 + size
                if len(buffer) <= stop:
                    break
                at = stop + 1
                self._frame(kind, bytes(buffer[start:stop]))
        finally:
            del buffer[:at]  # also when a frame was a refusal: the channel can be opened anew

    def _frame(self, kind: int, payload: bytes) -> None:
        if kind == frames.METHOD:
            self._method(methods.decode_method(payload))
        elif self._content is not None and kind == frames.HEADER:
            size = HEADER_START.unpack_from(payload)[2]
            self._content = (self._content[0], payload[HEADER_START.size :], size, [])
        elif self._content is not None and kind == frames.BODY:
            self._content[3].append(payload)
        else:
            return
        if kind != frames.METHOD and self._content is not None:
            method, properties, size, pieces = self._content
            if sum(map(len, pieces)) == size:
                self.inbox.append(Delivery(method, properties, b"".join(pieces)))
                self._content = None

    def _method(self, method: Method) -> None:
        if method.has_content:
            self._content = (method, b"", 0, [])
        elif isinstance(method, methods.BasicAck | methods.BasicNack):
            self._confirm(method)
        elif isinstance(method, methods.ChannelClose):
            self._send(methods.ChannelCloseOk())
            raise Refused(method.reply_code, method.reply_text)
        elif isinstance(method, methods.ConnectionClose):
            self._send(methods.ConnectionCloseOk(), channel=0)
            raise Refused(method.reply_code, method.reply_text)
        else:
            self._answers.append(method)

    def _confirm(self, method: methods.BasicAck | methods.BasicNack) -> None:
        waiting = self._unconfirmed or set()
        tags = {tag for tag in waiting if tag <= method.delivery_tag} if method.multiple else set()
        tags.add(method.delivery_tag)
        self.nacked += len(tags) if isinstance(method, methods.BasicNack) else 0
        waiting -= tags


def _table(arguments: Mapping[str, Any]) -> Table:
    return Table({name.replace("_", "-"): value for name, value in arguments.items()})
