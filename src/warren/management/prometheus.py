"""``/metrics``: RabbitMQ's names in Prometheus's words, so that its dashboards work here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from warren.broker.core import RABBITMQ_VERSION, BrokerCore
from warren.management.erlang import NODE
from warren.management.machine import most_files, open_files, resident_bytes
from warren.management.messages import Response
from warren.management.sampler import Sampler, depth, queue_counts

#: name, type, help, and the counter it tells.
_TOTALS = (
    ("connections_opened_total", "connection_created", "Total number of connections opened"),
    (
        "connections_closed_total",
        "connection_closed",
        "Total number of connections closed or terminated",
    ),
    ("channels_opened_total", "channel_created", "Total number of channels opened"),
    ("channels_closed_total", "channel_closed", "Total number of channels closed"),
    ("queues_declared_total", "queue_declared", "Total number of queues declared"),
    ("queues_created_total", "queue_created", "Total number of queues created"),
    ("queues_deleted_total", "queue_deleted", "Total number of queues deleted"),
)
_GLOBAL = (
    ("messages_received_total", "publish", "Total number of messages received from publishers"),
    ("messages_routed_total", "routed", "Total number of messages routed to queues or streams"),
    (
        "messages_unroutable_dropped_total",
        "drop_unroutable",
        "Total number of messages published as non-mandatory into an exchange and dropped as "
        "unroutable",
    ),
    (
        "messages_unroutable_returned_total",
        "return_unroutable",
        "Total number of messages published as mandatory into an exchange and returned to the "
        "publisher as unroutable",
    ),
    ("messages_confirmed_total", "confirm", "Total number of messages confirmed to publishers"),
    ("messages_delivered_total", "deliver_get", "Total number of messages delivered to consumers"),
    (
        "messages_delivered_consume_manual_ack_total",
        "deliver",
        "Total number of messages delivered to consumers using basic.consume with manual "
        "acknowledgment",
    ),
    (
        "messages_delivered_consume_auto_ack_total",
        "deliver_no_ack",
        "Total number of messages delivered to consumers using basic.consume with automatic "
        "acknowledgment",
    ),
    (
        "messages_delivered_get_manual_ack_total",
        "get",
        "Total number of messages delivered to consumers using basic.get with manual "
        "acknowledgment",
    ),
    (
        "messages_delivered_get_auto_ack_total",
        "get_no_ack",
        "Total number of messages delivered to consumers using basic.get with automatic "
        "acknowledgment",
    ),
    (
        "messages_get_empty_total",
        "get_empty",
        "Total number of times basic.get operations fetched no message",
    ),
    (
        "messages_redelivered_total",
        "redeliver",
        "Total number of messages redelivered to consumers",
    ),
    (
        "messages_acknowledged_total",
        "ack",
        "Total number of messages acknowledged by consumers",
    ),
)
_QUEUE_METRICS = (
    ("queue_messages_ready", "gauge", "Messages ready to be delivered to consumers"),
    ("queue_messages_unacked", "gauge", "Messages delivered to consumers but not yet acknowledged"),
    ("queue_messages", "gauge", "Sum of ready and unacknowledged messages - total queue depth"),
    ("queue_consumers", "gauge", "Consumers on a queue"),
    ("queue_messages_bytes", "gauge", "Size in bytes of ready and unacknowledged messages"),
    ("queue_messages_ready_bytes", "gauge", "Size in bytes of ready messages"),
    ("queue_messages_unacked_bytes", "gauge", "Size in bytes of all unacknowledged messages"),
    ("queue_messages_published_total", "counter", "Total number of messages published to queues"),
)

Labels = dict[str, str]


def metrics(core: BrokerCore, *, per_object: bool) -> Response:
    """All metrics; of queues the sums, or with ``per_object`` each one's."""
    return Response(
        200,
        (line for line in _families(core, per_object=per_object)),
        [("content-type", "text/plain; version=0.0.4")],
    )


def _families(core: BrokerCore, *, per_object: bool) -> Iterator[bytes]:
    core.tally()
    totals = _totals(core)
    for name, counter, text in _TOTALS:
        yield _family(f"rabbitmq_{name}", "counter", text, [({}, core.churn[counter])])
    for name, value, text in _gauges(core):
        yield _family(f"rabbitmq_{name}", "gauge", text, [({}, value)])
    labels = {"protocol": "amqp091"}
    for name, counter, text in _GLOBAL:
        yield _family(f"rabbitmq_global_{name}", "counter", text, [(labels, totals[counter])])
    queues = [queue for vhost in core.vhosts.values() for queue in vhost.queues.values()]
    for at, (name, kind, text) in enumerate(_QUEUE_METRICS):
        if per_object:
            samples = [(_where(queue), _queue_values(queue)[at]) for queue in queues]
        else:
            samples = [({}, sum(_queue_values(queue)[at] for queue in queues))]
        yield _family(f"rabbitmq_{name}", kind, text, samples)
    yield from _identity()


def _totals(core: BrokerCore) -> Counter[str]:
    totals: Counter[str] = Counter()
    for vhost in core.vhosts.values():
        totals.update(Sampler(core).vhost_counts(vhost))
    unrouted = totals["drop_unroutable"] + totals["return_unroutable"]
    totals["routed"] = totals["publish"] - unrouted
    return totals


def _gauges(core: BrokerCore) -> Iterator[tuple[str, float, str]]:
    channels = [channel for connection in core.connections for channel in connection.channels]
    queues = [queue for vhost in core.vhosts.values() for queue in vhost.queues.values()]
    consumers = sum(len(queue.rota) for queue in queues)
    publishers = sum(1 for channel in channels if channel.publisher.published)
    yield "connections", len(core.connections), "Connections currently open"
    yield "channels", len(channels), "Channels currently open"
    yield "consumers", consumers, "Consumers currently connected"
    yield "queues", len(queues), "Queues available"
    yield "global_publishers", publishers, "Current number of publishers"
    yield "global_consumers", consumers, "Current number of consumers"
    yield "process_open_fds", open_files(), "Open file descriptors"
    yield "process_max_fds", most_files(), "Open file descriptors limit"
    yield "process_open_tcp_sockets", len(core.connections), "Open TCP sockets"
    yield "process_resident_memory_bytes", resident_bytes(), "Memory used in bytes"
    yield "resident_memory_limit_bytes", core.memory_limit_bytes, "Memory high watermark in bytes"
    yield "erlang_uptime_seconds", (core.clock.wall_ms() - core.started_ms) / 1000, "Node uptime"
    for name, on in core.alarms.items():
        metric = {"memory": "memory_used_watermark", "disk": "free_disk_space_watermark"}[name]
        yield f"alarms_{metric}", int(on), f"is 1 if {name} alarm is in effect"


def _where(queue: Any) -> Labels:
    return {"vhost": queue.vhost.name, "queue": queue.name}


def _queue_values(queue: Any) -> tuple[int, ...]:
    deep = depth(queue)
    return (
        deep["messages_ready"],
        deep["messages_unacknowledged"],
        deep["messages"],
        len(queue.rota),
        queue.ready_bytes + queue.unacked_bytes,
        queue.ready_bytes,
        queue.unacked_bytes,
        queue_counts(queue)["publish"],
    )


def _identity() -> Iterator[bytes]:
    build = {
        "rabbitmq_version": RABBITMQ_VERSION,
        "product_name": "RabbitMQ",
        "product_version": RABBITMQ_VERSION,
    }
    yield _family("rabbitmq_build_info", "untyped", "RabbitMQ version info", [(build, 1)])
    identity = {
        "rabbitmq_node": NODE,
        "rabbitmq_cluster": NODE,
        "rabbitmq_cluster_permanent_id": "",
    }
    text = "RabbitMQ node & cluster identity info"
    yield _family("rabbitmq_identity_info", "untyped", text, [(identity, 1)])


def _family(name: str, kind: str, text: str, samples: Iterable[tuple[Labels, float]]) -> bytes:
    lines = [f"# TYPE {name} {kind}", f"# HELP {name} {text}"]
    lines += [f"{name}{_braces(labels)} {value}" for labels, value in samples]
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
