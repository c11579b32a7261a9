"""``/api/overview``, ``/api/nodes`` and what else concerns the broker as a whole."""

from __future__ import annotations

import os
import platform
from collections import Counter
from typing import Any

from warren.broker.core import RABBITMQ_VERSION
from warren.broker.exchanges import EXCHANGE_TYPES
from warren.management.call import Call
from warren.management.erlang import NODE
from warren.management.history import BASIC, GLOBAL
from warren.management.lists import reply_one
from warren.management.machine import data_folder, most_files, resident_bytes
from warren.management.messages import Response, not_found
from warren.management.rules import administrator, monitor
from warren.management.sampler import DELIVERING, PUBLISHING, node_counts
from warren.management.site import Route

_DESCRIPTIONS = {"x-consistent-hash": "Consistent Hashing Exchange"}
_CHURN = (
    *("channel_closed", "channel_created", "connection_closed", "connection_created"),
    *("queue_created", "queue_declared", "queue_deleted"),
)
_DEPTHS = ("messages", "messages_ready", "messages_unacknowledged")


def exchange_types() -> list[dict[str, Any]]:
    return [
        {
            "name": kind,
            "description": _DESCRIPTIONS.get(
                kind, f"AMQP {kind} exchange, as per the AMQP specification"
            ),
            "enabled": True,
        }
        for kind in sorted(EXCHANGE_TYPES)
    ]


def listeners(call: Call) -> list[dict[str, Any]]:
    return [
        {
            "node": NODE,
            "protocol": listener.protocol,
            "ip_address": listener.host,
            "port": listener.port,
            "socket_opts": {"backlog": 4096, "nodelay": True, **listener.tls_options},
        }
        for listener in call.site.listeners
    ]


def _contexts(call: Call) -> list[dict[str, Any]]:
    return [
        {
            "ssl_opts": {k: _word(v) for k, v in listener.tls_options.items()} or [],
            "node": NODE,
            "description": "RabbitMQ Management",
            "path": "/",
            "cowboy_opts": "[{sendfile,false}]",
            "ip": listener.host,
            "port": str(listener.port),
            **({"ssl": "true"} if listener.certificate else {}),
        }
        for listener in call.site.listeners
        if listener.protocol.startswith("http")
    ]


def _word(value: Any) -> str:
    """As Erlang prints it."""
    return value if isinstance(value, str) else str(value).lower()


def overview(call: Call) -> Response:
    core, sampler = call.core, call.site.sampler
    totals: Counter[str] = Counter()
    for vhost in call.visible_vhosts():
        totals.update(sampler.vhost_counts(vhost))
    span = call.span("msg_rates")
    stats = sampler.message_stats("totals", totals, PUBLISHING, DELIVERING, span=span)
    disk = sampler.rated("totals", totals, "disk_reads", "disk_writes", span=span)
    value = {
        "management_version": RABBITMQ_VERSION,
        "rates_mode": "basic",
        "sample_retention_policies": {
            "global": [most // 1000 for most, _ in GLOBAL],
            "basic": [most // 1000 for most, _ in BASIC],
            "detailed": [],
        },
        "exchange_types": exchange_types(),
        "product_version": RABBITMQ_VERSION,
        "product_name": "RabbitMQ",
        "rabbitmq_version": RABBITMQ_VERSION,
        "cluster_name": str(core.server_properties["cluster_name"]),
        "erlang_version": "",
        "erlang_full_version": "",
        "release_series_support_status": "supported",
        "disable_stats": False,
        "enable_queue_totals": False,
        "message_stats": {**disk, **stats.get("message_stats", {})},
        "churn_rates": sampler.rated("churn", dict(core.churn), *_CHURN),
        "queue_totals": sampler.rated("totals", totals, *_DEPTHS, span=call.span("lengths")),
        "object_totals": object_totals(call),
        "statistics_db_event_queue": 0,
        "node": NODE,
    }
    if call.is_monitor:
        value["listeners"], value["contexts"] = listeners(call), _contexts(call)
    return reply_one(call, value)


def object_totals(call: Call) -> dict[str, int]:
    vhosts = call.visible_vhosts()
    connections = [
        connection
        for connection in call.core.connections
        if call.is_monitor or connection.user_name == call.user.name
    ]
    return {
        "channels": sum(len(connection.channels) for connection in connections),
        "connections": len(connections),
        "consumers": sum(len(q.rota) for vhost in vhosts for q in vhost.queues.values()),
        "exchanges": sum(len(vhost.exchanges) for vhost in vhosts),
        "queues": sum(len(vhost.queues) for vhost in vhosts),
    }


def extensions(call: Call) -> list[Any]:
    return []


def whoami(call: Call) -> dict[str, Any]:
    return {"name": call.user.name, "tags": list(call.user.tags)}


# -- the one node --------------------------------------------------------------------------------
def node_row(call: Call) -> dict[str, Any]:
    core, sampler = call.core, call.site.sampler
    changing = {
        **node_counts(core),
        **{name: core.churn[name] for name in _CHURN},
        **dict.fromkeys(_UNKNOWN, 0),
    }
    return {
        "partitions": [],
        "os_pid": str(os.getpid()),
        "fd_total": most_files(),
        "sockets_total": most_files(),
        "mem_limit": core.memory_limit_bytes,
        "mem_alarm": core.alarms["memory"],
        "disk_free_limit": core.disk_free_limit_bytes,
        "disk_free_alarm": core.alarms["disk"],
        "proc_total": 1,
        "rates_mode": "basic",
        "uptime": core.clock.wall_ms() - core.started_ms,
        "run_queue": 0,
        "processors": os.cpu_count() or 1,
        "exchange_types": exchange_types(),
        "auth_mechanisms": [
            {"name": name, "description": f"SASL {name} authentication mechanism", "enabled": True}
            for name in ("PLAIN", "AMQPLAIN")
        ],
        "applications": [
            {
                "name": "warren",
                "description": f"warren on Python {platform.python_version()}",
                "version": str(core.server_properties["warren"]),
            }
        ],
        "contexts": [
            {key: item[key] for key in item if key not in ("ssl_opts", "node")}
            for item in _contexts(call)
        ],
        "log_files": ["<stderr>"],
        "db_dir": data_folder(core),
        "config_files": [],
        "net_ticktime": 60,
        "enabled_plugins": ["rabbitmq_management", "rabbitmq_consistent_hash_exchange"],
        "mem_calculation_strategy": "rss",
        "ra_open_file_metrics": {"ra_log_wal": 0, "ra_log_segment_writer": 0},
        "name": NODE,
        "type": "disc",
        "running": True,
        "cluster_links": [],
        "metrics_gc_queue_length": dict.fromkeys(_GC_QUEUES, 0),
        **sampler.rated("node", changing, *changing, span=call.span("node_stats")),
    }


_UNKNOWN = (
    *("gc_num", "gc_bytes_reclaimed", "context_switches"),
    *("io_read_count", "io_read_bytes", "io_read_avg_time"),
    *("io_write_count", "io_write_bytes", "io_write_avg_time"),
    *("io_sync_count", "io_sync_avg_time", "io_seek_count", "io_seek_avg_time"),
    *("io_reopen_count", "mnesia_ram_tx_count", "mnesia_disk_tx_count"),
    *("msg_store_read_count", "msg_store_write_count"),
    *("queue_index_write_count", "queue_index_read_count"),
)
_GC_QUEUES = (
    *("connection_closed", "channel_closed", "consumer_deleted", "exchange_deleted"),
    *("queue_deleted", "vhost_deleted", "node_node_deleted", "channel_consumer_deleted"),
)


def list_nodes(call: Call) -> list[dict[str, Any]]:
    return [node_row(call)]


def check_node(call: Call) -> None:
    """There is but one."""
    if call.names.get("node", NODE) != NODE:
        raise not_found()


def show_node(call: Call) -> Response:
    check_node(call)
    return reply_one(call, node_row(call))


def memory(call: Call) -> Response:
    """Where the memory is: messages in queues are known, the rest is Python's."""
    check_node(call)
    total = resident_bytes()
    held = min(call.core.held_bytes, total)
    parts = {**dict.fromkeys(_MEMORY, 0), "queue_procs": held, "other_system": total - held}
    sums = {"erlang": total, "rss": total, "allocated": total}
    return reply_one(call, {"memory": {**parts, "strategy": "rss", "total": sums}})


def relative_memory(call: Call) -> Response:
    """The same in percent."""
    check_node(call)
    total = max(1, resident_bytes())
    held = round(min(call.core.held_bytes, total) / total * 100)
    parts = {**dict.fromkeys(_MEMORY, 0), "queue_procs": held, "other_system": 100 - held}
    return reply_one(call, {"memory": {"total": 100, **parts}})


def no_tables(call: Call) -> dict[str, Any]:
    """Erlang's tables: there are none."""
    check_node(call)
    return {"ets_tables_memory": "no_tables"}


_MEMORY = (
    *("connection_readers", "connection_writers", "connection_channels", "connection_other"),
    *("queue_procs", "queue_slave_procs", "quorum_queue_procs", "quorum_queue_dlx_procs"),
    *("stream_queue_procs", "stream_queue_replica_reader_procs"),
    *("stream_queue_coordinator_procs", "plugins", "other_proc", "metrics", "mgmt_db"),
    *("mnesia", "quorum_ets", "other_ets", "binary", "msg_index", "code", "atom"),
    *("other_system", "allocated_unused", "reserved_unallocated"),
)


def reset(call: Call) -> Response:
    """Forget the rates; counters go on."""
    check_node(call)
    call.site.sampler.forget()
    return Response(204)


def nothing_to_do(call: Call) -> Response:
    """Rebalancing: there is one node."""
    return Response(204)


ROUTES = (
    Route("/overview", get=overview),
    Route("/extensions", get=extensions),
    Route("/whoami", get=whoami),
    Route("/nodes", monitor, get=list_nodes),
    Route("/nodes/{node}", monitor, get=show_node),
    Route("/nodes/{node}/memory", monitor, get=memory),
    Route("/nodes/{node}/memory/relative", monitor, get=relative_memory),
    Route("/nodes/{node}/memory/ets", monitor, get=no_tables),
    Route("/nodes/{node}/memory/ets/{filter}", monitor, get=no_tables),
    Route("/nodes/{node}/memory/ets/{filter}/relative", monitor, get=no_tables),
    Route("/reset", administrator, delete=reset),
    Route("/reset/{node}", administrator, delete=reset),
    Route("/rebalance/queues", administrator, post=nothing_to_do),
)
