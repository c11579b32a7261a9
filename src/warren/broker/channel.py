"""A channel: what each AMQP method means.

A method's handler either answers or raises a ``Refusal``; what a refusal closes is the session's
business. Everything a channel holds for its client is here: consumers, unacknowledged deliveries,
and (in ``publisher``) confirms and transactions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warren.amqp import methods as m
from warren.amqp.frames import METHOD, encode_frame
from warren.broker.consumer import Consumer
from warren.broker.declaring import DECLARING
from warren.broker.inspection import REPLY_TO
from warren.broker.message import OVERHEAD
from warren.broker.publisher import Publisher
from warren.broker.queues.arguments import check_consume
from warren.broker.queues.ready import Entry
from warren.broker.queues.stream import StreamQueue
from warren.broker.reply import ReplyConsumer
from warren.broker.vhost import AnyQueue, server_made_name
from warren.errors import (
    AccessRefused,
    CommandInvalid,
    NotAllowed,
    NothingDeclared,
    NotImplementedByBroker,
    PreconditionFailed,
    SingleActiveOnly,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from warren.broker.connection import BrokerConnection

#: Methods without an answer, or (get) too frequent to wait for the disk.
_ANSWERED_AT_ONCE = (m.BasicGet, m.BasicNack, m.BasicReject, m.BasicRecoverAsync)
#: What a channel holds for its client: queue, entry, and the consumer (None for basic.get).
Delivery = tuple[Any, Entry, Consumer | None]


class Channel:
    """One opened channel of one connection."""

    def __init__(self, connection: BrokerConnection, number: int) -> None:
        self.connection = connection
        self.core = connection.core
        self.vhost = connection.vhost
        self.access = connection.access
        self.number = number
        self.consumers: dict[str, Consumer] = {}
        self.reply_consumer: ReplyConsumer | None = None
        self.unacked: dict[int, Delivery] = {}
        self.outstanding = 0  # unacknowledged deliveries to consumers
        self.last_tag = 0
        self._lowest_tag = 1
        self.prefetch = 0
        self.global_prefetch = 0
        self.last_queue = ""
        self.closed = False
        #: Messages sent that need no acknowledgement, sent again, got, and refused.
        self.delivered_unasked = self.redelivered = self.refused = 0
        self.got = self.got_unasked = self.got_nothing = 0
        self.publisher = Publisher(self)
        self.publish = self.publisher.publish  # the hot path has no time for a detour
        self.again = self.publisher.again
        self._settled_in_transaction: list[tuple[str, int, Delivery]] = []
        self.core.churn["channel_created"] += 1

    # -- life ------------------------------------------------------------------------------------
    def method(self, method: m.Method) -> None:
        """Any method but publish and ack."""
        self.core.settle()
        handler = _HANDLERS.get(type(method))
        if handler is None:
            raise CommandInvalid("unimplemented method")
        handler(self, method)
        if self.core.journal is not None and type(method) not in _ANSWERED_AT_ONCE:
            # When the answer comes, all that was acknowledged or declared before is safe.
            self.connection.hold_until(self.core.journal.barrier)

    def settle(self) -> None:
        self.core.settle()

    def counts(self) -> dict[str, int]:
        """What went over the channel so far, by RabbitMQ's names."""
        publisher = self.publisher
        publisher.tally()
        deliver = self.last_tag - self.delivered_unasked - self.got - self.got_unasked
        waiting = len(self.unacked) + len(self._settled_in_transaction)
        return {
            "publish": publisher.published,
            "confirm": publisher.confirmed,
            "return_unroutable": publisher.returned,
            "drop_unroutable": publisher.dropped,
            "get": self.got,
            "get_no_ack": self.got_unasked,
            "get_empty": self.got_nothing,
            "deliver": deliver,
            "deliver_no_ack": self.delivered_unasked,
            "redeliver": self.redelivered,
            "ack": deliver + self.got - waiting - self.refused,
        }

    @property
    def name(self) -> str:
        """As RabbitMQ names a channel: its connection, and its number."""
        return f"{self.connection.name} ({self.number})"

    @property
    def uncommitted(self) -> tuple[int, int]:
        """Messages and acknowledgements that wait for tx.commit."""
        return len(self.publisher.transaction or ()), len(self._settled_in_transaction)

    def close(self) -> None:
        """Cancel the consumers and give back, in order, what was not acknowledged."""
        self.closed = True
        self.core.churn["channel_closed"] += 1
        self.vhost.past.update(self.counts())
        self.core.channel_closed(self)
        self.drop_reply_consumer()
        if self.publisher.transaction:
            self.publisher.rollback()
        for consumer in list(self.consumers.values()):
            consumer.queue.remove_consumer(consumer)
        self.consumers.clear()
        held = [delivery for _, _, delivery in self._settled_in_transaction]
        self._settled_in_transaction.clear()
        for queue, entry, _ in [*self.unacked.values(), *held]:
            queue.give_back(entry)
        self.unacked.clear()
        if self.core.journal is not None:
            self.connection.hold_until(self.core.journal.barrier)

    def send(self, method: m.Method) -> None:
        self.connection.session.out.append(encode_frame(METHOD, self.number, method.encode()))
        self.connection.wants_write()

    def too_large(self, size: int) -> None:
        """A message over the limit was read and thrown away."""
        limit = self.connection.session.max_message_bytes
        raise PreconditionFailed(f"message size {size} is larger than configured max size {limit}")

    def queue(self, name: str) -> AnyQueue:
        """A queue by name; no name means the one declared last."""
        return self.vhost.queue(self._full_name(name), self.connection)

    def readable_queue(self, name: str) -> AnyQueue:
        """The same, for who wants its messages."""
        name = self._full_name(name)
        self.access.read("queue", name)
        return self.vhost.queue(name, self.connection)

    def _full_name(self, name: str) -> str:
        if not name and not self.last_queue:
            raise NothingDeclared
        return name or self.last_queue

    # -- consuming -------------------------------------------------------------------------------
    def _qos(self, method: m.BasicQos) -> None:
        if method.prefetch_size:
            raise NotImplementedByBroker(f"prefetch_size!=0 ({method.prefetch_size})")
        if method.global_:
            self.global_prefetch = method.prefetch_count
        else:
            # Setting a limit for consumers to come lifts the channel's own, as in RabbitMQ.
            self.prefetch = method.prefetch_count
            self.global_prefetch = 0
        self._wake_consumers()
        self.send(m.BasicQosOk())

    def _consume(self, method: m.BasicConsume) -> None:
        tag = method.consumer_tag
        if tag in self.consumers or (self.reply_consumer and tag == self.reply_consumer.tag):
            raise NotAllowed(f"attempt to reuse consumer tag '{tag}'")
        if method.queue == REPLY_TO:
            self._consume_replies(method)
            return
        queue = self.readable_queue(method.queue)
        self._check_consume(queue, method)
        tag = tag or server_made_name("amq.ctag")
        consumer = Consumer(
            self,
            queue,
            tag,
            no_ack=method.no_ack,
            exclusive=method.exclusive,
            prefetch=self.prefetch,
            arguments=method.arguments,
        )
        self.consumers[tag] = consumer
        if not method.nowait:
            self.send(m.BasicConsumeOk(tag))
        queue.add_consumer(consumer)

    def _check_consume(self, queue: AnyQueue, method: m.BasicConsume) -> None:
        check_consume(queue.where, queue.kind, method.arguments)
        if isinstance(queue, StreamQueue):
            queue.check_consume(method, self.prefetch)
        if queue.kind != "classic" and self.global_prefetch:
            raise NotImplementedByBroker(f"{queue.where} does not support global qos")
        if isinstance(queue, StreamQueue):
            return
        if queue.kind == "quorum":
            return
        if method.exclusive and queue.settings.single_active_consumer:
            raise AccessRefused(f"{queue.where} in exclusive use")
        if queue.exclusive_consumer is not None or (method.exclusive and len(queue.rota)):
            raise AccessRefused(f"{queue.where} in exclusive use")

    def _consume_replies(self, method: m.BasicConsume) -> None:
        if not method.no_ack:
            raise PreconditionFailed("reply consumer cannot acknowledge")
        if self.reply_consumer is not None:
            raise PreconditionFailed("reply consumer already set")
        tag = method.consumer_tag or server_made_name("amq.ctag")
        name = server_made_name(f"{REPLY_TO}.g1h2.").replace(".-", ".")
        self.reply_consumer = ReplyConsumer(self, tag, name)
        self.core.reply_consumers[name] = self.reply_consumer
        if not method.nowait:
            self.send(m.BasicConsumeOk(tag))

    def drop_reply_consumer(self) -> None:
        if self.reply_consumer is not None:
            self.core.reply_consumers.pop(self.reply_consumer.name, None)
            self.reply_consumer = None

    def _cancel(self, method: m.BasicCancel) -> None:
        tag = method.consumer_tag
        if self.reply_consumer is not None and self.reply_consumer.tag == tag:
            self.drop_reply_consumer()
        consumer = self.consumers.pop(tag, None)
        if not method.nowait:
            self.send(m.BasicCancelOk(tag))
        if consumer is not None:
            consumer.queue.remove_consumer(consumer)

    def queue_gone(self, consumer: Consumer) -> None:
        """The consumer's queue was deleted, or the broker cancels it: tell the client."""
        if self.consumers.pop(consumer.tag, None) is None:
            return
        if self.connection.session.announced("consumer_cancel_notify"):
            self.send(m.BasicCancel(consumer.tag, nowait=True))

    def _get(self, method: m.BasicGet) -> None:
        queue = self.readable_queue(method.queue)
        if isinstance(queue, StreamQueue):
            raise NotImplementedByBroker(f"basic.get not supported by stream queues {queue.where}")
        if queue.settings.single_active_consumer and queue.kind == "quorum":
            raise SingleActiveOnly(queue.where)
        queue.touch()
        entry = queue.take(self.connection)
        if entry is None:
            self.got_nothing += 1
            queue.got_nothing += 1
            self.send(m.BasicGetEmpty())
            return
        message = entry[1]
        self.redelivered += 1 if entry[3] else 0
        self.last_tag += 1
        address, session = message.address, self.connection.session
        self.send(
            m.BasicGetOk(
                self.last_tag,
                entry[3] > 0,
                address.exchange,
                address.routing_key,
                queue.message_count,
            )
        )
        content = message.content_for(self.number, session.frame_max)
        content = queue.counted_content(entry, content, self.number, session.frame_max)
        session.out.append(content)
        self.connection.used(len(content))
        if method.no_ack:
            self.got_unasked += 1
            queue.got_unasked += 1
            queue.done_with(entry)
        else:
            self.got += 1
            queue.got += 1
            queue.hold(entry)
            self.unacked[self.last_tag] = (queue, entry, None)

    # -- settling --------------------------------------------------------------------------------
    def ack(self, tag: int, multiple: int) -> None:
        """basic.ack; hot when it is for one message."""
        if multiple or self.publisher.transaction is not None:
            self._settle_many("ack", tag, bool(multiple))
            return
        delivery = self.unacked.pop(tag, None)
        if delivery is None:
            raise PreconditionFailed(f"unknown delivery tag {tag}")
        queue, entry, consumer = delivery
        message = entry[1]
        queue.unacked -= 1
        queue.unacked_bytes -= message.body_size
        queue.acked += 1
        if queue.log_id and message.traits.persistent:
            queue.forget(entry)
        message.holders -= 1
        if not message.holders:
            self.core.held_bytes -= len(message.content) + OVERHEAD
            if message.origin is not None:
                self.core.release(message.origin)
        if consumer is not None:
            consumer.outstanding -= 1
            self.outstanding -= 1
            if consumer.parked:
                consumer.wake()
            if self.global_prefetch:
                self._wake_consumers()

    def _nack(self, method: m.BasicNack) -> None:
        how = "requeue" if method.requeue else "reject"
        self._settle_many(how, method.delivery_tag, method.multiple)

    def _reject(self, method: m.BasicReject) -> None:
        self._settle_many("requeue" if method.requeue else "reject", method.delivery_tag, False)

    def _settle_many(self, how: str, tag: int, multiple: bool) -> None:
        taken = self._take_unacked(tag, multiple)
        if how != "ack":
            try:
                for _, (queue, _, _) in taken:
                    queue.check_refusable()
            except NotImplementedByBroker:
                self._put_back(taken)
                raise
        if self.publisher.transaction is not None:
            self._settled_in_transaction += [(how, tag, delivery) for tag, delivery in taken]
            return
        self._settle(how, [delivery for _, delivery in taken])

    def _take_unacked(self, tag: int, multiple: bool) -> list[tuple[int, Delivery]]:
        unacked = self.unacked
        if multiple:
            if tag == 0:
                taken = list(unacked.items())
                unacked.clear()
                return taken
            if tag not in unacked:
                raise PreconditionFailed(f"unknown delivery tag {tag}")
            # No tag below the lowest is unacknowledged: each tag is looked at once, ever.
            taken = []
            for known in range(self._lowest_tag, tag + 1):
                found = unacked.pop(known, None)
                if found is not None:
                    taken.append((known, found))
            self._lowest_tag = tag + 1
            return taken
        delivery = unacked.pop(tag, None)
        if delivery is None:
            raise PreconditionFailed(f"unknown delivery tag {tag}")
        return [(tag, delivery)]

    def _put_back(self, taken: list[tuple[int, Delivery]]) -> None:
        """Deliveries are unacknowledged after all; in order, as they were sent."""
        self.unacked.update(taken)
        in_order = sorted(self.unacked.items())
        self.unacked.clear()  # consumers know this very dict
        self.unacked.update(in_order)
        self._lowest_tag = min([self._lowest_tag, *(tag for tag, _ in taken)])

    def _settle(self, how: str, deliveries: list[Delivery]) -> None:
        if how != "ack":
            self.refused += len(deliveries)
        for queue, entry, consumer in deliveries:
            if how == "ack":
                queue.settle(entry)
            elif how == "requeue":
                queue.requeue(entry)
            else:
                queue.reject(entry)
            if consumer is not None:
                self.outstanding -= 1
                consumer.settled()
        if self.global_prefetch:
            self._wake_consumers()

    def _wake_consumers(self) -> None:
        for consumer in self.consumers.values():
            if consumer.parked:
                consumer.wake()

    def _recover(self, method: m.BasicRecover | m.BasicRecoverAsync) -> None:
        if not method.requeue:
            raise NotImplementedByBroker("requeue=false")
        held = list(self.unacked.values())
        self.unacked.clear()
        if isinstance(method, m.BasicRecover):
            self.send(m.BasicRecoverOk())
        self._settle("requeue", held)

    # -- confirms and transactions ---------------------------------------------------------------
    def _confirm_select(self, method: m.ConfirmSelect) -> None:
        if self.publisher.transaction is not None:
            raise PreconditionFailed("cannot switch from tx to confirm mode")
        self.publisher.confirming = True
        if not method.nowait:
            self.send(m.ConfirmSelectOk())

    def _tx_select(self, method: m.TxSelect) -> None:
        if self.publisher.confirming:
            raise PreconditionFailed("cannot switch from confirm to tx mode")
        if self.publisher.transaction is None:
            self.publisher.transaction = []
        self.send(m.TxSelectOk())

    def _tx_commit(self, method: m.TxCommit) -> None:
        if self.publisher.transaction is None:
            raise PreconditionFailed("channel is not transactional")
        complete = self.publisher.commit()
        settled, self._settled_in_transaction = self._settled_in_transaction, []
        for how, _, delivery in settled:
            self._settle(how, [delivery])
        if not complete:
            raise PreconditionFailed("partial tx completion")
        if self.core.journal is not None:
            self.connection.hold_until(self.core.journal.barrier)
        self.send(m.TxCommitOk())

    def _tx_rollback(self, method: m.TxRollback) -> None:
        if self.publisher.transaction is None:
            raise PreconditionFailed("channel is not transactional")
        self.publisher.rollback()
        settled, self._settled_in_transaction = self._settled_in_transaction, []
        self._put_back([(tag, delivery) for _, tag, delivery in settled])
        self.send(m.TxRollbackOk())

    # -- the rest --------------------------------------------------------------------------------
    def _flow(self, method: m.ChannelFlow) -> None:
        if not method.active:
            raise NotImplementedByBroker("active=false")
        self.send(m.ChannelFlowOk(True))

    def _access_request(self, method: m.AccessRequest) -> None:
        self.send(m.AccessRequestOk(1))


_HANDLERS: dict[type[m.Method], Callable[[Channel, Any], None]] = {
    **DECLARING,
    m.BasicQos: Channel._qos,
    m.BasicConsume: Channel._consume,
    m.BasicCancel: Channel._cancel,
    m.BasicGet: Channel._get,
    m.BasicAck: lambda channel, method: channel.ack(method.delivery_tag, method.multiple),
    m.BasicNack: Channel._nack,
    m.BasicReject: Channel._reject,
    m.BasicRecover: Channel._recover,
    m.BasicRecoverAsync: Channel._recover,
    m.ConfirmSelect: Channel._confirm_select,
    m.TxSelect: Channel._tx_select,
    m.TxCommit: Channel._tx_commit,
    m.TxRollback: Channel._tx_rollback,
    m.ChannelFlow: Channel._flow,
    m.AccessRequest: Channel._access_request,
}
