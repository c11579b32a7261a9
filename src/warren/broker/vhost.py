"""A virtual host: exchanges, queues and bindings by name, and the way from one to the other."""

from __future__ import annotations

import base64
import secrets
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warren.amqp.tables import Table
from warren.broker.exchanges import EXCHANGE_TYPES, INTERNAL_ERROR, Binding, Exchange
from warren.broker.exchanges.direct import DirectExchange
from warren.broker.message import Message
from warren.broker.queues.arguments import (
    KNOWN,
    check_declare,
    check_same_arguments,
    check_same_field,
    queue_type,
)
from warren.broker.queues.queue import Queue
from warren.broker.queues.stream import StreamQueue
from warren.broker.records import binding_key, exchange_record, queue_record
from warren.errors import (
    AccessRefused,
    CommandInvalid,
    InternalError,
    NotFound,
    PreconditionFailed,
    ResourceLocked,
)

if TYPE_CHECKING:
    from warren.broker.connection import BrokerConnection
    from warren.broker.core import BrokerCore
    from warren.broker.permissions import Access
    from warren.broker.reply import ReplyConsumer

AnyQueue = Queue | StreamQueue

PREDECLARED = (
    ("amq.direct", "direct"),
    ("amq.fanout", "fanout"),
    ("amq.headers", "headers"),
    ("amq.match", "headers"),
    ("amq.topic", "topic"),
)
_REPLY_PREFIX = "amq.rabbitmq.reply-to."


def server_made_name(prefix: str) -> str:
    """A name nobody can guess, in RabbitMQ's shape."""
    token = base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
    return f"{prefix}-{token}"


class VirtualHost:
    """One namespace of the broker."""

    def __init__(self, core: BrokerCore, name: str) -> None:
        self.core = core
        self.name = name
        self.description = ""
        self.tags: tuple[str, ...] = ()
        #: ``max-connections`` and ``max-queues``, where they are set.
        self.limits: dict[str, int] = {}
        self.default_exchange = DirectExchange("", durable=True)
        self.exchanges: dict[str, Exchange] = {"": self.default_exchange}
        self.queues: dict[str, AnyQueue] = {}
        #: What went over the channels that are closed by now, by RabbitMQ's names.
        self.past: Counter[str] = Counter()
        #: Grows with every change of exchanges, queues, bindings and permissions: routes found
        #: before are void.
        self.version = 0
        self._sources: dict[Any, set[Exchange]] = {}  # which exchanges lead to a destination
        for exchange, kind in PREDECLARED:
            self.exchanges[exchange] = EXCHANGE_TYPES[kind](exchange, durable=True)
        self.exchanges["amq.rabbitmq.trace"] = EXCHANGE_TYPES["topic"](
            "amq.rabbitmq.trace", durable=True, internal=True
        )

    # -- looking up ------------------------------------------------------------------------------
    def exchange(self, name: str) -> Exchange:
        try:
            return self.exchanges[name]
        except KeyError:
            raise NotFound("exchange", name, self.name) from None

    def queue(self, name: str, connection: BrokerConnection | None = None) -> AnyQueue:
        """A queue by name, if ``connection`` may use it."""
        try:
            queue = self.queues[name]
        except KeyError:
            raise NotFound("queue", name, self.name) from None
        if queue.owner is not None and queue.owner is not connection:
            raise ResourceLocked(name, self.name)
        return queue

    # -- exchanges -------------------------------------------------------------------------------
    def declare_exchange(
        self,
        name: str,
        kind: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Table | None = None,
        access: Access | None = None,
    ) -> Exchange:
        arguments = arguments if arguments is not None else Table()
        cls = EXCHANGE_TYPES.get(kind)
        if not kind:
            raise CommandInvalid("invalid exchange type ''")
        if cls is None:
            raise CommandInvalid(f"unknown exchange type '{kind}'")
        refuse_default_exchange(name)
        if access is not None:
            access.configure("exchange", name)
        where = f"exchange '{name}' in vhost '{self.name}'"
        exchange = self.exchanges.get(name)
        if exchange is not None:
            check_same_field(where, "type", exchange.type, kind)
            check_same_field(where, "durable", exchange.durable, durable)
            check_same_field(where, "auto_delete", exchange.auto_delete, auto_delete)
            check_same_field(where, "internal", exchange.internal, internal)
            old = exchange.arguments
            old = old if isinstance(old, Table) else Table(old)
            check_same_arguments(where, ("alternate-exchange",), old, arguments)
            return exchange
        refuse_reserved("exchange", name)
        if access is not None and arguments.kinds.get("alternate-exchange") == "longstr":
            access.read("exchange", name)
            access.write("exchange", arguments["alternate-exchange"])
        problem = cls.validate_arguments(arguments, where)
        if problem == INTERNAL_ERROR:
            raise InternalError("INTERNAL_ERROR")
        if problem is not None:
            raise PreconditionFailed(problem)
        exchange = cls(
            name,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=arguments,
        )
        self.exchanges[name] = exchange
        exchange.alternate = self.core.policies.alternate_for(self.name, exchange)
        self.version += 1
        if durable and self.core.journal is not None:
            self.core.journal.define("exchange", [self.name, name], exchange_record(exchange))
        return exchange

    def delete_exchange(
        self, name: str, *, if_unused: bool = False, access: Access | None = None
    ) -> None:
        refuse_default_exchange(name)
        if name.startswith("amq."):
            raise AccessRefused(
                f"deletion of system exchange '{name}' in vhost '{self.name}' not allowed"
            )
        if access is not None:
            access.configure("exchange", name)
        exchange = self.exchanges.get(name)
        if exchange is None:
            return
        if if_unused and exchange.bindings:
            raise PreconditionFailed(f"exchange '{name}' in vhost '{self.name}' in use")
        self._end_exchange(exchange)

    def _end_exchange(self, exchange: Exchange) -> None:
        """Delete an exchange, and the auto-delete exchanges that lead nowhere without it."""
        doomed = [exchange]
        while doomed:
            current = doomed.pop()
            if self.exchanges.pop(current.name, None) is None:
                continue
            self.version += 1
            for binding in current.bindings.values():
                self._forget_binding(current, binding)
                sources = self._sources.get(binding.destination)
                if sources is not None:
                    sources.discard(current)
            doomed += self._take_off(current)
            if current.durable and self.core.journal is not None:
                self.core.journal.define("exchange", [self.name, current.name], None)

    # -- queues ----------------------------------------------------------------------------------
    def declare_queue(
        self,
        name: str,
        *,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Table | None = None,
        connection: BrokerConnection | None = None,
        access: Access | None = None,
    ) -> AnyQueue:
        """Find or make a queue; an empty name gets a server-made one."""
        arguments = arguments if arguments is not None else Table()
        owner = connection if exclusive else None
        declared_durable, durable = durable, durable and not exclusive
        if not name:
            kind = queue_type(arguments)
            if kind in ("quorum", "stream"):
                raise PreconditionFailed(
                    f"Cannot declare a server-named queue for type rabbit_{kind}_queue"
                )
            name = server_made_name("amq.gen")
        elif name.startswith("amq."):
            refuse_reserved("queue", name)
        if access is not None:
            access.configure("queue", name)
        queue = self.queues.get(name)
        if queue is not None:
            if queue.owner is not owner:
                raise ResourceLocked(name, self.name)
            check_same_field(queue.where, "durable", queue.durable, durable)
            check_same_field(queue.where, "auto_delete", queue.auto_delete, auto_delete)
            check_same_arguments(queue.where, KNOWN[queue.kind], queue.arguments, arguments)
            queue.touch()
            return queue
        self._check_queue_limit(name)
        where = f"queue '{name}' in vhost '{self.name}'"
        if arguments.kinds.get("x-dead-letter-exchange", "longstr") != "longstr":
            kind = arguments.kinds["x-dead-letter-exchange"]
            raise PreconditionFailed(
                f"invalid type '{kind}' for arg 'x-dead-letter-exchange' in {where}"
            )
        if access is not None and "x-dead-letter-exchange" in arguments:
            access.read("queue", name)
            access.write("exchange", arguments["x-dead-letter-exchange"])
        check_declare(where, arguments)
        cls: type[Queue] | type[StreamQueue] = Queue
        if queue_type(arguments) in ("quorum", "stream"):
            _check_replicated(where, declared_durable, exclusive, auto_delete)
            cls = StreamQueue if queue_type(arguments) == "stream" else Queue
        log_id = self.core.new_log() if durable else 0
        queue = cls(
            self,
            name,
            durable=durable,
            auto_delete=auto_delete,
            owner=owner,
            arguments=arguments,
            log_id=log_id,
        )
        self.queues[name] = queue
        if owner is not None:
            owner.exclusive_queues[queue] = None
        self.version += 1
        if log_id:
            self.core.journal.define(  # type: ignore[union-attr]
                "queue", [self.name, name], queue_record(queue)
            )
        return queue

    def _check_queue_limit(self, name: str) -> None:
        most = self.limits.get("max-queues", -1)
        if 0 <= most <= len(self.queues):
            raise PreconditionFailed(
                f"cannot declare queue '{name}': queue limit in vhost '{self.name}' ({most}) is "
                "reached"
            )

    def delete_queue(self, queue: AnyQueue) -> int:
        """Delete a queue; returns how many messages were ready."""
        if queue.deleted:
            return 0
        del self.queues[queue.name]
        self.version += 1
        for exchange in self._take_off(queue):
            self._end_exchange(exchange)
        if queue.owner is not None:
            queue.owner.exclusive_queues.pop(queue, None)
        count = queue.end()
        if queue.log_id:
            journal = self.core.journal
            journal.end_log(queue.log_id)  # type: ignore[union-attr]
            journal.define("queue", [self.name, queue.name], None)  # type: ignore[union-attr]
            queue.log_id = 0  # what clients still hold is in the store no longer
        return count

    # -- bindings --------------------------------------------------------------------------------
    def bind(
        self, source: str, destination: Exchange | AnyQueue, routing_key: str, arguments: Table
    ) -> None:
        exchange = self.exchange(source)
        problem = exchange.validate_binding(routing_key, arguments)
        if problem is not None:
            raise PreconditionFailed(problem)
        kind = "exchange" if isinstance(destination, Exchange) else "queue"
        binding = Binding(source, destination, kind, routing_key, arguments)
        if exchange.add(binding):
            self._sources.setdefault(destination, set()).add(exchange)
            self.version += 1
            if self._survives(exchange, binding):
                self.core.journal.define(  # type: ignore[union-attr]
                    "binding", binding_key(self.name, binding), {}
                )

    def unbind(
        self, source: str, destination: Exchange | AnyQueue, routing_key: str, arguments: Table
    ) -> None:
        exchange = self.exchange(source)
        kind = "exchange" if isinstance(destination, Exchange) else "queue"
        key = Binding(source, destination, kind, routing_key, arguments).key
        removed = exchange.remove(key)
        if removed is None:
            return
        self._forget_binding(exchange, removed)
        self.version += 1
        if not exchange.bindings_of(destination):
            self._sources[destination].discard(exchange)
        if exchange.auto_delete and not exchange.bindings:
            self._end_exchange(exchange)

    def is_bound(
        self, source: str, destination: AnyQueue, routing_key: str, arguments: Table
    ) -> bool:
        exchange = self.exchanges.get(source)
        if exchange is None:
            return False
        return (
            Binding(source, destination, "queue", routing_key, arguments).key in exchange.bindings
        )

    def _survives(self, exchange: Exchange, binding: Binding) -> bool:
        """A binding is as durable as what it binds."""
        return self.core.journal is not None and exchange.durable and binding.destination.durable

    def _forget_binding(self, exchange: Exchange, binding: Binding) -> None:
        if self._survives(exchange, binding):
            self.core.journal.define(  # type: ignore[union-attr]
                "binding", binding_key(self.name, binding), None
            )

    def _take_off(self, destination: Exchange | AnyQueue) -> list[Exchange]:
        """Remove all bindings to a destination; returns the exchanges that go with the last."""
        emptied = []
        for exchange in self._sources.pop(destination, ()):
            for binding in exchange.remove_destination(destination):
                self._forget_binding(exchange, binding)
            if exchange.auto_delete and not exchange.bindings:
                emptied.append(exchange)
        return emptied

    # -- routing ---------------------------------------------------------------------------------
    def route(self, exchange: Exchange, keys: Sequence[str], message: Message | None) -> list[Any]:
        """The queues that get a message, each once; follows bindings between exchanges.

        Without a message, routes that depend on more than the key raise ``NeedsMessage``.
        """
        if exchange is self.default_exchange:
            return self._route_default(keys)
        found: dict[Any, None] = {}
        seen = {exchange.name}
        todo = [exchange]
        while todo:
            current = todo.pop()
            destinations = self._step(current, keys, message)
            if not destinations and current.alternate:
                alternate = self.exchanges.get(current.alternate)
                destinations = [alternate] if alternate is not None else []
            for destination in destinations:
                if not isinstance(destination, Exchange):
                    found[destination] = None
                elif destination.name not in seen:
                    seen.add(destination.name)
                    todo.append(destination)
        return list(found)

    def _step(self, exchange: Exchange, keys: Sequence[str], message: Message | None) -> list[Any]:
        if exchange is self.default_exchange:
            return self._route_default(keys)
        if exchange.by_key_only:
            if len(keys) == 1:
                return list(exchange.route(keys[0], message))  # type: ignore[arg-type]
            return [hit for key in keys for hit in exchange.route(key, message)]  # type: ignore[arg-type]
        if message is None:
            raise NeedsMessage
        return list(exchange.route(keys[0], message))

    def _route_default(self, keys: Sequence[str]) -> list[Any]:
        targets: dict[Any, None] = {}
        for key in keys:
            queue = self.queues.get(key) or self.reply_consumer(key)
            if queue is not None:
                targets[queue] = None
        return list(targets)

    def reply_consumer(self, name: str) -> ReplyConsumer | None:
        """Who waits for replies under a name that direct reply-to made."""
        return self.core.reply_consumers.get(name) if name.startswith(_REPLY_PREFIX) else None

    def deliver(self, message: Message, targets: Sequence[Any]) -> bool:
        """Hand a message to queues; False if one of them refuses it."""
        if not targets:
            return True
        accepted = True
        if len(targets) > 1:
            message.shared = -1
        self.core.hold(message)  # until every queue has been asked
        for target in targets:
            accepted = target.publish(message) and accepted
        self.core.release(message)
        return accepted

    def end(self) -> None:
        """The vhost is deleted, with all that is in it."""
        for queue in list(self.queues.values()):
            self.delete_queue(queue)
        for exchange in list(self.exchanges.values()):
            self._end_exchange(exchange)
        self.core.policies.vhost_gone(self.name)


class NeedsMessage(Exception):
    """The route depends on the message, not only on its routing key."""


def refuse_default_exchange(name: str) -> None:
    if not name:
        raise AccessRefused("operation not permitted on the default exchange")


def refuse_reserved(kind: str, name: str) -> None:
    if name.startswith("amq."):
        raise AccessRefused(f"{kind} name '{name}' contains reserved prefix 'amq.*'")


def _check_replicated(where: str, durable: bool, exclusive: bool, auto_delete: bool) -> None:
    if auto_delete:
        raise PreconditionFailed(f"invalid property 'auto-delete' for {where}")
    if exclusive:
        raise PreconditionFailed(f"invalid property 'exclusive-owner' for {where}")
    if not durable:
        raise PreconditionFailed(f"invalid property 'non-durable' for {where}")
