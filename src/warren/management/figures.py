"""The figures of metrics: what is told of each object, a function for each family of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warren.broker.core import BrokerCore
from warren.broker.plain import head_timestamp
from warren.management.machine import free_disk_bytes, most_files, open_files, resident_bytes
from warren.management.sampler import channel_counts, depth, queue_counts

Labels = dict[str, str]
#: What is told of one object: its labels, and a value for each metric that it has.
Row = tuple[Labels, dict[str, float]]
NAN = float("nan")


# -- the node ------------------------------------------------------------------------------------
def churn(core: BrokerCore) -> Iterator[Row]:
    kinds = (("connection", ("opened", "closed")), ("channel", ("opened", "closed")))
    words = {"opened": "created", "closed": "closed"}
    values: dict[str, float] = {
        f"{thing}s_{event}_total": core.churn[f"{thing}_{words[event]}"]
        for thing, events in kinds
        for event in events
    }
    for event in ("declared", "created", "deleted"):
        values[f"queues_{event}_total"] = core.churn[f"queue_{event}"]
    yield {}, values


def node_coarse(core: BrokerCore) -> Iterator[Row]:
    yield (
        {},
        {
            "process_open_fds": open_files(),
            "process_open_tcp_sockets": len(core.connections),
            "process_resident_memory_bytes": resident_bytes(),
            "disk_space_available_bytes": free_disk_bytes(core),
            "erlang_processes_used": 1,
        },
    )


def node(core: BrokerCore) -> Iterator[Row]:
    yield (
        {},
        {
            "process_max_fds": most_files(),
            "process_max_tcp_sockets": most_files(),
            "resident_memory_limit_bytes": core.memory_limit_bytes,
            "disk_space_available_limit_bytes": core.disk_free_limit_bytes,
            "erlang_uptime_seconds": (core.clock.wall_ms() - core.started_ms) / 1000,
        },
    )


def logins(core: BrokerCore) -> Iterator[Row]:
    for protocol, (succeeded, failed) in core.admin.logins.by_protocol().items():
        yield (
            {"protocol": protocol},
            {
                "auth_attempts_total": succeeded + failed,
                "auth_attempts_succeeded_total": succeeded,
                "auth_attempts_failed_total": failed,
            },
        )


# -- connections and channels --------------------------------------------------------------------
def connection_octets(core: BrokerCore) -> Iterator[Row]:
    for connection in core.connections:
        session = connection.session
        yield (
            {"channel": connection.name},  # RabbitMQ's own word for it
            {
                "connection_incoming_bytes_total": session.received_bytes,
                "connection_outgoing_bytes_total": session.sent_bytes,
            },
        )


def connections(core: BrokerCore) -> Iterator[Row]:
    for connection in core.connections:
        session = connection.session
        yield (
            {"channel": connection.name},
            {
                "connection_incoming_packets_total": session.received,
                "connection_outgoing_packets_total": session.sent,
                "connection_pending_packets": 0,
                "connection_channels": len(connection.channels),
            },
        )


def all_channels(core: BrokerCore) -> Iterator[Any]:
    for connection in core.connections:
        yield from connection.channels


def channels(core: BrokerCore) -> Iterator[Row]:
    for channel in all_channels(core):
        publisher = channel.publisher
        messages, acks = channel.uncommitted
        unconfirmed = publisher.sequence - publisher.settled if publisher.confirming else 0
        yield (
            {"channel": channel.name},
            {
                "channel_consumers": len(channel.consumers),
                "channel_messages_unacked": len(channel.unacked),
                "channel_messages_unconfirmed": unconfirmed,
                "channel_messages_uncommitted": messages,
                "channel_acks_uncommitted": acks,
                "consumer_prefetch": channel.prefetch,
                "channel_prefetch": channel.global_prefetch,
            },
        )


def channel_publishes(core: BrokerCore) -> Iterator[Row]:
    for channel in all_channels(core):
        counts = channel_counts(channel)
        yield (
            {"channel": channel.name, "vhost": channel.vhost.name},
            {
                "channel_messages_published_total": counts["publish"],
                "channel_messages_confirmed_total": counts["confirm"],
                "channel_messages_unroutable_returned_total": counts["return_unroutable"],
                "channel_messages_unroutable_dropped_total": counts["drop_unroutable"],
            },
        )


# -- queues and exchanges ------------------------------------------------------------------------
def all_queues(core: BrokerCore) -> Iterator[Any]:
    for vhost in core.vhosts.values():
        yield from vhost.queues.values()


def _where(queue: Any) -> Labels:
    return {"vhost": queue.vhost.name, "queue": queue.name}


def queue_deliveries(core: BrokerCore) -> Iterator[Row]:
    """Counted by queue here, in RabbitMQ by channel and queue."""
    for queue in all_queues(core):
        counts = queue_counts(queue)
        yield (
            _where(queue),
            {
                "channel_get_ack_total": counts["get"],
                "channel_get_total": counts["get_no_ack"],
                "channel_messages_delivered_ack_total": counts["deliver"],
                "channel_messages_delivered_total": counts["deliver_no_ack"],
                "channel_messages_redelivered_total": counts["redeliver"],
                "channel_messages_acked_total": counts["ack"],
                "channel_get_empty_total": counts["get_empty"],
            },
        )


def queue_publishes(core: BrokerCore) -> Iterator[Row]:
    """Counted by queue here, in RabbitMQ by channel, exchange and queue."""
    for queue in all_queues(core):
        labels = {"queue_vhost": queue.vhost.name, "queue": queue.name}
        yield labels, {"queue_messages_published_total": queue.published}


def queue_depths(core: BrokerCore) -> Iterator[Row]:
    for queue in all_queues(core):
        deep = depth(queue)
        yield (
            _where(queue),
            {
                "queue_messages_ready": deep["messages_ready"],
                "queue_messages_unacked": deep["messages_unacknowledged"],
                "queue_messages": deep["messages"],
            },
        )


def consumer_counts(core: BrokerCore) -> Iterator[Row]:
    for queue in all_queues(core):
        yield _where(queue), {"queue_consumers": len(queue.rota)}


def queues(core: BrokerCore) -> Iterator[Row]:
    for queue in all_queues(core):
        values: dict[str, float] = {
            "queue_consumers": len(queue.rota),
            "queue_process_memory_bytes": queue.ready_bytes + queue.unacked_bytes,
        }
        if queue.kind != "stream":
            values.update(_sizes(queue))
        if queue.kind == "classic":
            values.update(_of_classic(queue))
        yield _where(queue), values


def _sizes(queue: Any) -> dict[str, float]:
    count, octets = depth(queue)["messages"], queue.ready_bytes + queue.unacked_bytes
    able = 0 if not len(queue.rota) or queue.message_count else 1
    return {
        "queue_consumer_capacity": able,
        "queue_consumer_utilisation": able,
        "queue_messages_ram": count - queue.paged,
        "queue_messages_ram_bytes": octets,
        "queue_messages_persistent": count if queue.durable else 0,
        "queue_messages_persistent_bytes": octets if queue.durable else 0,
        "queue_messages_bytes": octets,
        "queue_messages_ready_bytes": queue.ready_bytes,
        "queue_messages_unacked_bytes": queue.unacked_bytes,
    }


def _of_classic(queue: Any) -> dict[str, float]:
    head = queue.head
    stamp = head_timestamp(head) if head is not None else None
    return {
        "queue_messages_ready_ram": queue.message_count - queue.paged,
        "queue_messages_unacked_ram": queue.unacked,
        "queue_messages_paged_out": queue.paged,
        "queue_messages_paged_out_bytes": 0,
        "queue_head_message_timestamp": NAN if stamp is None else stamp,
    }


def vhosts(core: BrokerCore) -> Iterator[Row]:
    for name in core.vhosts:
        yield {"vhost": name}, {"vhost_status": 1}


def exchanges(core: BrokerCore) -> Iterator[Row]:
    for vhost in core.vhosts.values():
        for exchange in vhost.exchanges.values():
            if exchange.name:
                labels = {"vhost": vhost.name, "exchange": exchange.name, "type": exchange.type}
                count = len(exchange.bindings)
                yield labels, {"exchange_bindings": count, "exchange_name": 1}
