"""The broker itself, without sockets: virtual hosts, users, connections, and what is to be done.

The shell feeds bytes to sessions and calls ``settle`` when a read is worked through: queues that
changed give out their messages, channels get their confirms. Then it writes what ``outgoing``
connections have to say, and sets one timer by ``timers.next_deadline_ms``.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from warren.amqp.content import header_size
from warren.amqp.session import CHANNEL_MAX, HEARTBEAT_S, MAX_MESSAGE_BYTES
from warren.amqp.tables import Table
from warren.broker.admin import Admin
from warren.broker.alarms import Alarms
from warren.broker.channel import Channel
from warren.broker.connection import BrokerConnection
from warren.broker.journal import Journal
from warren.broker.message import OVERHEAD, Message
from warren.broker.policies import Policies
from warren.broker.publisher import Publisher
from warren.broker.queues.dead_letter import send_letter
from warren.broker.recovery import recover
from warren.broker.reply import ReplyConsumer
from warren.broker.timers import Timers
from warren.broker.users import User
from warren.broker.vhost import VirtualHost
from warren.clock import Clock, SystemClock
from warren.errors import AccessRefused, ConnectionForced
from warren.store.base import Store

log = logging.getLogger(__name__)

#: The RabbitMQ whose behaviour this broker has.
RABBITMQ_VERSION = "3.10.8"
#: Octets held, above which durable queues leave new messages on disk, whatever the limit is.
PAGE_ABOVE = 128 << 20
CAPABILITIES = (
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
)


#: Dead letters sent in one go; a chain of queues may make many.
_LETTERS_A_ROUND = 500
#: So many octets of headers take as long as one letter more.
_SLOW_BYTES = 4096


class BrokerCore:
    """Everything the broker knows."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        version: str = "0",
        heartbeat_s: int = HEARTBEAT_S,
        channel_max: int = CHANNEL_MAX,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        memory_limit_bytes: int = 0,
        disk_free_limit_bytes: int = 0,
        loopback_users: frozenset[str] = frozenset(("guest",)),
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self.timers = Timers(self.clock)
        self.heartbeat_s = heartbeat_s
        self.channel_max = channel_max
        self.max_message_bytes = max_message_bytes
        #: Memory and disk: why publishers are blocked.
        self.watch = Alarms(self, memory_limit_bytes)
        self.disk_free_limit_bytes = disk_free_limit_bytes
        #: Above so many octets held, what durable queues take goes to the disk only.
        self.page_above = min(memory_limit_bytes // 4 or PAGE_ABOVE, PAGE_ABOVE)
        #: Users, permissions and limits.
        self.admin = Admin(self, loopback_users)
        self.policies = Policies(self)
        self.vhosts: dict[str, VirtualHost] = {}
        self.connections: dict[BrokerConnection, None] = {}
        self.reply_consumers: dict[str, ReplyConsumer] = {}
        #: Queues to look at, channels to confirm, connections with something to write.
        self.pending: dict[Any, None] = {}
        self.confirming: dict[Publisher, None] = {}
        self.outgoing: dict[BrokerConnection, None] = {}
        #: Messages that queues gave up: (queue, message, reason, entry).
        self.dead_letters: deque[tuple[Any, Any, str, Any]] = deque()
        #: Asked before confirms are sent; False keeps them back. For fault injection.
        self.confirm_gate: Callable[[Publisher, int], bool] | None = None
        self.published = 0
        #: How many connections, channels and queues came and went, by RabbitMQ's names.
        self.churn: Counter[str] = Counter()
        #: How many messages queues gave up: kind of queue, reason, and whether they went anywhere.
        self.dead_lettered: Counter[tuple[str, str, str]] = Counter()
        self.started_ms = self.clock.wall_ms()
        self.held_bytes = 0
        #: Queues with messages on their way to the disk that are to be in memory no longer.
        self.waits_for_commit: dict[Any, None] = {}
        self.last_log = 0
        #: Called when a connection's handshake is done; set by the shell.
        self.opened: Callable[[BrokerConnection], None] = lambda connection: None
        self.server_properties = Table(
            {
                "capabilities": Table(dict.fromkeys(CAPABILITIES, True)),
                "cluster_name": "warren@localhost",
                "copyright": "Copyright (c) the warren authors",
                "information": "Licensed under the Apache License 2.0",
                "platform": "Python",
                "product": "RabbitMQ",
                "version": RABBITMQ_VERSION,
                "warren": version,
            }
        )
        #: What is written down; None while everything lives in memory.
        self.journal: Journal | None = None
        self.admin.start_anew()

    def open_store(self, store: Store) -> None:
        """Take up what a store holds, and write down from now on what must survive."""
        journal = Journal(self, store, self.disk_free_limit_bytes)
        try:
            recover(self, journal)
        except BaseException:
            store.close()
            raise
        self.policies.restore(journal.definitions())
        self.admin.parameters.restore(journal.definitions())
        self.journal = journal
        self.admin.write_down()

    # -- virtual hosts ---------------------------------------------------------------------------
    def add_vhost(self, name: str) -> VirtualHost:
        """A virtual host in which ``guest`` may do everything."""
        if name not in self.vhosts:
            self.admin.put_vhost(name, acting_user="guest")
        return self.vhosts[name]

    def delete_vhost(self, name: str) -> None:
        if name in self.vhosts:
            self.admin.delete_vhost(name)

    # -- connections -----------------------------------------------------------------------------
    def connect(self, peer: tuple[str, int], local: tuple[str, int]) -> BrokerConnection:
        return BrokerConnection(self, peer, local)

    def log_in(self, connection: BrokerConnection, mechanism: str, response: bytes) -> User:
        try:
            return self.admin.log_in(connection, mechanism, response)
        except AccessRefused as refusal:
            # A name is whatever a stranger sent: it must not make up lines of its own.
            said = "".join(each if each.isprintable() else "?" for each in str(refusal))
            log.warning("%s: %s login refused: %s", connection.name, mechanism, said)
            raise

    def close_connections(self, reason: str) -> int:
        """Close every client's connection, as an operator does."""
        closing = list(self.connections)
        for connection in closing:
            connection.session.close(ConnectionForced(reason))
            connection.wants_write()
        return len(closing)

    def tally(self) -> None:
        """Bring the counts of published messages up to date."""
        for connection in self.connections:
            for channel in connection.channels:
                channel.publisher.tally()

    def channel_closed(self, channel: Channel) -> None:
        """A channel is gone: nothing is confirmed on it any more."""
        self.confirming.pop(channel.publisher, None)

    # -- after a read ----------------------------------------------------------------------------
    def settle(self) -> None:
        """Give out messages and confirms until there is nothing left to do."""
        pending = self.pending
        letters = _LETTERS_A_ROUND
        while pending or self.dead_letters:
            for _ in range(len(self.dead_letters)):
                if letters <= 0:
                    break
                letter = self.dead_letters.popleft()
                letters -= 1 + header_size(letter[1].content) // _SLOW_BYTES
                self._guarded(send_letter, *letter)
            if letters <= 0:
                break  # the rest goes on when other connections have had their turn
            queues, self.pending = self.pending, {}
            for queue in queues:
                if not queue.deleted:
                    self._guarded(queue.deliver)
            pending = self.pending
        if self.confirming:
            confirming, self.confirming = self.confirming, {}
            for publisher in confirming:
                publisher.send_confirms()
        watch = self.watch
        if watch.reason or 0 < watch.memory_limit_bytes < self.held_bytes:
            watch.watch_memory()

    def _guarded(self, act: Callable[..., None], *arguments: Any) -> None:
        """One queue's trouble is not that of the others, nor of the client that happened on it."""
        try:
            act(*arguments)
        except Exception:
            log.exception("the broker failed in %s", act)

    def tick(self) -> None:
        """Run what is due, and what follows from it."""
        self.timers.run_due()
        self.settle()

    # -- memory ----------------------------------------------------------------------------------
    def hold(self, message: Message) -> None:
        """One more queue holds the message."""
        if not message.holders:
            self.held_bytes += len(message.content) + OVERHEAD
            if message.origin is not None:
                self.hold(message.origin)
        message.holders += 1

    def release(self, message: Message) -> None:
        """One queue less holds the message."""
        message.holders -= 1
        if not message.holders:
            self.held_bytes -= len(message.content) + OVERHEAD
            if message.origin is not None:
                self.release(message.origin)

    @property
    def must_page(self) -> bool:
        """True when messages that lie on disk should not be kept in memory as well."""
        return self.held_bytes > self.page_above

    @property
    def memory_limit_bytes(self) -> int:
        return self.watch.memory_limit_bytes

    @property
    def alarm(self) -> str:
        """Why publishers are blocked; empty when they are not."""
        return self.watch.reason

    @property
    def alarms(self) -> dict[str, bool]:
        """``memory`` and ``disk``: raised or not."""
        return dict(self.watch.raised)

    def memory_alarm(self, on: bool) -> None:
        """Raise or clear the memory alarm by hand."""
        self.watch.force_memory(on)

    def disk_alarm(self, on: bool) -> None:
        """The disk is full, fails, or can't follow; or it is well again."""
        self.watch.set("disk", on)

    # -- durability ------------------------------------------------------------------------------
    def new_log(self) -> int:
        """A log for a queue that must survive; 0 without a store."""
        if self.journal is None:
            return 0
        self.last_log += 1
        return self.last_log

    def batch_committed(self) -> None:
        """A batch is safe: what can be read back need not be in memory."""
        waiting, self.waits_for_commit = self.waits_for_commit, {}
        for queue in waiting:
            if queue.written(self.journal.store.readable):  # type: ignore[union-attr]
                self.waits_for_commit[queue] = None

    def stop(self) -> None:
        """The last changes before the end: queues say exactly which messages were seen."""
        for vhost in self.vhosts.values():
            for queue in vhost.queues.values():
                queue.stop()
