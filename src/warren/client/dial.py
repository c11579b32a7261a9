"""Make a connection: TCP, TLS and the AMQP handshake, in a thread that may wait.

Connecting is rare and its parts block (names to look up, certificates to check), so it is plain
blocking code, for the asyncio client and the blocking one alike. What goes wrong here is nearly
always a wrong URL: each case gets its own error.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any

from warren.amqp.client import ClientSession
from warren.client.address import Address
from warren.client.encrypting import encrypt
from warren.errors import (
    AccessRefused,
    ConnectError,
    ConnectionLost,
    HostUnreachable,
    LoginRefused,
    MechanismRefused,
    NotAllowed,
    NotAmqp,
    ProtocolError,
    VhostRefused,
    WarrenError,
)

READ_SIZE = 65536


class Dialer:
    """Connects once; ``abort`` from another thread makes it give up."""

    def __init__(self, address: Address, properties: Mapping[str, Any] | None = None) -> None:
        self._address = address
        self._properties = properties or {}
        self._socket: socket.socket | None = None
        self._aborted = False

    def dial(self) -> tuple[socket.socket, ClientSession]:
        """A socket (blocking, without timeout) and a session that is running on it.

        Raises:
            ConnectError: it could not be made, and why.
        """
        address = self._address
        deadline = time.monotonic() + address.connect_timeout_s
        self._socket = sock = self._connect(address)
        try:
            if address.tls is not None:
                sock.settimeout(max(0.001, deadline - time.monotonic()))
                self._socket = sock = self._encrypt(sock, address.tls)
            session = self._handshake(sock, deadline)
            sock.settimeout(None)
        except BaseException:
            sock.close()
            raise
        if self._aborted:
            sock.close()
            raise HostUnreachable(str(address), "given up")
        return sock, session

    def abort(self) -> None:
        """Give up, from any thread."""
        self._aborted = True
        sock = self._socket
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _connect(self, address: Address) -> socket.socket:
        try:
            sock = socket.create_connection((address.host, address.port), address.connect_timeout_s)
        except socket.gaierror as error:
            reason = f"host '{address.host}' is not known: {error.strerror}"
            raise HostUnreachable(str(address), reason) from None
        except TimeoutError:
            reason = f"no answer within {address.connect_timeout_s:g} s"
            raise HostUnreachable(str(address), reason) from None
        except OSError as error:
            raise HostUnreachable(str(address), error.strerror or str(error)) from None
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def _encrypt(self, sock: socket.socket, context: ssl.SSLContext) -> ssl.SSLSocket:
        return encrypt(
            sock,
            context,
            host=self._address.host,
            shown=str(self._address),
            authority="amqps://...?cacertfile=ca.pem",
            certificate="certfile=, keyfile=",
        )

    def _handshake(self, sock: socket.socket, deadline: float) -> ClientSession:
        address = self._address
        session = ClientSession(
            address.login,
            vhost=address.vhost,
            heartbeat_s=address.heartbeat_s,
            channel_max=address.channel_max,
            properties=self._properties,
        )
        try:
            while session.state != "running":
                sock.settimeout(max(0.001, deadline - time.monotonic()))
                sock.sendall(session.data_to_send(time.monotonic()))
                data = sock.recv(READ_SIZE)
                if not data:
                    session.lost(ConnectionLost(str(address), "the broker hung up"))
                session.receive(data, time.monotonic())
                if session.failure is not None:
                    raise self._explained(session, session.failure)
        except TimeoutError:
            reason = f"connected, but no answer within {address.connect_timeout_s:g} s"
            if session.state == "starting":
                # The first line of a request has an end; our header has none.
                reason += "; the management API's port, 15672, is as silent: AMQP has 5672"
            raise HostUnreachable(str(address), reason) from None
        except OSError as error:
            failure = ConnectionLost(str(address), error.strerror or str(error))
            session.lost(failure)
            raise self._explained(session, failure) from None
        return session

    @property
    def _who_hangs_up(self) -> str:
        if self._address.tls is None:
            return "a TLS port would do that: then use amqps://"
        # With TLS 1.3 a client is done with its handshake before the broker looks at it.
        return "a broker that wants a client certificate would do that: then certfile=, keyfile="

    def _explained(self, session: ClientSession, failure: WarrenError) -> WarrenError:
        """What the end of a handshake means to people."""
        where, state = str(self._address), session.failed_in
        if state == "starting":
            if isinstance(failure, ConnectionLost):
                return NotAmqp(where, f"{failure.reason}; {self._who_hangs_up}")
            return NotAmqp(where, str(failure))
        lost = isinstance(failure, ConnectionLost)
        if state == "tuning" and (lost or isinstance(failure, AccessRefused)):
            return LoginRefused(where, self._address.login.user)
        if state == "tuning" and isinstance(failure, ProtocolError):
            return MechanismRefused(where, str(failure))
        if state == "opening" and (lost or isinstance(failure, NotAllowed)):
            return VhostRefused(where, self._address.vhost, str(failure))
        if isinstance(failure, ProtocolError):
            return NotAmqp(where, str(failure))
        return (
            failure if isinstance(failure, ConnectError) else HostUnreachable(where, str(failure))
        )
