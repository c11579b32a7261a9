"""``/api/consumers``: who takes messages from which queue, and whose turn it is."""

from __future__ import annotations

from typing import Any

from warren.broker.consumer import Consumer
from warren.broker.plain import to_json
from warren.broker.vhost import VirtualHost
from warren.management.call import Call
from warren.management.erlang import NODE
from warren.management.lists import reply_list
from warren.management.messages import Response
from warren.management.site import Route


def consumer_row(consumer: Consumer) -> dict[str, Any]:
    channel, queue = consumer.channel, consumer.queue
    connection = channel.connection
    active, status = _activity(consumer)
    return {
        "arguments": to_json(consumer.arguments),
        "ack_required": not consumer.no_ack,
        "active": active,
        "activity_status": status,
        "channel_details": {
            "connection_name": connection.name,
            "name": channel.name,
            "node": NODE,
            "number": channel.number,
            "peer_host": connection.peer[0],
            "peer_port": connection.peer[1],
            "user": connection.user_name,
        },
        "consumer_tag": consumer.tag,
        "exclusive": consumer.exclusive,
        "prefetch_count": consumer.prefetch,
        "queue": {"name": queue.name, "vhost": queue.vhost.name},
    }


def _activity(consumer: Consumer) -> tuple[bool, str]:
    """Is it its turn? RabbitMQ calls no consumer of a stream active."""
    queue = consumer.queue
    if queue.rota.single:
        active = queue.rota.active is consumer
        return active, "single_active" if active else "waiting"
    return queue.kind != "stream", "up"


def list_consumers(call: Call) -> Response:
    return _list(call, list(call.core.vhosts.values()))


def list_of_vhost(call: Call) -> Response:
    return _list(call, [call.vhost])


def _list(call: Call, vhosts: list[VirtualHost]) -> Response:
    rows = [
        consumer_row(consumer)
        for vhost in vhosts
        for queue in vhost.queues.values()
        for consumer in queue.rota
        if call.is_monitor or consumer.channel.connection.user_name == call.user.name
    ]
    return reply_list(call, rows, lambda row: row)


ROUTES = (
    Route("/consumers", get=list_consumers),
    Route("/consumers/{vhost}", get=list_of_vhost),
)
