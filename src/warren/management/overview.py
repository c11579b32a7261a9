"""``/api/overview``, ``/api/nodes`` and what else concerns the broker as a whole."""

from __future__ import annotations

import os
import platform
import shutil
from collections import Counter
from typing import Any

from warren.broker.core import RABBITMQ_VERSION
from warren.broker.exchanges import EXCHANGE_TYPES
from warren.management.call import Call
from warren.management.erlang import NODE
from warren.management.lists import reply_one
from warren.management.messages import Response, not_found
from warren.management.rules import administrator, monitor
from warren.management.sampler import DELIVERING, PUBLISHING
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
            "ssl_opts": listener.tls_options or [],
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


def overview(call: Call) -> Response:
    core, sampler = call.core, call.site.sampler
    totals: Counter[str] = Counter()
    for vhost in call.visible_vhosts():
        totals.update(sampler.vhost_counts(vhost))
    stats = sampler.message_stats("totals", totals, PUBLISHING, DELIVERING)
    disk = sampler.rated("totals", totals, "disk_reads", "disk_writes")
    value = {
        "management_version": RABBITMQ_VERSION,
        "rates_mode": "basic",
        "sample_retention_policies": {"global": [5], "basic": [5], "detailed": [5]},
        "exchange_types": exchange_types(),
        "product_version": RABBITMQ_VERSION,
        "product_name": "RabbitMQ",
        "rabbitmq_version": RABBITMQ_VERSION,
        "cluster_name": cluster_name(call),
        "erlang_version": "",
        "erlang_full_version": "",
        "release_series_support_status": "supported",
        "disable_stats": False,
        "enable_queue_totals": False,
        "message_stats": {**disk, **stats.get("message_stats", {})},
        "churn_rates": sampler.rated("churn", dict(core.churn), *_CHURN),
        "queue_totals": sampler.rated("totals", totals, *_DEPTHS),
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


def cluster_name(call: Call) -> str:
    return str(call.core.server_properties["cluster_name"])


def show_cluster_name(call: Call) -> dict[str, Any]:
    return {"name": cluster_name(call)}


def extensions(call: Call) -> list[Any]:
    return []


def whoami(call: Call) -> dict[str, Any]:
    return {"name": call.user.name, "tags": list(call.user.tags)}


# -- the one node --------------------------------------------------------------------------------
def node_row(call: Call) -> dict[str, Any]:
    core, sampler = call.core, call.site.sampler
    changing = {
        "mem_used": resident_bytes(),
        "fd_used": open_files(),
        "sockets_used": len(core.connections),
        "proc_used": 1,
        "disk_free": shutil.disk_usage("/").free,
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
        "disk_free_limit": 50_000_000,
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
        "db_dir": str(getattr(core.journal.store, "folder", "")) if core.journal else "",
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
        **sampler.rated("churn", changing, *changing),
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


def show_node(call: Call) -> Response:
    if call.names["node"] != NODE:
        raise not_found()
    return reply_one(call, node_row(call))


def resident_bytes() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def most_files() -> int:
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def reset(call: Call) -> Response:
    """Forget the rates; counters go on."""
    call.site.sampler.forget()
    return Response(204)


def nothing_to_do(call: Call) -> Response:
    """Rebalancing: there is one node."""
    return Response(204)


ROUTES = (
    Route("/overview", get=overview),
    Route("/cluster-name", get=show_cluster_name),
    Route("/extensions", get=extensions),
    Route("/whoami", get=whoami),
    Route("/nodes", monitor, get=list_nodes),
    Route("/nodes/{node}", monitor, get=show_node),
    Route("/reset", administrator, delete=reset),
    Route("/rebalance/queues", administrator, post=nothing_to_do),
)
