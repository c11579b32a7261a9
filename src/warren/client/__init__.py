"""Clients: programs that talk to a broker, ours or RabbitMQ.

::

    import warren

    async with warren.connect("amqp://localhost", name="billing") as connection:
        channel = await connection.channel(prefetch=50)

        await channel.declare_exchange("shop", "topic", durable=True)
        info = await channel.declare_queue("orders", durable=True)  # .name .messages .consumers
        await channel.bind_queue("orders", "shop", "order.*")

        # Publish: await one, or many at once
        await channel.publish(b"...", exchange="shop", routing_key="order.new")
        for body in bodies:
            channel.publish(body, routing_key="orders", properties=warren.Properties(type="order"))
            if channel.unconfirmed > 1000:
                await channel.confirmed(at_most=500)
        await channel.confirmed()

        # Consume: a callback in the event loop, as fast as it goes ...
        consumer = await channel.consume("orders", on_message, exclusive=True, on_cancel=gone)
        await consumer.cancel()
        # ... or one by one
        async with channel.deliveries("orders") as deliveries:
            async for delivery in deliveries:
                delivery.body, delivery.properties, delivery.queue, delivery.redelivered
                delivery.ack()  # or .nack(requeue=...), .reject(); any thread; False if stale
        message = await channel.get("orders")  # or None

``connect`` takes several hosts, ``heartbeat_s``, ``tls`` (an SSLContext), ``reconnect=False``,
``backoff=Backoff(first_s, most_s)``.
``connection.on_lost(callback(error))``, ``.on_restored(callback())``,
``.on_blocked(callback(reason or None))``, ``.state``, ``.generation``, ``.address``,
``await connection.ready()``, ``await connection.close()``.
``channel.on_closed(callback(error))`` when it is closed and its owner did not do it;
``channel.on_return(callback(returned))``, ``channel.closed`` (why, or None), ``channel.is_open``,
``await channel.close()`` gives unsettled messages back in order.
``await channel.call(method, answer)`` sends any method of ``warren.amqp.methods``.

Calls may be on their way at once, on one channel or on many: a hundred channels with a consumer
each take two round trips when they are opened with ``asyncio.gather``.

A refusal by the broker raises the matching class of ``warren.errors`` (``NotFound``,
``AccessRefused``, ``ResourceLocked``, ``PreconditionFailed`` ...) with ``.code`` and ``.text``, and
costs the channel. A lost connection raises ``ConnectionLost`` in what was under way.

For the wire alone: ``warren.amqp.client.ClientSession`` (sans-IO), ``warren.client.dial.Dialer``
(blocking: a socket with a session that is running on it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warren.amqp.properties import Properties
    from warren.client.backoff import Backoff
    from warren.client.channel import Channel
    from warren.client.confirm import Confirm
    from warren.client.connection import Connection, connect
    from warren.client.consumer import Consumer, Deliveries
    from warren.client.delivery import Delivery, QueueInfo, Returned

__all__ = [
    "Backoff",
    "Channel",
    "Confirm",
    "Connection",
    "Consumer",
    "Deliveries",
    "Delivery",
    "Properties",
    "QueueInfo",
    "Returned",
    "connect",
]

# Loaded when first used: the command line needs none of it.
_LAZY = {
    "Backoff": "warren.client.backoff",
    "Channel": "warren.client.channel",
    "Confirm": "warren.client.confirm",
    "Connection": "warren.client.connection",
    "Consumer": "warren.client.consumer",
    "Deliveries": "warren.client.consumer",
    "Delivery": "warren.client.delivery",
    "Properties": "warren.amqp.properties",
    "QueueInfo": "warren.client.delivery",
    "Returned": "warren.client.delivery",
    "connect": "warren.client.connection",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'warren.client' has no attribute {name!r}")
