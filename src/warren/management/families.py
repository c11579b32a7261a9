"""Families of metrics by RabbitMQ's names: what each has, and of which objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from warren.broker.core import BrokerCore
from warren.management import figures
from warren.management.figures import Row


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
        figures.churn,
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
        figures.node_coarse,
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
        figures.node,
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
        figures.logins,
        apart=True,
    ),
    Family(
        "connection_coarse_metrics",
        _counters(
            ("connection_incoming_bytes_total", "Total number of bytes received on a connection"),
            ("connection_outgoing_bytes_total", "Total number of bytes sent on a connection"),
        ),
        figures.connection_octets,
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
        figures.connections,
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
        figures.channels,
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
        figures.channel_publishes,
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
        figures.queue_deliveries,
    ),
    Family(
        "channel_queue_exchange_metrics",
        _counters(
            ("queue_messages_published_total", "Total number of messages published to queues")
        ),
        figures.queue_publishes,
    ),
    Family(
        "queue_coarse_metrics",
        _gauges(
            ("queue_messages_ready", "Messages ready to be delivered to consumers"),
            ("queue_messages_unacked", "Messages delivered to consumers but not yet acknowledged"),
            ("queue_messages", "Sum of ready and unacknowledged messages - total queue depth"),
        ),
        figures.queue_depths,
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
        figures.queues,
    ),
    Family("queue_consumer_count", _CONSUMERS, figures.consumer_counts),
    Family(
        "vhost_status",
        _gauges(("vhost_status", "Whether a given vhost is running")),
        figures.vhosts,
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
        figures.exchanges,
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
        figures.exchanges,
        cluster=True,
    ),
)
