"""The server's side of one connection: what may come when, and what is answered to it.

The life of a connection, each state with what it waits for:

    header      the protocol header; anything else is answered with ours and the end
    starting    connection.start-ok
    securing    connection.secure-ok (mechanisms that ask back)
    tuning      connection.tune-ok
    opening     connection.open
    running     everything
    closing     we have sent connection.close and wait for close-ok; all else is ignored
    closed      nothing; the socket is to be closed once the output is written

A channel is in one of four places: ``ready`` (waits for a method), ``assembling`` (waits for the
content of a publish), ``draining`` (we have sent channel.close and wait for close-ok), or nowhere.

Nothing here decides what an operation means: that is the business of the ConnectionHandler and
the ChannelHandlers it makes. They refuse by raising ``Refusal``; this module turns that into the
right close method. Every number and text is RabbitMQ's.
"""

from __future__ import annotations

from warren.amqp import handshake
from warren.amqp import methods as m
from warren.amqp.assembly import Assembly, Draining, NotOpen
from warren.amqp.content import HEADER_START
from warren.amqp.frames import (
    BODY,
    FRAME_MAX_DEFAULT,
    FRAME_MIN_SIZE,
    HEADER,
    HEARTBEAT,
    HEARTBEAT_FRAME,
    METHOD,
    OVERHEAD,
    PROTOCOL_HEADER,
    encode_frame,
)
from warren.amqp.handlers import ChannelHandler, ConnectionHandler
from warren.amqp.hot import Run, read_frames
from warren.amqp.tables import Table, raw, text
from warren.amqp.terms import erlang_text
from warren.errors import (
    ChannelError,
    CommandInvalid,
    FrameError,
    InternalError,
    MalformedText,
    NotAllowed,
    Refusal,
    UnexpectedFrame,
)

CHANNEL_MAX = 2047

HEARTBEAT_S = 60
#: The largest message that is taken; RabbitMQ's default.
MAX_MESSAGE_BYTES = 134_217_728


class ServerSession:
    """Bytes in by ``receive``, bytes out by ``data_to_send``."""

    def __init__(
        self,
        handler: ConnectionHandler,
        *,
        heartbeat_s: int = HEARTBEAT_S,
        channel_max: int = CHANNEL_MAX,
        frame_max: int = FRAME_MAX_DEFAULT,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
    ) -> None:
        self.handler = handler
        self.state = "header"
        self.out: list[bytes] = []
        #: Whole frames on channel 0 that may overtake the rest.
        self.aside: list[bytes] = []
        self.ready: dict[int, ChannelHandler] = {}
        self.assembling: dict[int, Assembly] = {}
        self.draining: set[int] = set()
        #: What the messages take that have arrived in part.
        self.half_bytes = 0
        self.frame_limit = FRAME_MIN_SIZE
        self.frame_max = frame_max
        self.channel_max = channel_max
        self.heartbeat_s = heartbeat_s
        self.max_message_bytes = max_message_bytes
        self.client_properties = Table()
        self.mechanism = ""
        self.heard = False  # something came since the last beat
        self.silent_close = False  # a client we don't trust is made to wait for its end
        self.reset = False  # the connection is to be cut at once, without a word
        self.wary = False  # look at every frame: the next publish may have to wait
        #: Why nothing is read for now: each reason is taken back by who gave it.
        self.holds: set[str] = set()
        #: Publishes that are alike, the last ones that came in a row.
        self.run: Run | None = None
        self._tail = b""
        self._misses = 0

    # -- the four verbs --------------------------------------------------------------------------
    def receive(self, data: bytes) -> None:
        """Take what the socket gave."""
        self.heard = True
        if self._tail:
            data = self._tail + data
            self._tail = b""
        if self.state == "header":
            data = self._protocol_header(data)
        if self.state == "header" or self.finished:
            return
        used = read_frames(self, data) if not self.held else 0
        if used < len(data):
            self._tail = data[used:]

    @property
    def held(self) -> bool:
        return bool(self.holds)

    @property
    def unread_bytes(self) -> int:
        """What came while the session was held, or is not a whole frame yet."""
        return len(self._tail)

    def hold(self, reason: str) -> None:
        """Read nothing until ``go_on`` is called for the same reason."""
        self.holds.add(reason)

    def go_on(self, reason: str) -> None:
        """One reason less to wait; without any, read what came meanwhile."""
        self.holds.discard(reason)
        if self._tail and not self.holds:
            heard = self.heard
            self.receive(b"")
            self.heard = heard

    def data_to_send(self) -> bytes:
        """Take what is to be written."""
        if self.aside:
            self.out += self.aside
            self.aside.clear()
        data = b"".join(self.out)
        self.out.clear()
        return data

    def send_aside(self, method: m.Method) -> None:
        """Say something on channel 0 that need not keep its place among the rest."""
        self.aside.append(encode_frame(METHOD, 0, method.encode()))

    @property
    def finished(self) -> bool:
        """True when the socket is to be closed once everything is written."""
        return self.state == "closed"

    def lost(self) -> None:
        """The socket is gone."""
        self._end_channels()
        if self.state != "closed":
            self.state = "closed"
        self.handler.close()

    # -- heartbeats ------------------------------------------------------------------------------
    def beat(self, wrote: bool) -> bool:
        """To be called twice a heartbeat interval; False when the peer must be given up.

        ``wrote`` tells whether anything was written since the last call. RabbitMQ counts: two
        whole intervals without an octet and the peer is dead.
        """
        if not wrote and self.state in ("running", "opening", "closing"):
            self.aside.append(HEARTBEAT_FRAME)
        self._misses = 0 if self.heard else self._misses + 1
        self.heard = False
        return self._misses < 4

    # -- sending ---------------------------------------------------------------------------------
    def send(self, channel: int, method: m.Method) -> None:
        self.out.append(encode_frame(METHOD, channel, method.encode()))

    # -- frames ----------------------------------------------------------------------------------
    def frame(self, kind: int, number: int, payload: bytes) -> None:
        """Any frame that ``hot`` did not take."""
        if self.state == "closing":
            self._frame_while_closing(kind, number, payload)
            return
        if kind == HEARTBEAT and not payload:
            if number:
                self._unexpected_frame(kind, number, payload)
            return
        if not self._readable(kind, payload):
            if self.state == "running":
                self.refuse(0, FrameError(f"type {kind}, {_snippet(payload)}: unknown_frame"))
            else:
                self.say_nothing()
        elif number == 0:
            if kind != METHOD:
                self._unexpected_frame(kind, number, payload)
                return
            self._channel0(payload)
        elif self.state != "running":
            self._unexpected_frame(kind, number, payload)
        else:
            self._channel_frame(kind, number, payload)

    @staticmethod
    def _readable(kind: int, payload: bytes) -> bool:
        if kind == METHOD:
            return len(payload) >= 4
        if kind == HEADER:
            return len(payload) >= HEADER_START.size
        return kind == BODY

    def _unexpected_frame(self, kind: int, number: int, payload: bytes) -> None:
        self.refuse(0, UnexpectedFrame(f"type {kind}, {_snippet(payload)}"))

    def _channel_frame(self, kind: int, number: int, payload: bytes) -> None:
        assembly = self.assembling.get(number)
        if assembly is not None:
            self._content_frame(assembly, kind, number, payload)
            return
        known = number in self.ready or number in self.draining
        if not known and not self._may_open():
            return
        if kind != METHOD:
            self.refuse(0, UnexpectedFrame("expected method frame, got non method frame instead"))
            return
        method = self._decode(payload)
        if method is None:
            return
        ids = (method.class_id, method.method_id)
        if number in self.ready:
            self._channel_method(number, method, payload, ids)
        elif number in self.draining:
            self._draining_method(number, method, payload)
        else:
            if isinstance(method, m.ChannelOpen):
                self.ready[number] = self.handler.channel(number)
                self.send(number, m.ChannelOpenOk())
            elif method.has_content:
                # RabbitMQ reads the content before its channel finds out that it is not open.
                self.assembling[number] = Assembly(NotOpen(), payload[4:], ids)
            else:
                self.refuse(0, ChannelError("expected 'channel.open'"), ids)

    def _may_open(self) -> bool:
        in_use = len(self.ready) + len(self.assembling) + len(self.draining)
        if self.channel_max and in_use >= self.channel_max:
            self.refuse(
                0,
                NotAllowed(
                    f"number of channels opened ({in_use}) has reached the negotiated "
                    f"channel_max ({self.channel_max})"
                ),
            )
            return False
        return True

    def _decode(self, payload: bytes) -> m.Method | None:
        """The method, or None after the connection was ended because there is none."""
        try:
            return m.decode_method(payload)
        except (KeyError, m.BadTable):
            # RabbitMQ's reader dies of these; its client sees a reset.
            self._end_channels()
            self.reset = True
            self.state = "closed"
            self.handler.close()
        except m.MethodError as error:
            self.refuse(0, undecodable(error, payload[4:]), _ids(payload))
        return None

    def _channel_method(
        self, number: int, method: m.Method, payload: bytes, ids: tuple[int, int]
    ) -> None:
        channel = self.ready[number]
        if method.has_content:
            del self.ready[number]
            self.assembling[number] = Assembly(channel, payload[4:], ids)
        elif isinstance(method, m.ChannelOpen):
            self.refuse(0, ChannelError("second 'channel.open' seen"), ids)
        elif isinstance(method, m.ChannelClose):
            channel.settle()
            del self.ready[number]
            channel.close()
            self.send(number, m.ChannelCloseOk())
        else:
            try:
                channel.method(method)
            except Refusal as refusal:
                self.refuse(number, refusal, ids)

    def _content_frame(self, assembly: Assembly, kind: int, number: int, payload: bytes) -> None:
        before = assembly.held
        problem = assembly.take(kind, payload, self.max_message_bytes)
        if problem is not None:
            self.refuse(0, UnexpectedFrame(problem), assembly.ids)
            return
        self._held(assembly.held - before)
        self.handler.published()
        if assembly.complete:
            self._content_done(assembly, number)

    def _held(self, size: int) -> None:
        """So many octets more (or less) of messages that have arrived in part."""
        self.half_bytes += size
        self.handler.half_received(size)

    def _content_done(self, assembly: Assembly, number: int) -> None:
        handler, size = assembly.handler, assembly.body_size
        del self.assembling[number]
        self._held(-assembly.held)
        if isinstance(handler, Draining):
            self.draining.add(number)
            return
        if not isinstance(handler, NotOpen):
            self.ready[number] = handler
        try:
            if assembly.ids != (60, 40) and not isinstance(handler, NotOpen):
                raise CommandInvalid("unimplemented method")
            if size > self.max_message_bytes:
                handler.too_large(size)
            content, header_size, flags = assembly.content(number)
            handler.publish(assembly.arguments, content, header_size, size, flags)
        except Refusal as refusal:
            self.refuse(number, refusal, assembly.ids)

    # -- channel 0 -------------------------------------------------------------------------------
    def _channel0(self, payload: bytes) -> None:
        try:
            method = m.decode_method(payload)
        except KeyError:
            self._decode(payload)
            return
        except m.MethodError as error:
            self.refuse(0, InternalError(str(error)))
            return
        try:
            self._connection_method(method)
        except Refusal as refusal:
            self.refuse(0, refusal, (method.class_id, method.method_id))

    def _connection_method(self, method: m.Method) -> None:
        state = self.state
        if handshake.advance(self, method):
            return
        if isinstance(method, m.ConnectionClose) and state == "running":
            self._end_channels()
            self.send(0, m.ConnectionCloseOk())
            self.state = "closed"
            self.handler.close()
        elif isinstance(method, m.ConnectionUpdateSecret) and state == "running":
            self.handler.update_secret(method.new_secret)
            self.send(0, m.ConnectionUpdateSecretOk())
        elif isinstance(method, m.ConnectionCloseOk) and state == "closing":
            self.state = "closed"
        else:
            raise ChannelError(f"unexpected method in connection state {state}")

    def authenticate(self, response: bytes) -> None:
        """The client says who it is."""
        handshake.authenticate(self, response)

    def announced(self, capability: str) -> bool:
        """Did the client announce this capability?"""
        capabilities = self.client_properties.get("capabilities")
        return isinstance(capabilities, dict) and capabilities.get(capability) is True

    # -- refusing and closing --------------------------------------------------------------------
    def close(self, refusal: Refusal) -> None:
        """Close from our side: by management, or because the broker stops."""
        if self.state == "running":
            self.refuse(0, refusal)
        else:
            self.state = "closed"

    def refuse(self, number: int, refusal: Refusal, ids: tuple[int, int] = (0, 0)) -> None:
        """Answer a refusal: it closes the channel, or the connection."""
        if refusal.scope == "channel" and number:
            self._close_channel(number, refusal, ids)
            return
        if self.state in ("starting", "securing", "tuning") or (
            self.state == "opening" and not isinstance(refusal, NotAllowed)
        ):
            self.say_nothing()
            return
        self._end_channels()
        self.handler.close()
        ids = (0, 0) if refusal.anonymous else ids
        self.send(0, m.ConnectionClose(refusal.code, _cut(refusal.reply_text), *ids))
        self.state = "closing"
        self.holds.clear()  # close-ok must be heard

    def say_nothing(self) -> None:
        """RabbitMQ has no words for a peer that has not opened its connection; it must wait."""
        self.silent_close = True
        self.state = "closed"

    def _close_channel(self, number: int, refusal: Refusal, ids: tuple[int, int]) -> None:
        channel = self.ready.pop(number, None)
        assembly = self.assembling.pop(number, None)
        handler = channel or (assembly.handler if assembly else None)
        if assembly is not None:
            self._held(-assembly.held)
        if handler is not None:
            handler.close()
        self.draining.add(number)
        self.send(number, m.ChannelClose(refusal.code, _cut(refusal.reply_text), *ids))

    def _end_channels(self) -> None:
        for channel in [*self.ready.values(), *(a.handler for a in self.assembling.values())]:
            channel.close()
        for assembly in self.assembling.values():
            self._held(-assembly.held)
        self.ready.clear()
        self.assembling.clear()
        self.draining.clear()

    def _draining_method(self, number: int, method: m.Method, payload: bytes) -> None:
        if method.has_content:
            self.draining.discard(number)
            ids = (method.class_id, method.method_id)
            self.assembling[number] = Assembly(Draining(), payload[4:], ids)
        elif isinstance(method, m.ChannelCloseOk):
            self.draining.discard(number)
        elif isinstance(method, m.ChannelClose):
            self.send(number, m.ChannelCloseOk())
        elif isinstance(method, m.ChannelOpen):
            self.refuse(0, ChannelError("second 'channel.open' seen"), (20, 10))

    def _frame_while_closing(self, kind: int, number: int, payload: bytes) -> None:
        if number or kind != METHOD or len(payload) < 4:
            return
        ids = _ids(payload)
        if ids == (10, 51):
            self.state = "closed"
        elif ids == (10, 50):
            self.send(0, m.ConnectionCloseOk())

    # -- what is not even a frame ----------------------------------------------------------------
    def _protocol_header(self, data: bytes) -> bytes:
        if len(data) < len(PROTOCOL_HEADER):
            self._tail = data
            return b""
        return data[8:] if handshake.greet(self, data[:8]) else b""

    def frame_too_large(self, kind: int, number: int, size: int) -> None:
        """A frame announces more than was negotiated: nothing behind it can be read."""
        most = self.frame_limit - OVERHEAD
        self._fatal(
            FrameError(f"type {kind}, all octets = <<>>: {{frame_too_large,{size},{most}}}")
        )

    def bad_frame_end(self, kind: int, number: int, payload: bytes, octet: int) -> None:
        """A frame without its end octet: the stream is out of step."""
        place = f"type {kind}, {_snippet(payload)}: "
        # Erlang breaks the line of a term that would reach beyond its 80th column.
        wide = len(place) + len(f"{{invalid_frame_end_marker,{octet}}}") > 78
        gap = "\n" + " " * (len(place) + 1) if wide else ""
        self._fatal(FrameError(f"{place}{{invalid_frame_end_marker,{gap}{octet}}}"))

    def _fatal(self, refusal: Refusal) -> None:
        if self.state not in ("closing", "closed"):
            self.refuse(0, refusal)
        self.say_nothing()

    def fail(self) -> None:
        """The broker itself has failed over what this peer sent."""
        self._fatal(InternalError("unexpected error"))


def undecodable(error: m.MethodError, arguments: bytes) -> FrameError:
    """What RabbitMQ answers to arguments that do not fit their method."""
    if isinstance(error, m.NotUtf8):
        return MalformedText()
    return FrameError(f"cannot decode <<{','.join(map(str, arguments))}>>")


def _ids(payload: bytes) -> tuple[int, int]:
    return int.from_bytes(payload[:2], "big"), int.from_bytes(payload[2:4], "big")


def _snippet(payload: bytes) -> str:
    word = "all" if len(payload) <= 16 else "first 16"
    return f"{word} octets = {erlang_text(payload[:16])}"


def _cut(reply_text: str) -> str:
    """A reply text has 255 octets at most; RabbitMQ ends a longer one with dots."""
    octets = raw(reply_text)
    return reply_text if len(octets) <= 255 else text(octets[:252] + b"...")
