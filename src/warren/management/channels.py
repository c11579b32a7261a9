"""``/api/channels``: what goes over each channel, and who consumes on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warren.broker.channel import Channel
from warren.management.call import Call
from warren.management.consumers import consumer_row
from warren.management.erlang import NODE, process
from warren.management.lists import reply_list, reply_one
from warren.management.messages import HttpError, Response, not_found
from warren.management.rules import in_vhost, owner
from warren.management.sampler import DELIVERING, PUBLISHING, channel_counts
from warren.management.site import Route


def channel_row(call: Call, channel: Channel) -> dict[str, Any]:
    connection, publisher, sampler = channel.connection, channel.publisher, call.site.sampler
    messages, acks = channel.uncommitted
    unconfirmed = publisher.sequence - publisher.settled if publisher.confirming else 0
    return {
        "acks_uncommitted": acks,
        "confirm": publisher.confirming,
        "connection_details": {
            "name": connection.name,
            "peer_host": connection.peer[0],
            "peer_port": connection.peer[1],
        },
        "consumer_count": len(channel.consumers) + (channel.reply_consumer is not None),
        "global_prefetch_count": channel.global_prefetch,
        "messages_unacknowledged": len(channel.unacked),
        "messages_uncommitted": messages,
        "messages_unconfirmed": unconfirmed,
        "name": channel.name,
        "node": NODE,
        "number": channel.number,
        "pending_raft_commands": 0,
        "prefetch_count": channel.prefetch,
        "state": "flow" if connection.blocked else "running",
        "transactional": publisher.transaction is not None,
        "user": connection.user_name,
        "user_who_performed_action": connection.user_name,
        "vhost": channel.vhost.name,
        **process(),
        **sampler.message_stats(
            channel, channel_counts(channel), PUBLISHING, DELIVERING, span=call.span("msg_rates")
        ),
        **sampler.idle_since(channel),
    }


def all_channels(call: Call) -> Iterator[Channel]:
    """Those the user may see."""
    for connection in call.core.connections:
        if call.is_monitor or connection.user_name == call.user.name:
            yield from connection.channels


def list_channels(call: Call) -> Response:
    return reply_list(call, all_channels(call), lambda item: channel_row(call, item))


def list_of_vhost(call: Call) -> Response:
    vhost = call.vhost
    mine = (channel for channel in all_channels(call) if channel.vhost is vhost)
    return reply_list(call, mine, lambda item: channel_row(call, item))


def show(call: Call) -> Response:
    name = call.names["channel"]
    for connection in call.core.connections:
        for channel in connection.channels:
            if channel.name == name:
                refused = owner(call, connection.user_name)
                if refused is not None:
                    raise HttpError(401, "not_authorised", refused)
                return reply_one(call, _details(call, channel))
    raise not_found()


def _details(call: Call, channel: Channel) -> dict[str, Any]:
    return {
        **channel_row(call, channel),
        "consumer_details": [consumer_row(consumer) for consumer in channel.consumers.values()],
        "deliveries": [],  # filled in RabbitMQ's detailed mode only
        "publishes": [],
    }


ROUTES = (
    Route("/channels", get=list_channels),
    Route("/channels/{channel}", get=show),
    Route("/vhosts/{vhost}/channels", in_vhost, get=list_of_vhost),
)
