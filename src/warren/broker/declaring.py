"""The methods that make, bind and delete exchanges and queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from warren.amqp import methods as m
from warren.broker.inspection import REPLY_TO
from warren.broker.queues.stream import StreamQueue
from warren.broker.vhost import AnyQueue, refuse_default_exchange
from warren.errors import (
    NotFound,
    NothingDeclared,
    NotImplementedByBroker,
    PreconditionFailed,
)

if TYPE_CHECKING:
    from warren.broker.channel import Channel


def exchange_declare(channel: Channel, method: m.ExchangeDeclare) -> None:
    name = _plain(method.exchange)
    if method.passive:
        refuse_default_exchange(name)
        channel.vhost.exchange(name)
    else:
        channel.vhost.declare_exchange(
            name,
            method.type,
            durable=method.durable,
            auto_delete=method.auto_delete,
            internal=method.internal,
            arguments=method.arguments,
            access=channel.access,
        )
    if not method.nowait:
        channel.send(m.ExchangeDeclareOk())


def exchange_delete(channel: Channel, method: m.ExchangeDelete) -> None:
    channel.vhost.delete_exchange(
        _plain(method.exchange), if_unused=method.if_unused, access=channel.access
    )
    if not method.nowait:
        channel.send(m.ExchangeDeleteOk())


def exchange_bind(channel: Channel, method: m.ExchangeBind | m.ExchangeUnbind) -> None:
    source, destination = _plain(method.source), _plain(method.destination)
    channel.access.write("exchange", destination)
    refuse_default_exchange(destination)
    _check_source(channel, source, method.routing_key)
    vhost, binds = channel.vhost, isinstance(method, m.ExchangeBind)
    if binds:
        vhost.exchange(source)
        target = vhost.exchange(destination)
        vhost.bind(source, target, method.routing_key, method.arguments)
    elif source in vhost.exchanges and destination in vhost.exchanges:
        target = vhost.exchanges[destination]
        vhost.unbind(source, target, method.routing_key, method.arguments)
    if not method.nowait:
        channel.send(m.ExchangeBindOk() if binds else m.ExchangeUnbindOk())


def queue_declare(channel: Channel, method: m.QueueDeclare) -> None:
    name = _plain(method.queue)
    if name.startswith(REPLY_TO):
        _declare_reply_queue(channel, name, method)
        return
    if method.passive:
        queue = channel.vhost.queue(name, channel.connection)
        queue.touch()
    else:
        queue = channel.vhost.declare_queue(
            name,
            durable=method.durable,
            exclusive=method.exclusive,
            auto_delete=method.auto_delete,
            arguments=method.arguments,
            connection=channel.connection,
            access=channel.access,
        )
    channel.core.churn["queue_declared"] += 1
    channel.last_queue = queue.name
    if not method.nowait:
        channel.send(m.QueueDeclareOk(queue.name, queue.message_count, queue.consumer_count))


def _declare_reply_queue(channel: Channel, name: str, method: m.QueueDeclare) -> None:
    if name != REPLY_TO and channel.vhost.reply_consumer(name) is None:
        raise NotFound("queue", name, channel.vhost.name)
    channel.last_queue = name
    if not method.nowait:
        channel.send(m.QueueDeclareOk(name, 0, 1))


def queue_bind(channel: Channel, method: m.QueueBind | m.QueueUnbind) -> None:
    if not method.queue and not channel.last_queue:
        raise NothingDeclared
    queue_name = _plain(method.queue) or channel.last_queue
    key = method.routing_key
    if not method.queue and not key:
        key = channel.last_queue
    source = _plain(method.exchange)
    channel.access.write("queue", queue_name)
    _check_source(channel, source, key)
    vhost = channel.vhost
    if isinstance(method, m.QueueBind):
        vhost.exchange(source)
        vhost.bind(source, vhost.queue(queue_name, channel.connection), key, method.arguments)
        if not method.nowait:
            channel.send(m.QueueBindOk())
        return
    queue = vhost.queues.get(queue_name)
    if queue is not None and vhost.is_bound(source, queue, key, method.arguments):
        vhost.queue(queue_name, channel.connection)
        vhost.unbind(source, queue, key, method.arguments)
    channel.send(m.QueueUnbindOk())


def _check_source(channel: Channel, source: str, routing_key: str) -> None:
    """May the channel's user take messages from an exchange, and those with this key?"""
    refuse_default_exchange(source)
    channel.access.read("exchange", source)
    exchange = channel.vhost.exchanges.get(source)
    if exchange is not None and exchange.type == "topic":
        channel.access.topic("read", source, routing_key)


def queue_purge(channel: Channel, method: m.QueuePurge) -> None:
    queue = channel.readable_queue(method.queue)
    if isinstance(queue, StreamQueue):
        raise NotImplementedByBroker(f"queue.purge not supported by stream queues {queue.where}")
    count = queue.purge()
    if not method.nowait:
        channel.send(m.QueuePurgeOk(count))


def queue_delete(channel: Channel, method: m.QueueDelete) -> None:
    count = 0
    name = _plain(method.queue)
    if not name and not channel.last_queue:
        raise NothingDeclared
    channel.access.configure("queue", name or channel.last_queue)
    if (name or channel.last_queue) in channel.vhost.queues:
        queue = channel.queue(name)
        _check_delete(queue, method)
        count = channel.vhost.delete_queue(queue)
    if not method.nowait:
        channel.send(m.QueueDeleteOk(count))


def _check_delete(queue: AnyQueue, method: m.QueueDelete) -> None:
    """Refuse a conditional deletion whose condition does not hold; streams know none."""
    if queue.kind == "quorum":
        for word, asked in (("if-unused", method.if_unused), ("if-empty", method.if_empty)):
            if asked:
                raise NotImplementedByBroker(
                    f"cannot delete {queue.where}. queue.delete operations with {word} "
                    "flag set are not supported by quorum queues"
                )
    elif queue.kind == "classic":
        if method.if_empty and queue.message_count:
            raise PreconditionFailed(f"{queue.where} not empty")
        if method.if_unused and len(queue.rota):
            raise PreconditionFailed(f"{queue.where} in use")


def _plain(name: str) -> str:
    """RabbitMQ takes line breaks out of names."""
    return name.replace("\n", "").replace("\r", "") if "\n" in name or "\r" in name else name


DECLARING: dict[type[m.Method], Callable[[Channel, Any], None]] = {
    m.ExchangeDeclare: exchange_declare,
    m.ExchangeDelete: exchange_delete,
    m.ExchangeBind: exchange_bind,
    m.ExchangeUnbind: exchange_bind,
    m.QueueDeclare: queue_declare,
    m.QueueBind: queue_bind,
    m.QueueUnbind: queue_bind,
    m.QueuePurge: queue_purge,
    m.QueueDelete: queue_delete,
}
