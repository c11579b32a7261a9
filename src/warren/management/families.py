"""Families of metrics by RabbitMQ's names: what each has, and of which objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from warren.broker.core import BrokerCore
from warren.broker.plain import head_timestamp
from warren.management.machine import free_disk_bytes, most_files, open_files, resident_bytes
from warren.management.sampler import channel_counts, depth, queue_counts

Labels = dict[str, str]
#: What is told of one object: its labels, and a value for each metric that it has.
Row = tuple[Labels, dict[str, float]]
NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Family:
    """Metrics (name, type, help) of the same objects."""

    name: str
    metrics: tuple[tuple[str, str, str], ...]
    rows: Callable[[BrokerCore], Iterator[Row]]
    #: Told of the cluster as a whole, and only to those who ask for it.
    cluster: bool = False
    #: Its objects are told apart even where the others' are added up.
    apart: bool = False


def _counters(*pairs: tuple[str, str]) -> tuple[tuple[str, str, str], ...]:
    return tuple((name, "counter", text) for name, text in pairs)


def _gauges(*pairs: tuple[str, str]) -> tuple[tuple[str, str, str], ...]:
    return tuple((name, "gauge", text) for name, text in pairs)


# -- the node ------------------------------------------------------------------------------------
def _churn(core: BrokerCore) -> Iterator[Row]:
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


def _node_coarse(core: BrokerCore) -> Iterator[Row]:
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


def _node(core: BrokerCore) -> Iterator[Row]:
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


def _logins(core: BrokerCore) -> Iterator[Row]:
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
def _connection_octets(core: BrokerCore) -> Iterator[Row]:
    for connection in core.connections:
        session = connection.session
        yield (
            {"channel": connection.name},  # RabbitMQ's own word for it
            {
                "connection_incoming_bytes_total": session.received_bytes,
                "connection_outgoing_bytes_total": session.sent_bytes,
            },
        )


def _connections(core: BrokerCore) -> Iterator[Row]:
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


def _all_channels(core: BrokerCore) -> Iterator[Any]:
    for connection in core.connections:
        yield from connection.channels


def _channels(core: BrokerCore) -> Iterator[Row]:
    for channel in _all_channels(core):
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


def _channel_publishes(core: BrokerCore) -> Iterator[Row]:
    for channel in _all_channels(core):
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


def _queue_deliveries(core: BrokerCore) -> Iterator[Row]:
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


def _queue_publishes(core: BrokerCore) -> Iterator[Row]:
    """Counted by queue here, in RabbitMQ by channel, exchange and queue."""
    for queue in all_queues(core):
        labels = {"queue_vhost": queue.vhost.name, "queue": queue.name}
        yield labels, {"queue_messages_published_total": queue.published}


def _queue_depths(core: BrokerCore) -> Iterator[Row]:
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


def _consumer_counts(core: BrokerCore) -> Iterator[Row]:
    for queue in all_queues(core):
        yield _where(queue), {"queue_consumers": len(queue.rota)}


def _queues(core: BrokerCore) -> Iterator[Row]:
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


def _vhosts(core: BrokerCore) -> Iterator[Row]:
    for name in core.vhosts:
        yield {"vhost": name}, {"vhost_status": 1}


def _exchanges(core: BrokerCore) -> Iterator[Row]:
    for vhost in core.vhosts.values():
        for exchange in vhost.exchanges.values():
            if exchange.name:
                labels = {"vhost": vhost.name, "exchange": exchange.name, "type": exchange.type}
                count = len(exchange.bindings)
                yield labels, {"exchange_bindings": count, "exchange_name": 1}


_CONSUMERS = _gauges(("queue_consumers", "Consumers on a queue"))
FAMILIES = (
    Family(
        "connection_churn_metrics",
        _counters(
            ("connections_opened_total", "Total number of connections opened"),
            ("connections_closed_total", "Total number of connections closed or terminated"),
            ("channels_opened_total", "Total number of channels opened"),
            ("channels_closed_total", "Total number of channels closed"),
            ("queues_declared_total", "Total number of queues declared"),
            ("queues_created_total", "Total number of queues created"),
            ("queues_deleted_total", "Total number of queues deleted"),
        ),
        _churn,
    ),
    Family(
        "node_coarse_metrics",
        _gauges(
            ("process_open_fds", "Open file descriptors"),
            ("process_open_tcp_sockets", "Open TCP sockets"),
            ("process_resident_memory_bytes", "Memory used in bytes"),
            ("disk_space_available_bytes", "Disk space available in bytes"),
            ("erlang_processes_used", "Erlang processes used"),
        ),
        _node_coarse,
    ),
    Family(
        "node_metrics",
        _gauges(
            ("process_max_fds", "Open file descriptors limit"),
            ("process_max_tcp_sockets", "Open TCP sockets limit"),
            ("resident_memory_limit_bytes", "Memory high watermark in bytes"),
            ("disk_space_available_limit_bytes", "Free disk space low watermark in bytes"),
            ("erlang_uptime_seconds", "Node uptime"),
        ),
        _node,
    ),
    Family(
        "auth_attempt_metrics",
        _counters(
            ("auth_attempts_total", "Total number of authorization attempts"),
            (
                "auth_attempts_succeeded_total",
                "Total number of successful authentication attempts",
            ),
            ("auth_attempts_failed_total", "Total number of failed authentication attempts"),
        ),
        _logins,
        apart=True,
    ),
    Family(
        "connection_coarse_metrics",
        _counters(
            ("connection_incoming_bytes_total", "Total number of bytes received on a connection"),
            ("connection_outgoing_bytes_total", "Total number of bytes sent on a connection"),
        ),
        _connection_octets,
    ),
    Family(
        "connection_metrics",
        (
            *_counters(
                (
                    "connection_incoming_packets_total",
                    "Total number of packets received on a connection",
                ),
                (
                    "connection_outgoing_packets_total",
                    "Total number of packets sent on a connection",
                ),
            ),
            *_gauges(
                (
                    "connection_pending_packets",
                    "Number of packets waiting to be sent on a connection",
                ),
                ("connection_channels", "Channels on a connection"),
            ),
        ),
        _connections,
    ),
    Family(
        "channel_metrics",
        _gauges(
            ("channel_consumers", "Consumers on a channel"),
            ("channel_messages_unacked", "Delivered but not yet acknowledged messages"),
            ("channel_messages_unconfirmed", "Published but not yet confirmed messages"),
            (
                "channel_messages_uncommitted",
                "Messages received in a transaction but not yet committed",
            ),
            (
                "channel_acks_uncommitted",
                "Message acknowledgements in a transaction not yet committed",
            ),
            ("consumer_prefetch", "Limit of unacknowledged messages for each consumer"),
            (
                "channel_prefetch",
                "Total limit of unacknowledged messages for all consumers on a channel",
            ),
        ),
        _channels,
    ),
    Family(
        "channel_exchange_metrics",
        _counters(
            (
                "channel_messages_published_total",
                "Total number of messages published into an exchange on a channel",
            ),
            (
                "channel_messages_confirmed_total",
                "Total number of messages published into an exchange and confirmed on the channel",
            ),
            (
                "channel_messages_unroutable_returned_total",
                "Total number of messages published as mandatory into an exchange and returned to "
                "the publisher as unroutable",
            ),
            (
                "channel_messages_unroutable_dropped_total",
                "Total number of messages published as non-mandatory into an exchange and dropped "
                "as unroutable",
            ),
        ),
        _channel_publishes,
    ),
    Family(
        "channel_queue_metrics",
        _counters(
            (
                "channel_get_ack_total",
                "Total number of messages fetched with basic.get in manual acknowledgement mode",
            ),
            (
                "channel_get_total",
                "Total number of messages fetched with basic.get in automatic acknowledgement mode",
            ),
            (
                "channel_messages_delivered_ack_total",
                "Total number of messages delivered to consumers in manual acknowledgement mode",
            ),
            (
                "channel_messages_delivered_total",
                "Total number of messages delivered to consumers in automatic acknowledgement mode",
            ),
            (
                "channel_messages_redelivered_total",
                "Total number of messages redelivered to consumers",
            ),
            (
                "channel_messages_acked_total",
                "Total number of messages acknowledged by consumers",
            ),
            (
                "channel_get_empty_total",
                "Total number of times basic.get operations fetched no message",
            ),
        ),
        _queue_deliveries,
    ),
    Family(
        "channel_queue_exchange_metrics",
        _counters(
            ("queue_messages_published_total", "Total number of messages published to queues")
        ),
        _queue_publishes,
    ),
    Family(
        "queue_coarse_metrics",
        _gauges(
            ("queue_messages_ready", "Messages ready to be delivered to consumers"),
            ("queue_messages_unacked", "Messages delivered to consumers but not yet acknowledged"),
            ("queue_messages", "Sum of ready and unacknowledged messages - total queue depth"),
        ),
        _queue_depths,
    ),
    Family(
        "queue_metrics",
        _gauges(
            ("queue_consumers", "Consumers on a queue"),
            ("queue_consumer_capacity", "Consumer capacity"),
            ("queue_consumer_utilisation", "Same as consumer capacity"),
            (
                "queue_process_memory_bytes",
                "Memory in bytes used by the Erlang queue process",
            ),
            ("queue_messages_ram", "Ready and unacknowledged messages stored in memory"),
            (
                "queue_messages_ram_bytes",
                "Size of ready and unacknowledged messages stored in memory",
            ),
            ("queue_messages_ready_ram", "Ready messages stored in memory"),
            ("queue_messages_unacked_ram", "Unacknowledged messages stored in memory"),
            ("queue_messages_persistent", "Persistent messages"),
            ("queue_messages_persistent_bytes", "Size in bytes of persistent messages"),
            ("queue_messages_bytes", "Size in bytes of ready and unacknowledged messages"),
            ("queue_messages_ready_bytes", "Size in bytes of ready messages"),
            ("queue_messages_unacked_bytes", "Size in bytes of all unacknowledged messages"),
            ("queue_messages_paged_out", "Messages paged out to disk"),
            (
                "queue_messages_paged_out_bytes",
                "Size in bytes of messages paged out to disk",
            ),
            (
                "queue_head_message_timestamp",
                "Timestamp of the first message in the queue, if any",
            ),
        ),
        _queues,
    ),
    Family("queue_consumer_count", _CONSUMERS, _consumer_counts),
    Family(
        "vhost_status",
        _gauges(("vhost_status", "Whether a given vhost is running")),
        _vhosts,
        cluster=True,
    ),
    Family(
        "exchange_bindings",
        _gauges(
            (
                "exchange_bindings",
                "Number of bindings for an exchange. This value is cluster-wide.",
            )
        ),
        _exchanges,
        cluster=True,
    ),
    Family(
        "exchange_names",
        _gauges(
            (
                "exchange_name",
                "Enumerates exchanges without any additional info. This value is cluster-wide. A "
                "cheaper alternative to `exchange_bindings`",
            )
        ),
        _exchanges,
        cluster=True,
    ),
)
