"""A client's connection as the broker sees it: who, where, what it holds, whether it is blocked."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from warren.amqp import methods as m
from warren.amqp.session import ServerSession
from warren.amqp.tables import Table
from warren.broker.channel import Channel
from warren.broker.logins import is_loopback
from warren.broker.users import MECHANISMS, name_in
from warren.errors import AccessRefused

if TYPE_CHECKING:
    from warren.broker.consumer import Consumer
    from warren.broker.core import BrokerCore
    from warren.broker.permissions import Access
    from warren.broker.users import CertificateName, User
    from warren.broker.vhost import AnyQueue, VirtualHost

log = logging.getLogger(__name__)

#: How many octets of deliveries may wait for one connection's socket.
BUDGET = 512 * 1024


class CountingSession(ServerSession):
    """A session that counts what goes in and out, a read or a write at a time."""

    received_bytes = received = sent_bytes = sent = 0
    handler: BrokerConnection

    def receive(self, data: bytes) -> None:
        self.received_bytes += len(data)
        self.received += 1
        super().receive(data)

    def data_to_send(self) -> bytes:
        data = super().data_to_send()
        self.sent_bytes += len(data)
        self.sent += 1
        return data

    def authenticate(self, response: bytes) -> None:
        """A login waits for its turn where others have failed."""
        wait_ms = self.handler.login_wait_ms(self.mechanism, response)
        if wait_ms:
            self.hold("login")
            self.handler.core.timers.after(wait_ms, lambda: self._let_in(response))
        else:
            super().authenticate(response)

    def _let_in(self, response: bytes) -> None:
        if self.state == "securing":  # the peer may have gone meanwhile
            super().authenticate(response)
            self.go_on("login")
            self.handler.wants_write()


class BrokerConnection:
    """One connection; the ``session`` speaks for it."""

    mechanisms = MECHANISMS
    #: Whom the client's verified certificate names; set by the shell.
    certificate: CertificateName | None = None
    #: What is known of its TLS, by RabbitMQ's names; None without, set by the shell.
    tls: dict[str, str] | None = None

    def __init__(self, core: BrokerCore, peer: tuple[str, int], local: tuple[str, int]) -> None:
        self.core = core
        self.peer = peer
        self.local = local
        self.connected_at_ms = core.clock.wall_ms()
        self.name = f"{peer[0]}:{peer[1]} -> {local[0]}:{local[1]}"
        self.server_properties: Table = core.server_properties
        self.session = CountingSession(
            self,
            heartbeat_s=core.heartbeat_s,
            channel_max=core.channel_max,
            max_message_bytes=core.max_message_bytes,
        )
        self.vhost: VirtualHost
        #: What the user may do in the virtual host.
        self.access: Access
        self.user: User | None = None
        self.user_name = ""
        self.impersonator = False
        self.exclusive_queues: dict[AnyQueue, None] = {}
        #: Octets of deliveries that may still be put into ``session.out``; the shell refills it.
        self.budget = BUDGET
        self.starved: dict[Consumer, None] = {}
        self.blocked = False
        #: The journal's batch that must be safe before more is written.
        self.barrier = 0
        #: Called when the session has something to write; set by the shell.
        self.shell: Any = None
        self._closed = False
        #: Too many have failed: the login is refused without a look at it.
        self._unwelcome = False

    # -- for the session -------------------------------------------------------------------------
    def login_wait_ms(self, mechanism: str, response: bytes) -> int:
        """How long a login has to wait; a certificate can't be guessed."""
        if mechanism == "EXTERNAL":
            return 0
        wait_ms = self.core.admin.login_wait_ms(self.peer[0], name_in(mechanism, response))
        self._unwelcome = wait_ms is None
        return wait_ms or 0

    def authenticate(self, mechanism: str, response: bytes) -> bytes | None:
        if self._unwelcome:
            log.warning("%s: %s login refused: too many have failed", self.name, mechanism)
            raise AccessRefused("too many logins have failed")
        self.user = self.core.log_in(self, mechanism, response)
        self.user_name = self.user.name
        self.impersonator = "impersonator" in self.user.tags
        return None

    def open(self, virtual_host: str) -> None:
        self.vhost = self.core.admin.open(self, virtual_host)
        self.access = self.core.admin.access(self.user_name, virtual_host)

    def opened(self) -> None:
        self.core.connections[self] = None
        self.core.churn["connection_created"] += 1
        self.session.wary = bool(self.core.alarm)
        self.core.opened(self)

    def update_secret(self, secret: bytes) -> None:
        """Accepted: passwords don't expire here."""

    @property
    def from_loopback(self) -> bool:
        return is_loopback(self.peer[0])

    @property
    def channels(self) -> list[Channel]:
        """Its open channels."""
        session = self.session
        handlers = [*session.ready.values(), *(a.handler for a in session.assembling.values())]
        channels = [handler for handler in handlers if isinstance(handler, Channel)]
        return sorted(channels, key=lambda channel: channel.number)

    def channel(self, number: int) -> Channel:
        self.core.admin.check_channels(self)
        return Channel(self, number)

    def published(self) -> None:
        if self.core.alarm and not self.blocked and self.core.watch.blocks(self):
            self._block()

    def half_received(self, size: int) -> None:
        self.core.watch.half_received(self, size)

    def close(self) -> None:
        """Exclusive queues go with their connection."""
        if self._closed:
            return
        self._closed = True
        if self.core.connections.pop(self, self) is None:
            self.core.churn["connection_closed"] += 1
        for queue in list(self.exclusive_queues):
            queue.vhost.delete_queue(queue)
        self.starved.clear()

    # -- what must be safe before it is said -----------------------------------------------------
    def hold_until(self, batch: int) -> None:
        """Keep back what is said from now on until a batch of the journal is safe."""
        if batch > self.barrier:
            self.barrier = batch

    # -- flow ------------------------------------------------------------------------------------
    def wants_write(self) -> None:
        self.core.outgoing[self] = None

    def used(self, size: int) -> None:
        """So many octets were put out that no consumer's window bounds.

        A client that asks for more than it reads is not listened to until it has read.
        """
        self.budget -= size
        if self.budget < -BUDGET:
            self.session.hold("unread")

    def refill(self) -> None:
        """The socket takes more: consumers that had to wait may go on."""
        self.budget = BUDGET
        if self.starved:
            starved, self.starved = self.starved, {}
            for consumer in starved:
                if consumer.parked:
                    consumer.wake()
                else:
                    self.core.pending[consumer.queue] = None

    def _block(self) -> None:
        """It publishes while an alarm is raised: read nothing more until that is over."""
        self.blocked = True
        self.session.hold("alarm")
        if self.session.announced("connection.blocked"):
            self.session.send_aside(m.ConnectionBlocked(self.core.alarm))
            self.wants_write()
        self.shell.reading_changed()

    def unblock(self) -> None:
        """The alarm is over, or this one may finish its message."""
        self.session.wary = bool(self.core.alarm)
        if not self.blocked:
            return
        self.blocked = False
        if self.session.announced("connection.blocked"):
            self.session.send_aside(m.ConnectionUnblocked())
        self.wants_write()
        self.shell.reading_changed()
        self.session.go_on("alarm")
