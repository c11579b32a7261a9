"""A blocking connection on a plain socket: for threads and tasks that have nothing else to do.

The protocol is ``amqp.client``'s; here is only the socket, and who waits for what. One thread at a
time may use a connection. Nothing is sent while nobody waits: who works long between two calls
calls ``beat`` now and then, or finds the connection gone.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Sequence
from math import inf
from types import TracebackType
from typing import Any, TypeVar

from warren.amqp import methods as m
from warren.amqp.client import ClientSession
from warren.amqp.client_runs import Run
from warren.client.encrypting import encrypt
from warren.client.endpoint import Endpoint
from warren.client.unread import unread
from warren.clock import moment
from warren.errors import (
    ChannelClosed,
    ConnectError,
    ConnectionForced,
    ConnectionLost,
    HostUnreachable,
    LoginRefused,
    NotAllowed,
    NotAmqp,
    NotFound,
    ProtocolError,
    Refusal,
    TlsFailed,
    VhostRefused,
    WarrenError,
)

#: How long an answer may take that is not a login.
ANSWER_S = 60.0
RECEIVE_BYTES = 1 << 18
#: Who gathers waits for so many octets, or so long; once a read has brought so many.
_GATHER_BYTES = 1 << 16
_GATHER_S = 0.005
_BUSY_BYTES = 2048

#: A connection on which nothing passes is looked after by the system, also where nobody sends
#: heartbeats: seconds until the first question, between two, and how many stay unanswered.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}

M = TypeVar("M", bound=m.Method)


class BlockingChannel:
    """One channel: answers wait in ``answers``, messages go to ``deliver``.

    A reader or publisher derives from it or sets ``deliver``, ``confirm`` and ``content``.
    """

    #: Set by who takes many deliveries at a time.
    run: Run | None = None

    def __init__(self, connection: BlockingConnection) -> None:
        self.connection = connection
        self.number = 0
        self.answers: list[m.Method] = []
        #: Why it is closed; None while it is open, or if we closed it.
        self.failure: WarrenError | None = None
        self.is_open = True
        #: The broker has cancelled a consumer of this channel: its queue is gone.
        self.cancelled: str | None = None

    # -- what the session tells ------------------------------------------------------------------
    def deliver(
        self,
        consumer_tag: bytes,
        delivery_tag: int,
        redelivered: bool,
        route: bytes,
        properties: bytes,
        body: bytes,
    ) -> None:
        """A message of a consumer."""

    def confirm(self, delivery_tag: int, multiple: bool, ack: bool) -> None:
        """A publisher confirm."""

    def content(self, method: m.Method, properties: bytes, body: bytes) -> None:
        """basic.get-ok or basic.return."""

    def method(self, method: m.Method) -> None:
        if isinstance(method, m.BasicCancel):
            self.cancelled = method.consumer_tag
        else:
            self.answers.append(method)

    def closed(self, refusal: Refusal | None) -> None:
        self.is_open, self.failure = False, refusal

    def lost(self, error: WarrenError | None) -> None:
        self.is_open = False
        self.failure = error or ConnectionLost(self.connection.address, "it was closed")

    # -- asking ----------------------------------------------------------------------------------
    def send(self, method: m.Method) -> None:
        """Put a method down to be sent with the next wait or ``flush``."""
        self._check()
        self.connection.session.send(self.number, method)

    def call(self, method: m.Method, answer: type[M], timeout_s: float = ANSWER_S) -> M:
        """Send a method and wait for its answer; raises the Refusal that closed the channel."""
        self.send(method)
        return self.expect(answer, timeout_s)

    def expect(self, answer: type[M], timeout_s: float = ANSWER_S) -> M:
        """Wait for the next answer, which must be of this kind."""
        self.connection.wait(lambda: bool(self.answers) or not self.is_open, timeout_s)
        if not self.answers:
            self._check()
        method = self.answers.pop(0)
        if not isinstance(method, answer):
            raise ProtocolError(f"{method.name} came where {answer.name} was expected")
        return method

    def _check(self) -> None:
        if not self.is_open:
            raise self.failure or ChannelClosed("by its owner")

    def ready_messages(self, queue: str) -> tuple[int, int]:
        """Messages ready and consumers of a queue, by passive declare."""
        ok = self.call(m.QueueDeclare(queue=queue, passive=True), m.QueueDeclareOk)
        return ok.message_count, ok.consumer_count

    def stop(self) -> None:
        """Close the channel without waiting; what it holds unacknowledged goes back."""
        if self.is_open:
            self.connection.session.close_channel(self.number)

    def close(self) -> None:
        """The same, and wait for the broker to say so."""
        if self.is_open:
            self.stop()
            self.connection.wait(lambda: not self.is_open, ANSWER_S)


C = TypeVar("C", bound=BlockingChannel)


class BlockingConnection:
    """A connection to the first of some endpoints that lets us in.

    ::

        with BlockingConnection.open([Endpoint.from_uri("amqp://guest:guest@localhost/")]) as link:
            channel = link.channel()
            print(channel.ready_messages("orders"))
    """

    def __init__(self, endpoint: Endpoint, *, name: str = "warren") -> None:
        self.endpoint = endpoint
        #: Why the broker takes no publishes at the moment; None if it does.
        self.blocked_by: str | None = None
        self.session = ClientSession(
            endpoint.login,
            vhost=endpoint.vhost,
            handler=self,
            heartbeat_s=endpoint.heartbeat_s,
            properties={"connection_name": name},
        )
        #: The broker was there then: it has said something since.
        self.alive_at = moment()
        #: Octets that were read; a moment, and how many had come by then.
        self._octets = 0.0
        self._mark = (self.alive_at, inf)
        self._socket = self._dial(endpoint)
        self._gathering = False
        try:
            self._log_in()
        except BaseException:
            self.abandon()
            raise

    def _log_in(self) -> None:
        endpoint, session = self.endpoint, self.session
        try:
            self.wait(lambda: session.state == "running", endpoint.connect_timeout_s)
        except TimeoutError:
            raise HostUnreachable(self.address, "it does not answer") from None
        except ProtocolError as error:
            raise NotAmqp(self.address, str(error)) from None
        except (ConnectionLost, Refusal) as error:
            # RabbitMQ says 403 to a login and 530 to a vhost; older brokers just hang up.
            if isinstance(error, ConnectionForced):  # it goes down
                raise HostUnreachable(self.address, str(error)) from None
            if isinstance(error, ConnectionLost) and self._refusals_are_told:
                raise HostUnreachable(self.address, error.reason) from None
            if isinstance(error, NotAllowed | NotFound) or session.failed_in == "opening":
                raise VhostRefused(self.address, endpoint.vhost, str(error)) from None
            if isinstance(error, Refusal) or session.failed_in == "tuning":
                raise LoginRefused(self.address, endpoint.user) from None
            raise HostUnreachable(self.address, self._hung_up(error.reason)) from None

    def _hung_up(self, reason: str) -> str:
        """With TLS 1.3 a client is done with its handshake before the broker looks at it."""
        if not self.endpoint.tls or self.endpoint.cert_file:
            return reason
        return f"{reason}; one that wants a client certificate does so: tlsCertFile, tlsKeyFile"

    @property
    def _refusals_are_told(self) -> bool:
        """The broker has said that it does not refuse a login by hanging up."""
        capabilities = self.session.server_properties.get("capabilities") or {}
        return bool(capabilities.get("authentication_failure_close"))

    @property
    def address(self) -> str:
        """Where it leads: host and port."""
        return self.endpoint.shown

    @classmethod
    def open(cls, endpoints: Sequence[Endpoint], *, name: str = "warren") -> BlockingConnection:
        """The first endpoint that can be reached; a refused login is not tried elsewhere."""
        unreachable: ConnectError | None = None
        for endpoint in endpoints:
            try:
                return cls(endpoint, name=name)
            except (HostUnreachable, TlsFailed, NotAmqp) as error:
                unreachable = error
        assert unreachable is not None, "no endpoint was given"
        raise unreachable

    @staticmethod
    def _dial(endpoint: Endpoint) -> socket.socket:
        host, port = endpoint.address
        context = endpoint.tls_context()
        try:
            plain_socket = socket.create_connection((host, port), endpoint.connect_timeout_s)
        except OSError as error:
            raise HostUnreachable(endpoint.shown, str(error)) from None
        plain_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _keep_alive(plain_socket)
        if context is None:
            return plain_socket
        return encrypt(
            plain_socket,
            context,
            host=host,
            shown=endpoint.shown,
            authority="tlsCaFile",
            certificate="tlsCertFile, tlsKeyFile",
        )

    # -- what the session tells ------------------------------------------------------------------
    def opened(self) -> None:
        """``wait`` sees the session's state."""

    def blocked(self, reason: str) -> None:
        self.blocked_by = reason

    def unblocked(self) -> None:
        self.blocked_by = None

    def method(self, method: m.Method) -> None:
        """Nothing is asked on channel 0."""

    def closed(self, error: WarrenError | None) -> None:
        """``wait`` sees the session's state."""

    # -- the socket ------------------------------------------------------------------------------
    @property
    def is_open(self) -> bool:
        return self.session.state == "running"

    def flush(self) -> None:
        """Write what is to be sent."""
        data = self.session.data_to_send(time.monotonic())
        if data:
            try:
                self._socket.settimeout(ANSWER_S)
                self._socket.sendall(data)
            except OSError as error:
                raise self._gone(str(error)) from None

    def pump(self, timeout_s: float, *, gather: bool = False) -> bool:
        """Write what is to be sent and work through one read; False if nothing came in time.

        RabbitMQ writes a few messages at a time, and each wakes a reader who works faster than it:
        half of the reader's time is waking up, and the broker's processor is taken for it. Who
        ``gather``s lets them come together first while many come.
        """
        session = self.session
        if session.state == "closed" and session.failure is not None:
            raise session.failure
        if self._mark[1] == inf:  # before we ask for more: what is read beyond came after this
            self._mark = (moment(), self._octets + unread(self._socket))
        self.flush()
        now = time.monotonic()
        deadline = session.next_deadline()
        wait_s = timeout_s if deadline is None else min(timeout_s, max(0.001, deadline - now))
        try:
            if self._gathering:
                data = self._gathered(wait_s)
            else:
                data = self._read(max(0.0001, wait_s))
        except OSError as error:
            raise self._gone(str(error)) from None
        if data is None:
            self._mark = (self._mark[0], inf)  # all was read: the next moment will do
            self._tick()
            return False
        if not data:
            raise self._gone("the broker closed the connection")
        self._octets += len(data)
        if self._octets > self._mark[1]:
            self.alive_at, self._mark = self._mark[0], (self._mark[0], inf)
        if gather and not self._gathering and len(data) >= _BUSY_BYTES:
            self._gather_at_least(_GATHER_BYTES)
        now = time.monotonic()
        session.receive(data, now)
        if session.state == "closed" and session.failure is not None:
            self.flush_quietly()
            raise session.failure
        if deadline is not None and now >= deadline:  # the broker counts what it hears, not says
            self._tick()
        return True

    def _read(self, wait_s: float) -> bytes | None:
        self._socket.settimeout(wait_s)
        try:
            return self._socket.recv(RECEIVE_BYTES)
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
            return None

    def _gathered(self, wait_s: float) -> bytes | None:
        data = self._read(min(wait_s, _GATHER_S))
        if data is None:
            self._gather_at_least(1)
            data = self._read(0.0)  # less than was waited for
        return data if data is not None else self._read(max(0.0001, wait_s - _GATHER_S))

    def _gather_at_least(self, octets: int) -> None:
        """What the system waits for before it says that there is something to read."""
        if not isinstance(self._socket, ssl.SSLSocket):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, octets)
            self._gathering = octets > 1

    def _tick(self) -> None:
        if not self.session.tick(time.monotonic()):
            raise self._gone("no heartbeat came")

    def wait(self, done: Callable[[], Any], timeout_s: float) -> None:
        """Read until ``done``; raises TimeoutError, or what ended the connection."""
        deadline = time.monotonic() + timeout_s
        while not done():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no answer from {self.address} in {timeout_s:g} s")
            self.pump(left)
        self.flush()

    def beat(self) -> None:
        """Send a heartbeat if one is due; for who does something else for long."""
        self._tick()
        self.flush()

    def flush_quietly(self) -> None:
        try:
            data = self.session.data_to_send()
            if data:
                self._socket.sendall(data)
        except OSError:
            return

    def _gone(self, reason: str) -> WarrenError:
        error = ConnectionLost(self.address, reason)
        failed = self.session.failure
        self.session.lost(error)
        return failed or error

    # -- channels and the end --------------------------------------------------------------------
    def channel(self, kind: type[C] | None = None) -> Any:
        """Open a channel and wait until it is open."""
        channel = self.begin_channel(kind or BlockingChannel)
        channel.expect(m.ChannelOpenOk)
        return channel

    def begin_channel(self, kind: type[C]) -> C:
        """Ask for a channel; its channel.open-ok is still to be expected."""
        channel = kind(self)
        channel.number = self.session.open_channel(channel)
        return channel

    def close(self) -> None:
        """Say goodbye and wait for the answer; a peer that does not answer is left."""
        try:
            if self.is_open:
                self.session.close()
                self.wait(lambda: self.session.finished, 5.0)
        except (WarrenError, TimeoutError):
            pass
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the socket without a word, as a crash would."""
        self._socket.close()
        self.session.lost(ConnectionLost(self.address, "it was given up"))

    def __enter__(self) -> BlockingConnection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<BlockingConnection to {self.endpoint.shown}: {self.session.state}>"


def _keep_alive(link: socket.socket) -> None:
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):  # not every system has them all
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
