"""The part of a channel that declares, binds and deletes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, cast

from warren.amqp import methods as m
from warren.amqp.tables import Table
from warren.client.delivery import QueueInfo
from warren.client.topology import Topology

Arguments = Mapping[str, Any] | None


class Declaring(ABC):
    """Queues, exchanges, bindings. What is declared here is declared again after a reconnect."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology

    @abstractmethod
    async def call(self, method: m.Method, *answers: type[m.Method]) -> Any: ...

    async def declare_queue(
        self,
        queue: str = "",
        *,
        passive: bool = False,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Arguments = None,
    ) -> QueueInfo:
        """Make a queue, or see that it is there as declared; ``passive`` only looks.

        Without a name the broker chooses one. Such a queue gets a new name after a reconnect:
        take it from the consumer (``consumer.queue``) where it matters.
        """
        method = m.QueueDeclare(
            queue=queue,
            passive=passive,
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
            arguments=Table(arguments),
        )
        answer = cast(m.QueueDeclareOk, await self.call(method, m.QueueDeclareOk))
        if not passive:
            self.topology.queue(method, answer.queue)
        return QueueInfo(answer.queue, answer.message_count, answer.consumer_count)

    async def delete_queue(
        self, queue: str, *, if_unused: bool = False, if_empty: bool = False
    ) -> int:
        """Delete a queue; returns how many messages it held."""
        method = m.QueueDelete(queue=queue, if_unused=if_unused, if_empty=if_empty)
        answer = cast(m.QueueDeleteOk, await self.call(method, m.QueueDeleteOk))
        self.topology.queue_gone(queue)
        return answer.message_count

    async def purge_queue(self, queue: str) -> int:
        """Throw a queue's ready messages away; returns how many."""
        answer = await self.call(m.QueuePurge(queue=queue), m.QueuePurgeOk)
        return cast(m.QueuePurgeOk, answer).message_count

    async def bind_queue(
        self, queue: str, exchange: str, routing_key: str = "", arguments: Arguments = None
    ) -> None:
        method = m.QueueBind(
            queue=queue, exchange=exchange, routing_key=routing_key, arguments=Table(arguments)
        )
        await self.call(method, m.QueueBindOk)
        self.topology.bound(method)

    async def unbind_queue(
        self, queue: str, exchange: str, routing_key: str = "", arguments: Arguments = None
    ) -> None:
        method = m.QueueUnbind(
            queue=queue, exchange=exchange, routing_key=routing_key, arguments=Table(arguments)
        )
        await self.call(method, m.QueueUnbindOk)
        self.topology.unbound(method)

    async def declare_exchange(
        self,
        exchange: str,
        type: str = "direct",
        *,
        passive: bool = False,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Arguments = None,
    ) -> None:
        """Make an exchange, or see that it is there as declared; ``passive`` only looks."""
        method = m.ExchangeDeclare(
            exchange=exchange,
            type=type,
            passive=passive,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=Table(arguments),
        )
        await self.call(method, m.ExchangeDeclareOk)
        if not passive:
            self.topology.exchange(method)

    async def delete_exchange(self, exchange: str, *, if_unused: bool = False) -> None:
        method = m.ExchangeDelete(exchange=exchange, if_unused=if_unused)
        await self.call(method, m.ExchangeDeleteOk)
        self.topology.exchange_gone(exchange)

    async def bind_exchange(
        self, destination: str, source: str, routing_key: str = "", arguments: Arguments = None
    ) -> None:
        method = m.ExchangeBind(
            destination=destination,
            source=source,
            routing_key=routing_key,
            arguments=Table(arguments),
        )
        await self.call(method, m.ExchangeBindOk)
        self.topology.bound(method)

    async def unbind_exchange(
        self, destination: str, source: str, routing_key: str = "", arguments: Arguments = None
    ) -> None:
        method = m.ExchangeUnbind(
            destination=destination,
            source=source,
            routing_key=routing_key,
            arguments=Table(arguments),
        )
        await self.call(method, m.ExchangeUnbindOk)
        self.topology.unbound(method)
