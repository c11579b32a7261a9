"""What a client says to a session, and a broker's half that writes down what it is asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pika.frame
from pika import spec

from warren.amqp import methods as m
from warren.amqp.content import body_of, header_of
from warren.amqp.frames import HEARTBEAT_FRAME, PROTOCOL_HEADER
from warren.amqp.handlers import PublishAgain
from warren.amqp.session import ServerSession
from warren.amqp.tables import Table
from warren.errors import AccessRefused, NotAllowed, PreconditionFailed


class FakeChannel:
    """Writes down what it is asked to do."""

    def __init__(self, number: int, log: list[Any]) -> None:
        self.number, self.log = number, log

    def method(self, method: m.Method) -> None:
        self.log.append((self.number, method))
        if isinstance(method, m.QueueDelete):
            raise PreconditionFailed("in use")

    def publish(
        self, arguments: bytes, content: bytes, header_size: int, body_size: int, flags: int
    ) -> None:
        header = header_of(content)
        assert (header_size, body_size) == (len(header) + 8, len(body_of(content)))
        assert flags == int.from_bytes(header[12:14], "big")
        self.log.append((self.number, "publish", arguments, header, body_of(content)))
        if b"refused" in arguments:
            raise PreconditionFailed("refused")

    def again(
        self, arguments: bytes, properties: bytes, header_size: int, flags: int
    ) -> PublishAgain | None:
        if b"looked at" in arguments:
            return None
        left = iter(range(3))

        def publish(content: bytes, body_size: int) -> bool:
            assert content[19 : header_size - 1] == properties
            self.publish(arguments, content, header_size, body_size, flags)
            return next(left, None) is not None  # such a run is over after some messages

        return publish

    def too_large(self, size: int) -> None:
        self.log.append((self.number, "too large", size))
        raise PreconditionFailed(f"{size} is too large")

    def ack(self, tag: int, multiple: int) -> None:
        self.log.append((self.number, "ack", tag, bool(multiple)))

    def settle(self) -> None:
        pass

    def close(self) -> None:
        self.log.append((self.number, "close"))


class FakeHandler:
    """A connection's other half, which lets guest in and makes fake channels."""

    server_properties = Table({"product": "fake"})
    mechanisms = "PLAIN ASK"

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.half_bytes = 0

    def authenticate(self, mechanism: str, response: bytes) -> bytes | None:
        self.log.append(("authenticate", mechanism, response))
        if mechanism == "ASK" and not response:
            return b"who?"
        if response != b"\0guest\0guest":
            raise AccessRefused("no")
        return None

    def open(self, virtual_host: str) -> None:
        if virtual_host != "/":
            raise NotAllowed(f"vhost {virtual_host} not found")

    def opened(self) -> None:
        self.log.append("opened")

    def update_secret(self, secret: bytes) -> None:
        self.log.append(("secret", secret))

    def channel(self, number: int) -> FakeChannel:
        return FakeChannel(number, self.log)

    def published(self) -> None: ...

    def half_received(self, size: int) -> None:
        self.half_bytes += size

    def close(self) -> None:
        self.log.append("close")


# -- what the client says ------------------------------------------------------------------------
def method(value: Any, channel: int = 1) -> bytes:
    return pika.frame.Method(channel, value).marshal()


def start_ok(
    mechanism: str = "PLAIN", response: str = "\0guest\0guest", **capabilities: bool
) -> bytes:
    properties = {"product": "test", "capabilities": capabilities}
    return method(spec.Connection.StartOk(properties, mechanism, response, "en_US"), 0)


def tune_ok(channel_max: int = 2047, frame_max: int = 131072, heartbeat: int = 60) -> bytes:
    return method(spec.Connection.TuneOk(channel_max, frame_max, heartbeat), 0)


def publish(key: str, body: bytes, channel: int = 1, step: int = 4000, **properties: Any) -> bytes:
    octets = method(spec.Basic.Publish(exchange="ex", routing_key=key), channel)
    octets += pika.frame.Header(channel, len(body), spec.BasicProperties(**properties)).marshal()
    for at in range(0, len(body), step):
        octets += pika.frame.Body(channel, body[at : at + step]).marshal()
    return octets


OPEN = method(spec.Connection.Open("/"), 0)
HANDSHAKE = PROTOCOL_HEADER + start_ok() + tune_ok() + OPEN
CHANNEL = method(spec.Channel.Open())
CONVERSATION = b"".join(
    (
        HANDSHAKE,
        CHANNEL,
        method(spec.Queue.Declare(queue="q", durable=True, arguments={"x-max-length": 5})),
        HEARTBEAT_FRAME,
        publish("one", b"a body"),
        publish("two", b"b" * 40, step=9, delivery_mode=2, headers={"n": 1}),
        publish("three", b""),
        method(spec.Basic.Ack(7, True)),
        method(spec.Channel.Open(), 2),
        publish("refused", b"closes its channel", 2),
        publish("lost", b"is not heard", 2),
        method(spec.Channel.CloseOk(), 2),
        method(spec.Channel.Open(), 2),
        method(spec.Queue.Delete(queue="q")),
        method(spec.Channel.CloseOk()),
        method(spec.Channel.Close(200, "bye", 0, 0), 2),
        method(spec.Connection.Close(200, "bye", 0, 0), 0),
    )
)


# -- helpers -------------------------------------------------------------------------------------
def fed(*pieces: bytes, **options: Any) -> tuple[ServerSession, FakeHandler]:
    handler = FakeHandler()
    session = ServerSession(handler, **options)
    for piece in pieces:
        session.receive(piece)
    return session, handler


def running(**options: Any) -> tuple[ServerSession, FakeHandler]:
    """A session behind the handshake, with channel 1 open and nothing left to send."""
    session, handler = fed(HANDSHAKE + CHANNEL, **options)
    session.data_to_send()
    handler.log.clear()
    return session, handler


def answers(session: ServerSession) -> list[Any]:
    """The methods that the session wants to send."""
    data, found = session.data_to_send(), []
    while data:
        used, value = pika.frame.decode_frame(data)
        assert used, data
        found.append(value.method if isinstance(value, pika.frame.Method) else value)
        data = data[used:]
    return found


def effect(pieces: Iterable[bytes]) -> tuple[list[Any], bytes, str]:
    session, handler = fed(*pieces)
    return handler.log, session.data_to_send(), session.state
