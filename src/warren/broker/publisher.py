"""The publishing half of a channel: routes, confirms, transactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from warren.amqp import methods as m
from warren.amqp.frames import METHOD, encode_frame
from warren.amqp.hot import PUBLISH_IDS, encode_confirm
from warren.amqp.properties import encode_property
from warren.amqp.session import undecodable
from warren.broker.inspection import PASSING, REPLY_TO, inspect, outline
from warren.broker.message import OVERHEAD, PLAIN, Address, Message, Traits
from warren.broker.queues.queue import Queue
from warren.broker.reply import ReplyConsumer
from warren.broker.vhost import NeedsMessage
from warren.errors import (
    AccessRefused,
    NotImplementedByBroker,
    PreconditionFailed,
)

if TYPE_CHECKING:
    from warren.amqp.handlers import PublishAgain
    from warren.broker.channel import Channel

#: Routes and property lists remembered a channel.
_REMEMBER = 1024
#: Only property lists up to this size are worth remembering.
_SHORT = 512
#: Of a property list that is not remembered: each message is looked at.
_UNKNOWN = Traits()
_UNKNOWN.rewrite = True


class Route:
    """Where publishes with the same arguments go."""

    __slots__ = ("address", "exchange", "keeps_all", "mandatory", "published", "queue", "targets")

    def __init__(
        self, address: Address, exchange: Any, mandatory: bool, targets: list[Any] | None
    ) -> None:
        self.address = address
        self.exchange = exchange
        self.mandatory = mandatory
        #: The queues, or None where each message must be looked at.
        self.targets = targets
        #: The only one of them, if that is no stream.
        self.queue: Queue | None = None
        if targets and len(targets) == 1 and isinstance(targets[0], Queue):
            self.queue = targets[0]
        self.keeps_all = keep_all(targets or ())
        #: Messages that went this way since the last ``Publisher.tally``.
        self.published = 0


class Publisher:
    """Takes what a channel publishes."""

    __slots__ = (
        "_batch",
        "_channel",
        "_connection",
        "_core",
        "_gap",
        "_nacks",
        "_number",
        "_routes",
        "_settled",
        "_traits",
        "_version",
        "_vhost",
        "confirmed",
        "confirming",
        "dropped",
        "published",
        "returned",
        "sequence",
        "transaction",
    )

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._connection = channel.connection
        self._core = channel.core
        self._vhost = channel.vhost
        self._number = channel.number
        self._routes: dict[bytes, Route] = {}
        self._version = self._vhost.version
        self._traits: dict[bytes, Traits] = {}  # by outline
        self.confirming = False
        #: How many messages were published, confirmed, returned and dropped, as of ``tally``.
        self.published = self.confirmed = self.returned = self.dropped = 0
        self.sequence = 0
        self._settled = 0  # confirms were sent up to this one
        self._nacks: list[int] = []
        self._batch = 0  # the journal's batch that has the last message that must survive
        self._gap = False  # some confirms were lost on purpose
        #: Publishes that wait for tx.commit; None when the channel is not transactional.
        self.transaction: list[tuple[Route, Message, list[Any]]] | None = None

    def publish(
        self, arguments: bytes, content: bytes, header_size: int, body_size: int, flags: int
    ) -> None:
        """One message; hot."""
        if self._version != self._vhost.version:
            self._version = self._vhost.version
            self._forget_routes()
        route = self._routes.get(arguments)
        if route is None:
            route = self._find_route(arguments)
        if flags:
            properties = content[19 : header_size - 1]
            key = outline(properties, flags) if flags & PASSING else properties
            traits = self._traits.get(key)
            if traits is None:
                traits = self._inspect(properties, key)
        else:
            traits = self._no_properties(header_size)
        message = Message(route.address, content, traits, body_size, self._number)
        if self.confirming:
            self.sequence += 1
            self._core.confirming[self] = None
        if not route.targets or traits.rewrite or self.transaction is not None:
            self._publish_slow(route, message)
            return
        route.published += 1
        journal = self._core.journal
        if journal is not None and (traits.persistent or route.keeps_all):
            self._batch = journal.batch.number
        if route.queue is None:
            self._publish_to_many(route, message)
        elif not route.queue.publish_alone(message) and self.confirming:
            self._refused_by_queue()

    def again(
        self, arguments: bytes, properties: bytes, header_size: int, flags: int
    ) -> PublishAgain | None:
        """How to publish more of what was published last, with other bodies.

        What was found out about the last one holds for them, until the topology changes.
        """
        route, traits = self._routes.get(arguments), PLAIN
        if flags:
            key = outline(properties, flags) if flags & PASSING else properties
            traits = self._traits.get(key, _UNKNOWN)
        if route is None or not route.targets or traits.rewrite or self.transaction is not None:
            return None
        core, vhost, version, routes = self._core, self._vhost, self._version, self._routes
        queue, address, number = route.queue, route.address, self._number
        journal = core.journal if traits.persistent or route.keeps_all else None

        def publish(content: bytes, body_size: int) -> bool:
            if (
                version != vhost.version
                or routes is not self._routes
                or self.transaction is not None
            ):
                self.publish(arguments, content, header_size, body_size, flags)
                return False
            message = Message(address, content, traits, body_size, number)
            if self.confirming:
                self.sequence += 1
                core.confirming[self] = None
            route.published += 1
            if journal is not None:
                self._batch = journal.batch.number
            if queue is None:
                self._publish_to_many(route, message)
            elif not queue.publish_alone(message) and self.confirming:
                self._refused_by_queue()
            return True

        return publish

    def _publish_to_many(self, route: Route, message: Message) -> None:
        core, targets = self._core, route.targets or ()
        core.held_bytes += len(message.content) + OVERHEAD
        message.holders = 1  # ours, until every queue has been asked
        kept = core.journal is not None and (message.traits.persistent or route.keeps_all)
        if kept and len(targets) > 1:
            message.shared = -1
        for queue in targets:
            if not queue.publish(message) and self.confirming:
                self._refused_by_queue()
        message.holders -= 1
        if not message.holders:
            core.held_bytes -= len(message.content) + OVERHEAD

    def _no_properties(self, header_size: int) -> Traits:
        if header_size != 22:
            return self._inspect(bytes(header_size - 20), b"")
        return PLAIN

    def _inspect(self, properties: bytes, key: bytes) -> Traits:
        traits = inspect(
            properties,
            self._connection.user_name,
            impersonator=self._connection.impersonator,
            may_reply=self._channel.reply_consumer is not None,
        )
        if key and len(key) <= _SHORT:
            if len(self._traits) >= _REMEMBER:
                self._traits.clear()
            self._traits[key] = traits
        return traits

    def _find_route(self, arguments: bytes) -> Route:
        try:
            method = m.decode_method(PUBLISH_IDS + arguments)
        except m.MethodError as error:
            raise undecodable(error, arguments) from None
        assert isinstance(method, m.BasicPublish)
        if method.immediate:
            raise NotImplementedByBroker("immediate=true")
        vhost = self._vhost
        self._channel.access.write("exchange", method.exchange)
        exchange = vhost.exchange(method.exchange)
        if exchange.internal:
            raise AccessRefused(
                f"cannot publish to internal exchange '{exchange.name}' in vhost '{vhost.name}'"
            )
        if exchange.type == "topic":
            self._channel.access.topic("write", exchange.name, method.routing_key)
        try:
            targets: list[Any] | None = vhost.route(exchange, (method.routing_key,), None)
        except NeedsMessage:
            targets = None
        if method.exchange == "" and method.routing_key.startswith(REPLY_TO):
            # Direct replies come and go without a change of topology.
            targets = None
        address = Address(method.exchange, method.routing_key)
        route = Route(address, exchange, method.mandatory, targets)
        if len(self._routes) >= _REMEMBER:
            self._forget_routes()
        self._routes[arguments] = route
        return route

    def _forget_routes(self) -> None:
        self.tally()
        self._routes = {}  # another one: see ``again``

    def tally(self) -> None:
        """Add up what went each way since the last time: the hot path counts on the route only."""
        for route in self._routes.values():
            if route.published:
                count, route.published = route.published, 0
                self._count(route.exchange, count, count * len(route.targets or ()))

    def _count(self, exchange: Any, came: int, went: int) -> None:
        self.published += came
        self._core.published += came
        exchange.published_in += came
        exchange.published_out += went

    def _publish_slow(self, route: Route, message: Message) -> None:
        traits = message.traits
        if traits.reply_to_us:
            message = self._with_reply_name(message)
        # Where a message goes is decided now, also in a transaction; replies go at once.
        keys = (route.address.routing_key, *traits.copies)
        targets = self._vhost.route(route.exchange, keys, message)
        if traits.strip_bcc:
            message = _without_bcc(message)
        if any(isinstance(target, ReplyConsumer) for target in targets):
            self._vhost.deliver(message, [t for t in targets if isinstance(t, ReplyConsumer)])
            targets = [t for t in targets if not isinstance(t, ReplyConsumer)]
        if self.transaction is not None:
            self._core.hold(message)
            self.transaction.append((route, message, targets))
        else:
            self._deliver(route, message, targets)

    def _deliver(self, route: Route, message: Message, targets: list[Any]) -> bool:
        self._count(route.exchange, 1, len(targets))
        if self._core.journal is not None and (message.traits.persistent or keep_all(targets)):
            self._batch = self._core.journal.number
        if not targets:
            if route.mandatory:
                self.returned += 1
                self._return(message)
            else:
                self.dropped += 1
        if self._vhost.deliver(message, targets):
            return True
        if self.confirming:
            self._refused_by_queue()
        return False

    def _with_reply_name(self, message: Message) -> Message:
        consumer = self._channel.reply_consumer
        if consumer is None:
            raise PreconditionFailed("fast reply consumer does not exist")
        parts = dict(message.parts)
        parts["reply_to"] = encode_property("reply_to", consumer.name)
        return message.rewritten(parts, message.address, message.traits)

    def _return(self, message: Message) -> None:
        """Tell the publisher that nobody took a mandatory message."""
        method = m.BasicReturn(
            312, "NO_ROUTE", message.address.exchange, message.address.routing_key
        )
        session = self._connection.session
        session.out.append(encode_frame(METHOD, self._number, method.encode()))
        session.out.append(message.content_for(self._number, session.frame_max))
        self._connection.wants_write()

    @property
    def settled(self) -> int:
        """Up to which message confirms were sent."""
        return self._settled

    @property
    def refused(self) -> bool:
        """True if a queue refused what was published since the last confirm."""
        return bool(self._nacks)

    # -- confirms --------------------------------------------------------------------------------
    def _refused_by_queue(self) -> None:
        if not self._nacks or self._nacks[-1] != self.sequence:
            self._nacks.append(self.sequence)

    def send_confirms(self) -> None:
        """Settle everything published since the last time."""
        first, last = self._settled + 1, self.sequence
        gate = self._core.confirm_gate
        if first <= last and (gate is None or gate(self, last)):
            self.confirm(last)

    def confirm(self, last: int) -> None:
        """Settle everything up to one message."""
        first = self._settled + 1
        if first > last or self._channel.closed:
            return
        self._settled = last
        if self._batch and self._core.journal is not None:
            self._connection.hold_until(min(self._batch, self._core.journal.barrier))
        self._connection.wants_write()
        self.confirmed += last - first + 1
        if not self._nacks and not self._gap:
            self._send_confirm(last, multiple=last > first, ack=True)
            return
        nacks = [tag for tag in self._nacks if tag <= last]
        self._nacks = self._nacks[len(nacks) :]
        refused = set(nacks)
        self.confirmed -= len(refused)
        acks = [tag for tag in range(first, last + 1) if tag not in refused]
        if self._gap:
            for tag in range(first, last + 1):
                self._send_confirm(tag, multiple=False, ack=tag not in refused)
            return
        self._coalesce(nacks, acks, ack=False)
        if len(acks) == 1:
            self._send_confirm(acks[0], multiple=False, ack=True)
        else:
            self._coalesce(acks, nacks, ack=True)

    def _coalesce(self, tags: list[int], others: list[int], *, ack: bool) -> None:
        """One confirm for all tags before the first of the others, one each for the rest."""
        cutoff = min(others, default=self.sequence + 1)
        together = [tag for tag in tags if tag < cutoff]
        if together:
            self._send_confirm(together[-1], multiple=True, ack=ack)
        for tag in tags[len(together) :]:
            self._send_confirm(tag, multiple=False, ack=ack)

    def _send_confirm(self, tag: int, *, multiple: bool, ack: bool) -> None:
        frame = encode_confirm(self._number, tag, multiple=multiple, ack=ack)
        self._connection.session.out.append(frame)

    def lose_confirms(self, last: int) -> None:
        """Never confirm what was published up to there: from now on, nothing is summed up."""
        self._settled = last
        self._nacks = [tag for tag in self._nacks if tag > last]
        self._gap = True

    # -- transactions ----------------------------------------------------------------------------
    def commit(self) -> bool:
        """Publish what the transaction holds; False if a queue refused some of it."""
        assert self.transaction is not None
        waiting, self.transaction = self.transaction, []
        complete = True
        for route, message, targets in waiting:
            self._core.release(message)
            alive = [queue for queue in targets if not queue.deleted]
            complete = self._deliver(route, message, alive) and complete
        return complete

    def rollback(self) -> None:
        """Forget what the transaction holds."""
        for _, message, _ in self.transaction or ():
            self._core.release(message)
        self.transaction = []


def keep_all(targets: Iterable[Any]) -> bool:
    """True if one of the queues writes down what is published as transient, too."""
    return any(getattr(queue, "kind", "") in ("quorum", "stream") for queue in targets)


def _without_bcc(message: Message) -> Message:
    headers = message.raw_headers
    headers.pop("BCC", None)
    return message.with_headers(headers)
