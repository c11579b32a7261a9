"""A broker's topology over its management API: read it, change it."""

from __future__ import annotations

from typing import Any

from warren.client.management import Management
from warren.errors import ApiMissing
from warren.topology.diff import CREATE, DELETE, Change
from warren.topology.model import Actual, Binding, Exchange, Policy, Queue, Topology


def read(api: Management, vhost: str) -> Actual:
    """What there is in a vhost. What belongs to connections or to the broker is not in it."""
    overview = api.get("overview", what="read the topology")
    types = frozenset(each["name"] for each in overview.get("exchange_types") or ())
    what = f"read the topology of vhost '{vhost}'"
    try:
        exchanges = api.get("exchanges", vhost, what=what)
    except ApiMissing:
        return Actual(vhost_exists=False, exchange_names=PREDECLARED, exchange_types=types)
    queues = api.get("queues", vhost, what=what)
    own = [row for row in queues if _is_plain(row)]
    shared = {row["name"] for row in own}
    bindings = [
        row
        for row in api.get("bindings", vhost, what=what)
        if row["source"] and (row["destination_type"] != "queue" or row["destination"] in shared)
    ]
    return Actual(
        topology=Topology(
            exchanges=tuple(_exchange(row) for row in _by_name(exchanges) if _is_ours(row)),
            queues=tuple(_queue(row) for row in _by_name(own)),
            bindings=tuple(sorted((_binding(row) for row in bindings), key=lambda b: b.key)),
            policies=tuple(_policy(row) for row in _by_name(api.get("policies", vhost, what=what))),
            vhost=vhost,
        ),
        exchange_names=frozenset(row["name"] for row in exchanges),
        queue_names=frozenset(row["name"] for row in queues),
        exchange_types=types,
        messages={row["name"]: row["messages"] for row in own if row.get("messages")},
    )


#: In every vhost from the start.
PREDECLARED = frozenset(
    ("", *(f"amq.{name}" for name in ("direct", "fanout", "headers", "match", "topic")))
)


def _by_name(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(row["name"]))


def _is_ours(row: dict[str, Any]) -> bool:
    return row["name"] != "" and not row["name"].startswith("amq.")


def _is_plain(row: dict[str, Any]) -> bool:
    """Neither a connection's own nor named by the broker."""
    owned = row.get("exclusive") or row.get("owner_pid_details")
    return not owned and not row["name"].startswith("amq.")


def _exchange(row: dict[str, Any]) -> Exchange:
    return Exchange(
        row["name"],
        type=row["type"],
        durable=row["durable"],
        auto_delete=row["auto_delete"],
        internal=row["internal"],
        arguments=row["arguments"],
    )


def _queue(row: dict[str, Any]) -> Queue:
    arguments = dict(row["arguments"])
    kind = arguments.pop("x-queue-type", "classic")
    return Queue(
        row["name"],
        type=kind,
        durable=row["durable"],
        auto_delete=row["auto_delete"],
        arguments=arguments,
    )


def _binding(row: dict[str, Any]) -> Binding:
    return Binding(
        row["source"],
        row["destination"],
        to=row["destination_type"],
        routing_key=row["routing_key"],
        arguments=row["arguments"],
        properties_key=row["properties_key"],
    )


def _policy(row: dict[str, Any]) -> Policy:
    return Policy(
        row["name"],
        pattern=row["pattern"],
        definition=row["definition"],
        apply_to=row["apply-to"],
        priority=row["priority"],
    )


# -- change --------------------------------------------------------------------------------------
def carry_out(api: Management, vhost: str, change: Change) -> None:
    """Make one change of a plan. Deleting what has gone by itself is no error."""
    what = f"{change.action} {change.title}"
    item = change.item
    if item is None:
        api.put("vhosts", vhost, what=what)
        # RabbitMQ lets its maker in; another server need not.
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        api.put("permissions", vhost, api.user, body=everything, what=what)
    elif change.action == DELETE:
        try:
            api.delete(*_path(item, vhost), what=what)
        except ApiMissing:
            return
    elif isinstance(item, Binding):
        assert change.action == CREATE
        body = {"routing_key": item.routing_key, "arguments": dict(item.arguments)}
        api.post(*_path(item, vhost), body=body, what=what)
    else:
        api.put(*_path(item, vhost), body=_body(item), what=what)


def _path(item: Exchange | Queue | Binding | Policy, vhost: str) -> tuple[str, ...]:
    if isinstance(item, Binding):
        ends = ("bindings", vhost, "e", item.source, item.to[0], item.destination)
        return (*ends, item.properties_key) if item.properties_key else ends
    plural = {"exchange": "exchanges", "queue": "queues", "policy": "policies"}
    return (plural[item.kind], vhost, item.name)


def _body(item: Exchange | Queue | Policy) -> dict[str, Any]:
    if isinstance(item, Policy):
        return {
            "pattern": item.pattern,
            "definition": dict(item.definition),
            "priority": item.priority,
            "apply-to": item.apply_to,
        }
    body: dict[str, Any] = {"durable": item.durable, "auto_delete": item.auto_delete}
    if isinstance(item, Exchange):
        body |= {"type": item.type, "internal": item.internal, "arguments": dict(item.arguments)}
    else:
        body["arguments"] = item.declared
    return body
