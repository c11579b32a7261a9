"""``warren queues|exchanges|bindings|connections|channels|consumers``: look at what is there."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from warren.cli import output
from warren.cli.options import JSON, TABLE, VHOST, add_command, add_group, open_api, vhost_of
from warren.cli.output import Column, Row, shown
from warren.client.management import Management
from warren.errors import ApiMissing, ManagementError

_FEATURES = {
    "x-message-ttl": "TTL",
    "x-expires": "expires",
    "x-max-length": "limit",
    "x-max-length-bytes": "limit",
    "x-dead-letter-exchange": "DLX",
    "x-max-priority": "priority",
    "x-single-active-consumer": "SAC",
    "alternate-exchange": "AE",
}


def features(row: Row) -> str:
    """``durable TTL DLX``: what is special about a queue or exchange, in short."""
    words = ["durable" if row.get("durable") else "transient"]
    words += [word for word in ("auto_delete", "exclusive", "internal") if row.get(word) is True]
    arguments = row.get("arguments") or {}
    words += dict.fromkeys(word for name, word in _FEATURES.items() if name in arguments)
    return " ".join(words).replace("_", "-")


def _client(row: Row) -> str:
    properties = row.get("client_properties") or {}
    return " ".join(str(properties[k]) for k in ("product", "version") if k in properties)


def _exchange_name(row: Row) -> str:
    return str(row.get("name") or "(default)")


def _source(row: Row) -> str:
    return str(row.get("source") or "(default)")


def _mode(row: Row) -> str:
    modes = (("confirm", "confirms"), ("transactional", "transactions"))
    return " ".join(word for key, word in modes if row.get(key))


_IN = "message_stats.publish_details.rate"
_OUT = "message_stats.deliver_get_details.rate"
_VHOST = Column("vhost", "vhost")


@dataclass(frozen=True)
class Resource:
    """A kind of thing that a server lists."""

    name: str
    one: str
    columns: tuple[Column, ...]
    #: The field by which ``show`` finds one, and by which lists are filtered.
    keys: tuple[str, ...] = ("name",)
    #: Lists show one vhost unless they are told otherwise.
    in_vhost: bool = True
    #: The server has a page for each, found by its name.
    has_page: bool = True


QUEUES = Resource(
    "queues",
    "queue",
    (
        Column("name", "name"),
        Column("type", "type", spare=4),
        Column("features", "features", make=features, spare=7),
        Column("state", "state", spare=5),
        Column("messages_ready", "ready", "number"),
        Column("messages_unacknowledged", "unacked", "number"),
        Column("messages", "total", "number", spare=3),
        Column("consumers", "consumers", "number"),
        Column(_IN, "in", "rate", spare=2),
        Column(_OUT, "out", "rate", spare=2),
        Column("policy", "policy", spare=6),
    ),
)
EXCHANGES = Resource(
    "exchanges",
    "exchange",
    (
        Column("name", "name", make=_exchange_name),
        Column("type", "type", spare=4),
        Column("features", "features", make=features, spare=7),
        Column("message_stats.publish_in_details.rate", "in", "rate", spare=2),
        Column("message_stats.publish_out_details.rate", "out", "rate", spare=2),
        Column("policy", "policy", spare=6),
    ),
)
BINDINGS = Resource(
    "bindings",
    "queue or exchange",
    (
        Column("source", "source", make=_source),
        Column("destination", "destination"),
        Column("destination_type", "to"),
        Column("routing_key", "routing key"),
        Column("arguments", "arguments", spare=3),
    ),
    keys=("source", "destination"),
    has_page=False,
)
CONNECTIONS = Resource(
    "connections",
    "connection",
    (
        Column("name", "name"),
        Column("user", "user", spare=2),
        _VHOST,
        Column("state", "state", spare=5),
        Column("channels", "channels", "number"),
        Column("ssl", "tls", spare=8),
        Column("recv_oct", "received", "bytes", spare=6),
        Column("send_oct", "sent", "bytes", spare=6),
        Column("connected_at", "connected", "time", spare=7),
        Column("client", "client", make=_client, spare=9),
    ),
    in_vhost=False,
)
CHANNELS = Resource(
    "channels",
    "channel",
    (
        Column("name", "name"),
        Column("user", "user", spare=2),
        _VHOST,
        Column("state", "state", spare=5),
        Column("mode", "mode", make=_mode, spare=3),
        Column("prefetch_count", "prefetch", "number", spare=4),
        Column("consumer_count", "consumers", "number"),
        Column("messages_unacknowledged", "unacked", "number"),
        Column("messages_unconfirmed", "unconfirmed", "number", spare=8),
        Column(_IN, "in", "rate", spare=2),
        Column(_OUT, "out", "rate", spare=2),
    ),
    in_vhost=False,
)
CONSUMERS = Resource(
    "consumers",
    "consumer",
    (
        Column("consumer_tag", "tag"),
        Column("queue.name", "queue"),
        Column("activity_status", "activity"),
        Column("ack_required", "acks", spare=5),
        Column("prefetch_count", "prefetch", "number", spare=4),
        Column("exclusive", "exclusive", spare=7),
        Column("channel_details.name", "channel", spare=6),
        Column("arguments", "arguments", spare=3),
    ),
    keys=("consumer_tag",),
    has_page=False,
)
RESOURCES = (QUEUES, EXCHANGES, BINDINGS, CONNECTIONS, CHANNELS, CONSUMERS)


def add_parser(commands: Any) -> None:
    from warren.cli import declaring  # which needs what is here

    more = {
        QUEUES: declaring.add_to_queues,
        EXCHANGES: declaring.add_to_exchanges,
        BINDINGS: declaring.add_to_bindings,
    }
    for resource in RESOURCES:
        change = " and change them" if resource in more else ""
        below = add_group(commands, resource.name, f"look at {resource.name}{change}")
        _add_list(below, resource)
        _add_show(below, resource)
        if resource in more:
            more[resource](below)
        if resource is CONNECTIONS:
            parser = add_command(below, "close", "close a connection", _close)
            parser.add_argument("name", metavar="NAME", help="name of the connection")
            parser.add_argument("--reason", help="what its client is told")


def _add_list(commands: Any, resource: Resource) -> None:
    parser = add_command(commands, "list", f"list {resource.name}", _list, VHOST, TABLE, JSON)
    parser.add_argument(
        "pattern",
        nargs="?",
        metavar="PATTERN",
        help="only those whose "
        + " or ".join(key.replace("_", " ") for key in resource.keys)
        + " matches: * is any text, ? any character",
    )
    if resource.in_vhost:
        parser.add_argument("--all-vhosts", action="store_true", help="of every virtual host")
    parser.set_defaults(resource=resource)


def _add_show(commands: Any, resource: Resource) -> None:
    shared = [VHOST, JSON] if resource.in_vhost else [JSON]
    if not resource.has_page:
        shared.insert(1, TABLE)
    of = "the bindings of a queue or exchange" if resource is BINDINGS else f"one {resource.one}"
    parser = add_command(commands, "show", f"show {of}", _show, *shared)
    key = "consumer tag" if resource is CONSUMERS else "name"
    parser.add_argument("name", metavar="NAME", help=f"{key} of the {resource.one}")
    parser.set_defaults(resource=resource)


# -- list ----------------------------------------------------------------------------------------
def _list(options: argparse.Namespace) -> int:
    resource: Resource = options.resource
    with open_api(options) as api:
        rows = rows_of(api, resource, _list_vhost(options))
    if options.pattern is not None:
        rows = [row for row in rows if _matches(row, resource.keys, options.pattern)]
    columns = list(resource.columns)
    if resource.in_vhost and options.all_vhosts:
        at = Column("queue.vhost", "vhost") if resource is CONSUMERS else _VHOST
        columns.insert(1, at)
    print_rows(options, rows, columns, none=f"no {resource.name}{_where(options)}")
    return 0


def _list_vhost(options: argparse.Namespace) -> str | None:
    if not options.resource.in_vhost:
        return options.vhost  # type: ignore[no-any-return]
    return None if options.all_vhosts else vhost_of(options)


def _where(options: argparse.Namespace) -> str:
    vhost = _list_vhost(options)
    return "" if vhost is None else f" in vhost '{vhost}'"


def rows_of(api: Management, resource: Resource, vhost: str | None) -> list[Row]:
    """What the server lists, of one vhost or of all."""
    what = f"list {resource.name}"
    if vhost is None:
        rows = api.get(resource.name, what=what)
    else:
        path = (resource.name, vhost) if resource.in_vhost else ("vhosts", vhost, resource.name)
        try:
            rows = api.get(*path, what=what)
        except ApiMissing:
            raise _no_vhost(api, vhost) from None
    return list(rows)


def print_rows(
    options: argparse.Namespace, rows: Sequence[Row], columns: Sequence[Column], *, none: str
) -> None:
    """A list as the options want it: chosen columns, sorted, as a table or JSON."""
    wanted = output.chosen(rows, columns, options.columns)
    by = None
    if options.sort is not None:
        by = output.find(rows, columns, options.sort, "--sort")
    rows = output.ordered(rows, by, reverse=options.reverse)
    if not options.json:
        output.table(rows, wanted, none=none, all_columns=options.columns is not None)
    elif options.columns is None:
        output.say_json(rows)
    else:
        output.say_json([{column.key: column.value(row) for column in wanted} for row in rows])


def _matches(row: Row, keys: Iterable[str], pattern: str) -> bool:
    return any(fnmatchcase(str(row.get(key, "")), pattern) for key in keys)


# -- show ----------------------------------------------------------------------------------------
def _show(options: argparse.Namespace) -> int:
    resource: Resource = options.resource
    with open_api(options) as api:
        if not resource.has_page:
            return _show_rows(api, options)
        vhost = vhost_of(options) if resource.in_vhost else None
        found = page_of(api, resource, options.name, vhost)
        if options.json:
            output.say_json(found)
            return 0
        bindings = _bindings_of(api, resource, options.name, vhost)
    title = shown(found.get("name")) or "(default)"
    output.facts(facts_of(found), title=f"{resource.one} {title}")
    for name, columns in (("consumer_details", CONSUMERS.columns), ("bindings", BINDINGS.columns)):
        rows = bindings if name == "bindings" else found.get(name)
        if rows:
            output.say("")
            output.table(rows, columns)
    return 0


def page_of(api: Management, resource: Resource, name: str, vhost: str | None) -> dict[str, Any]:
    """What the server tells about one of them."""
    if resource is EXCHANGES and name in ("", "(default)"):
        name = "amq.default"
    path = (resource.name, name) if vhost is None else (resource.name, vhost, name)
    try:
        found = api.get(*path, what=f"show {resource.one} '{name}'")
    except ApiMissing:
        raise not_there(api, resource, name, vhost) from None
    return dict(found)


def not_there(api: Management, resource: Resource, name: str, vhost: str | None) -> ApiMissing:
    """The error for a name that is not there, with the nearest that is."""
    rows = rows_of(api, resource, vhost)  # raises if the vhost is not there either
    names = {str(row.get(key)) for row in rows for key in resource.keys if row.get(key)}
    near = difflib.get_close_matches(name, names, 1)
    where = "" if vhost is None else f" in vhost '{vhost}'"
    hint = f"did you mean '{near[0]}'?" if near else f"warren {resource.name} list shows what is"
    return ApiMissing(f"find {resource.one} '{name}'{where}", 404, f"it is not there; {hint}")


def _no_vhost(api: Management, vhost: str) -> ApiMissing:
    try:
        names = [row["name"] for row in api.get("vhosts", query={"columns": "name"})]
    except ManagementError:
        names = []
    near = difflib.get_close_matches(vhost, names, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(names)}"
    return ApiMissing(f"find vhost '{vhost}'", 404, f"it is not there; {hint}")


def _bindings_of(
    api: Management, resource: Resource, name: str, vhost: str | None
) -> list[dict[str, Any]]:
    if vhost is None or resource not in (QUEUES, EXCHANGES):
        return []
    kind = "queue" if resource is QUEUES else "exchange"
    rows = api.get("bindings", vhost)
    return [row for row in rows if row["source"] and _touches(row, kind, name)]


def _touches(row: Row, kind: str, name: str) -> bool:
    to = row["destination_type"] == kind and row["destination"] == name
    return bool(to or (kind == "exchange" and row["source"] == name))


def _show_rows(api: Management, options: argparse.Namespace) -> int:
    """Bindings and consumers have no page of their own: those of the list that have the name."""
    resource: Resource = options.resource
    vhost, name = vhost_of(options), options.name
    rows = [r for r in rows_of(api, resource, vhost) if name in (r.get(k) for k in resource.keys)]
    if not rows:
        if resource is CONSUMERS:
            raise not_there(api, resource, name, vhost)
        try:
            page_of(api, QUEUES, name, vhost)
        except ApiMissing as no_queue:
            try:
                page_of(api, EXCHANGES, name, vhost)
            except ApiMissing:
                raise no_queue from None
    print_rows(options, rows, list(resource.columns), none=f"'{name}' has no {resource.name}")
    return 0


_HIDDEN = {"garbage_collection", "backing_queue_status", "name", "reductions"}
_LISTS = {"consumer_details", "incoming", "outgoing", "deliveries", "publishes"}


def facts_of(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is known of a thing, one fact a line; counters come with their rates."""
    plain = not output.is_terminal()
    for key, value in sorted(_flat(found)):
        kind = "number"
        if key.endswith(("connected_at", "_since_ms")):
            kind = "time"
        elif key.endswith(("_oct", "memory")) or "_bytes" in key:
            kind = "bytes"
        text = shown(value, kind, plain=plain)
        rate = output.dig(found, f"{key}_details.rate")
        if rate and text:
            text += f" ({shown(rate, 'rate', plain=False)})"
        yield key, text


def _flat(found: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in found.items():
        if not prefix and (key in _HIDDEN or key in _LISTS):
            continue
        if key.endswith("_details") and isinstance(value, Mapping) and set(value) <= {"rate"}:
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


# -- close ---------------------------------------------------------------------------------------
def _close(options: argparse.Namespace) -> int:
    headers = {"X-Reason": options.reason} if options.reason else None
    with open_api(options) as api:
        what = f"close connection '{options.name}'"
        try:
            api.delete("connections", options.name, what=what, headers=headers)
        except ApiMissing:
            raise not_there(api, CONNECTIONS, options.name, None) from None
    output.say(f"closed connection '{options.name}'")
    return 0
