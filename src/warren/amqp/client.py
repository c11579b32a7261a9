"""The client's side of one connection: the mirror of ``session``.

The life of a connection, each state with what it waits for:

    starting    connection.start, in answer to our protocol header
    tuning      connection.tune (or connection.secure)
    opening     connection.open-ok
    running     everything
    closing     we have sent connection.close and wait for close-ok; all else is ignored
    closed      nothing; ``failure`` says why, None if we wanted it

A channel is in one of three places: ``channels`` (open, with its handler), ``assembling`` (a
content is on its way to it), ``closing`` (we have sent channel.close and wait for close-ok; what
still comes for it is thrown away).

Nothing here knows of sockets or clocks: bytes in by ``receive``, bytes out by ``data_to_send``,
and the time in both, so that ``next_deadline`` can tell when a heartbeat is due.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warren._version import __version__
from warren.amqp import methods as m
from warren.amqp.client_handlers import ClientChannelHandler, ClientHandler, Unattended
from warren.amqp.client_hot import read_client_frames
from warren.amqp.content import HEADER_START
from warren.amqp.frames import (
    BODY,
    FRAME_MAX_DEFAULT,
    HEADER,
    HEARTBEAT,
    HEARTBEAT_FRAME,
    METHOD,
    PROTOCOL_HEADER,
    encode_frame,
)
from warren.amqp.login import Login
from warren.amqp.replies import as_refusal
from warren.amqp.tables import Table
from warren.errors import (
    NoChannelLeft,
    ProtocolError,
    WarrenError,
)

CHANNEL_MAX = 2047
HEARTBEAT_S = 60
CAPABILITIES = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}
#: First octets of an alert and of a handshake.
_TLS_RECORDS = (b"\x15", b"\x16")
_BEFORE_RUNNING = frozenset(("starting", "tuning", "opening"))


class _Assembly:
    """A content on its way in."""

    __slots__ = ("header", "left", "method", "pieces")

    def __init__(self, method: m.Method) -> None:
        self.method = method
        self.header: bytes | None = None
        self.left = 0
        self.pieces: list[bytes] = []


class ClientSession:
    """Bytes in by ``receive``, bytes out by ``data_to_send``.

    ::

        session = ClientSession(plain("guest", "guest"), vhost="/")
        while session.state != "running":
            sock.sendall(session.data_to_send())
            session.receive(sock.recv(65536))
            if session.failure: raise session.failure
    """

    def __init__(
        self,
        login: Login,
        *,
        vhost: str = "/",
        handler: ClientHandler | None = None,
        heartbeat_s: int = HEARTBEAT_S,
        channel_max: int = CHANNEL_MAX,
        frame_max: int = FRAME_MAX_DEFAULT,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        self.login = login
        self.vhost = vhost
        self.handler: ClientHandler = handler or Unattended()
        self.heartbeat_s = heartbeat_s
        self.channel_max = channel_max
        self.frame_max = frame_max
        self.frame_limit = frame_max or FRAME_MAX_DEFAULT
        self.state = "starting"
        #: The state in which it failed, and why.
        self.failed_in = ""
        self.failure: WarrenError | None = None
        self.out: list[bytes] = [PROTOCOL_HEADER]
        self.channels: dict[int, ClientChannelHandler] = {}
        self.assembling: dict[int, _Assembly] = {}
        self.closing: dict[int, ClientChannelHandler] = {}
        self.server_properties = Table()
        self.heard_at = 0.0
        self.sent_at = 0.0
        self._properties = properties or {}
        self._last_number = 0
        self._tail = b""

    # -- the verbs -------------------------------------------------------------------------------
    def receive(self, data: bytes, now: float = 0.0) -> None:
        """Take what the socket gave."""
        self.heard_at = now
        if self.state == "closed":
            return
        if self._tail:
            data = self._tail + data
            self._tail = b""
        if self.state == "starting" and not self._speaks_amqp(data):
            return
        used = read_client_frames(self, data)
        if used < len(data):
            self._tail = data[used:]

    def data_to_send(self, now: float = 0.0) -> bytes:
        """Take what is to be written."""
        data = b"".join(self.out) if len(self.out) != 1 else self.out[0]
        self.out.clear()
        if data:
            self.sent_at = now
        return data

    @property
    def finished(self) -> bool:
        """True when the socket is to be closed once everything is written."""
        return self.state == "closed"

    def take_unread(self) -> bytes:
        """Octets of a frame that is not whole yet: for who reads the rest by other means."""
        tail, self._tail = self._tail, b""
        return tail

    def lost(self, error: WarrenError) -> None:
        """The socket is gone."""
        self._end(error)

    # -- heartbeats ------------------------------------------------------------------------------
    def next_deadline(self) -> float | None:
        """When ``tick`` has something to do; None if there are no heartbeats."""
        if not self.heartbeat_s or self.state in ("starting", "tuning", "closed"):
            return None
        return min(self.sent_at + self.heartbeat_s / 2, self.heard_at + self.heartbeat_s * 2)

    def tick(self, now: float) -> bool:
        """Send a heartbeat if one is due; False when the peer must be given up."""
        if not self.heartbeat_s or self.state in ("starting", "tuning", "closed"):
            return True
        if now >= self.sent_at + self.heartbeat_s / 2:
            self.out.append(HEARTBEAT_FRAME)
        return now < self.heard_at + self.heartbeat_s * 2

    # -- asking ----------------------------------------------------------------------------------
    def send(self, channel: int, method: m.Method) -> None:
        self.out.append(encode_frame(METHOD, channel, method.encode()))

    def open_channel(self, handler: ClientChannelHandler) -> int:
        """Ask for a channel; its handler hears channel.open-ok as any other method."""
        number = self._free_number()
        self.channels[number] = handler
        self.send(number, m.ChannelOpen())
        return number

    def _free_number(self) -> int:
        most = self.channel_max or 65535
        if len(self.channels) + len(self.closing) >= most:
            raise NoChannelLeft(most)
        number = self._last_number
        while True:
            number = number % most + 1
            if number not in self.channels and number not in self.closing:
                self._last_number = number
                return number

    def close_channel(self, number: int) -> None:
        """Close a channel; its handler's ``closed(None)`` follows close-ok."""
        handler = self.channels.pop(number, None)
        if handler is not None:
            self.closing[number] = handler
            self.send(number, m.ChannelClose(200, "Goodbye"))

    def close(self, code: int = 200, text: str = "Goodbye") -> None:
        """Close the connection; it is ``finished`` after close-ok."""
        if self.state == "running":
            self.send(0, m.ConnectionClose(code, text))
            self.state = "closing"
            # What still comes for them is nobody's business.
            self.closing.update(self.channels)
            self.channels.clear()
            self.assembling.clear()
        else:
            self._end(None)

    # -- frames ----------------------------------------------------------------------------------
    def frame(self, kind: int, number: int, payload: bytes) -> None:
        """Any frame that the hot path did not take."""
        if kind == HEARTBEAT:
            return
        if number == 0:
            self._channel0(kind, payload)
        elif self.state == "closing":
            return
        elif number in self.closing:
            self._closing_frame(kind, number, payload)
        elif number not in self.channels:
            self.fail(f"a frame for channel {number}, which is not open")
        elif number in self.assembling:
            self._content_frame(kind, number, payload)
        elif kind != METHOD:
            self.fail(f"a frame of type {kind} where a method was expected")
        elif (method := self._decode(payload)) is not None:
            self._channel_method(number, method)

    def _decode(self, payload: bytes) -> m.Method | None:
        try:
            return m.decode_method(payload)
        except KeyError as error:
            self.fail(f"an unknown method {error.args[0]}")
        except m.MethodError as error:
            self.fail(str(error))
        return None

    def _channel_method(self, number: int, method: m.Method) -> None:
        channel = self.channels[number]
        if method.has_content:
            self.assembling[number] = _Assembly(method)
        elif isinstance(method, m.ChannelClose):
            del self.channels[number]
            self.send(number, m.ChannelCloseOk())
            channel.closed(as_refusal(method.reply_code, method.reply_text))
        elif isinstance(method, m.ChannelFlow):
            self.send(number, m.ChannelFlowOk(method.active))
        elif isinstance(method, m.BasicAck):
            channel.confirm(method.delivery_tag, method.multiple, True)
        elif isinstance(method, m.BasicNack):
            channel.confirm(method.delivery_tag, method.multiple, False)
        else:
            channel.method(method)

    def _closing_frame(self, kind: int, number: int, payload: bytes) -> None:
        """Deliveries on their way when we closed the channel belong to nobody."""
        self.assembling.pop(number, None)
        if kind != METHOD:
            return
        ids = payload[:4]
        if ids == b"\x00\x14\x00\x29":
            self.closing.pop(number).closed(None)
        elif ids == b"\x00\x14\x00\x28":
            self.send(number, m.ChannelCloseOk())

    def _content_frame(self, kind: int, number: int, payload: bytes) -> None:
        assembly = self.assembling[number]
        if assembly.header is None:
            if kind != HEADER or len(payload) < HEADER_START.size + 2:
                self.fail(f"a frame of type {kind} where a content header was expected")
                return
            assembly.header = payload
            assembly.left = HEADER_START.unpack_from(payload)[2]
        elif kind != BODY:
            self.fail(f"a frame of type {kind} where a content body was expected")
            return
        else:
            assembly.left -= len(payload)
            assembly.pieces.append(payload)
        if assembly.left < 0:
            self.fail("a body larger than its header announced")
        elif assembly.left == 0:
            del self.assembling[number]
            self._content(self.channels[number], assembly)

    @staticmethod
    def _content(channel: ClientChannelHandler, assembly: _Assembly) -> None:
        method, pieces = assembly.method, assembly.pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        properties = (assembly.header or b"")[HEADER_START.size :]
        if isinstance(method, m.BasicDeliver):
            channel.deliver(
                m.shortstr(method.consumer_tag)[1:],
                method.delivery_tag,
                method.redelivered,
                m.shortstr(method.exchange) + m.shortstr(method.routing_key),
                properties,
                body,
            )
        else:
            channel.content(method, properties, body)

    # -- channel 0 -------------------------------------------------------------------------------
    def _channel0(self, kind: int, payload: bytes) -> None:
        if kind != METHOD:
            self.fail(f"a frame of type {kind} on channel 0")
            return
        method = self._decode(payload)
        if method is None:
            return
        if isinstance(method, m.ConnectionClose):
            self.send(0, m.ConnectionCloseOk())
            self._end(as_refusal(method.reply_code, method.reply_text))
        elif self.state == "closing":
            if isinstance(method, m.ConnectionCloseOk):
                self._end(None)
        elif self.state in _BEFORE_RUNNING:
            self._handshake(method)
        elif isinstance(method, m.ConnectionBlocked):
            self.handler.blocked(method.reason)
        elif isinstance(method, m.ConnectionUnblocked):
            self.handler.unblocked()
        elif isinstance(method, m.ConnectionUpdateSecretOk):
            self.handler.method(method)
        else:
            self.fail(f"{method.name} out of turn")

    def _handshake(self, method: m.Method) -> None:
        state = self.state
        if isinstance(method, m.ConnectionStart) and state == "starting":
            self._start(method)
        elif isinstance(method, m.ConnectionSecure) and state == "tuning":
            self.send(0, m.ConnectionSecureOk(self.login.answer(method.challenge)))
        elif isinstance(method, m.ConnectionTune) and state == "tuning":
            self._tune(method)
        elif isinstance(method, m.ConnectionOpenOk) and state == "opening":
            self.state = "running"
            self.handler.opened()
        else:
            self.fail(f"{method.name} out of turn")

    def _start(self, method: m.ConnectionStart) -> None:
        self.server_properties = method.server_properties
        self.state = "tuning"
        offered = method.mechanisms.decode("utf-8", "replace").split()
        if self.login.mechanism not in offered:
            self._end(
                ProtocolError(
                    f"the broker lets nobody log in by {self.login.mechanism}, only by "
                    f"{', '.join(offered)}"
                )
            )
            return
        told = Table(
            {
                "product": "warren",
                "version": __version__,
                "platform": "Python",
                "capabilities": Table(CAPABILITIES),
                **self._properties,
            }
        )
        self.send(0, m.ConnectionStartOk(told, self.login.mechanism, self.login.response, "en_US"))

    def _tune(self, method: m.ConnectionTune) -> None:
        self.channel_max = _lower(self.channel_max, method.channel_max)
        self.frame_max = _lower(self.frame_max, method.frame_max)
        # Either side may switch heartbeats off only for itself: the lower of two is used, as all
        # of RabbitMQ's own clients do, and none if the user wants none.
        self.heartbeat_s = min(self.heartbeat_s, method.heartbeat or self.heartbeat_s)
        self.frame_limit = self.frame_max or 0xFFFFFFFF
        self.send(0, m.ConnectionTuneOk(self.channel_max, self.frame_max, self.heartbeat_s))
        self.send(0, m.ConnectionOpen(self.vhost))
        self.state = "opening"

    # -- the end ---------------------------------------------------------------------------------
    def _speaks_amqp(self, data: bytes) -> bool:
        """Judge the first octets: a wrong port is a common mistake, and deserves a clear word."""
        if data[:1] == b"\x01" or not data:
            return True
        if data[:1] in _TLS_RECORDS:
            problem = "the server speaks TLS there; use amqps://"
        elif len(data) < len(PROTOCOL_HEADER):
            self._tail = data
            return False
        elif data[:4] == PROTOCOL_HEADER[:4]:
            version = ".".join(str(octet) for octet in data[5:8])
            problem = f"the server speaks AMQP {version}, not 0.9.1"
        elif data[:4] == b"HTTP":
            problem = "a web server answers there; AMQP has a port of its own (5672)"
        else:
            problem = "the server does not speak AMQP"
        self._end(ProtocolError(problem))
        return False

    def fail(self, problem: str) -> None:
        """The peer broke the protocol: say so, and end."""
        if self.state == "running":
            self.send(0, m.ConnectionClose(505, f"UNEXPECTED_FRAME - {problem}"[:255]))
        self._end(ProtocolError(f"the broker sent {problem}"))

    def _end(self, failure: WarrenError | None) -> None:
        if self.state == "closed":
            return
        self.failed_in, self.state, self.failure = self.state, "closed", failure
        channels = [*self.channels.values(), *self.closing.values()]
        self.channels.clear()
        self.closing.clear()
        self.assembling.clear()
        for channel in channels:
            channel.lost(failure)
        self.handler.closed(failure)


def _lower(ours: int, theirs: int) -> int:
    """The lower of two limits, where 0 is none."""
    return min(ours, theirs) if ours and theirs else ours or theirs
