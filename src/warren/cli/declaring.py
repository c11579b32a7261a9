"""``warren queues|exchanges|bindings declare|delete``: one at a time, by hand."""

from __future__ import annotations

import argparse
from typing import Any

from warren.cli import output
from warren.cli.options import VHOST, add_command, confirmed, open_api, vhost_of
from warren.cli.resources import EXCHANGES, QUEUES, page_of, rows_of
from warren.cli.values import pairs, value_of
from warren.client.management import Management
from warren.errors import ApiMissing, ConfigError

KINDS = ("classic", "quorum", "stream")
_ARGUMENT = "such as x-max-length=1000; numbers, true and false are taken as such; may be repeated"


def add_to_queues(commands: Any) -> None:
    declare = add_command(
        commands,
        "declare",
        "make a queue",
        _declare_queue,
        VHOST,
        description="Make a queue. If it is there already with the same properties, nothing "
        "happens; if with others, the broker refuses. 'warren topology apply' makes many.",
    )
    declare.add_argument("name", metavar="NAME", help="name of the queue")
    declare.add_argument(
        "--type", choices=KINDS, metavar="TYPE", help="classic (the default), quorum or stream"
    )
    _add_shared(declare, "the queue")
    delete = add_command(commands, "delete", "delete a queue", _delete_queue, VHOST)
    delete.add_argument("name", metavar="NAME", help="name of the queue")
    delete.add_argument("--if-empty", action="store_true", help="only if it holds no messages")
    delete.add_argument("--if-unused", action="store_true", help="only if nobody consumes from it")
    delete.add_argument("--yes", action="store_true", help="do not ask")


def add_to_exchanges(commands: Any) -> None:
    declare = add_command(
        commands,
        "declare",
        "make an exchange",
        _declare_exchange,
        VHOST,
        description="Make an exchange. If it is there already with the same properties, nothing "
        "happens; if with others, the broker refuses.",
    )
    declare.add_argument("name", metavar="NAME", help="name of the exchange")
    declare.add_argument(
        "--type",
        default="direct",
        metavar="TYPE",
        help="direct (the default), fanout, topic, headers, x-consistent-hash",
    )
    declare.add_argument(
        "--internal", action="store_true", help="clients may not publish to it, exchanges may"
    )
    _add_shared(declare, "the exchange")
    delete = add_command(commands, "delete", "delete an exchange", _delete_exchange, VHOST)
    delete.add_argument("name", metavar="NAME", help="name of the exchange")
    delete.add_argument("--if-unused", action="store_true", help="only if nothing is bound to it")


def add_to_bindings(commands: Any) -> None:
    for name, text, run in (
        ("declare", "bind a queue, or an exchange, to an exchange", _bind),
        ("delete", "take a binding away", _unbind),
    ):
        parser = add_command(commands, name, text, run, VHOST)
        parser.add_argument("source", metavar="EXCHANGE", help="exchange that messages come from")
        parser.add_argument("destination", metavar="QUEUE", help="queue that they go to")
        parser.add_argument("--routing-key", default="", metavar="KEY", help="which of them")
        parser.add_argument(
            "--to-exchange", action="store_true", help="QUEUE is the name of an exchange"
        )
        parser.add_argument(
            "--argument", action="append", default=[], metavar="NAME=VALUE", help=_ARGUMENT
        )


def _add_shared(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--transient", action="store_true", help=f"{what} goes with the broker")
    parser.add_argument(
        "--auto-delete", action="store_true", help=f"{what} goes when nobody uses it any more"
    )
    parser.add_argument(
        "--argument", action="append", default=[], metavar="NAME=VALUE", help=_ARGUMENT
    )


def _arguments(options: argparse.Namespace) -> dict[str, Any]:
    return {name: value_of(text) for name, text in pairs(options.argument, "--argument")}


def _body(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "durable": not options.transient,
        "auto_delete": options.auto_delete,
        "arguments": _arguments(options),
    }


def _declare(api: Management, options: argparse.Namespace, one: str, body: dict[str, Any]) -> bool:
    """True if it is new."""
    name, vhost = options.name, vhost_of(options)
    if not name:
        raise ConfigError("NAME", "must not be empty")
    resource = QUEUES if one == "queue" else EXCHANGES
    there = any(row["name"] == name for row in rows_of(api, resource, vhost))
    what = f"declare {one} '{name}' in vhost '{vhost}'"
    api.put(resource.name, vhost, name, body=body, what=what)
    return not there


def _say_made(options: argparse.Namespace, one: str, new: bool) -> None:
    where = f"{one} '{options.name}' in vhost '{vhost_of(options)}'"
    output.say(f"made {where}" if new else f"{where} was there already, as it should be")


# -- queues --------------------------------------------------------------------------------------
def _declare_queue(options: argparse.Namespace) -> int:
    body = _body(options)
    if options.type is not None:
        body["arguments"]["x-queue-type"] = options.type
    with open_api(options) as api:
        new = _declare(api, options, "queue", body)
    _say_made(options, "queue", new)
    return 0


def _delete_queue(options: argparse.Namespace) -> int:
    name, vhost = options.name, vhost_of(options)
    query = {"if-empty": options.if_empty, "if-unused": options.if_unused}
    with open_api(options) as api:
        row = page_of(api, QUEUES, name, vhost)
        count = row.get("messages") or 0
        held = "the message in it" if count == 1 else f"the {count:,} messages in it"
        question = f"delete queue '{name}' and {held}?"
        if count and not options.if_empty and not confirmed(options, question):
            return 1
        _delete(api, ("queues", vhost, name), f"delete queue '{name}'", query)
    output.say(f"deleted queue '{name}' in vhost '{vhost}'")
    return 0


def _delete(api: Management, path: tuple[str, ...], what: str, query: dict[str, bool]) -> None:
    wanted = {key: "true" for key, value in query.items() if value}
    api.call("DELETE", path, what=what, query=wanted)


# -- exchanges -----------------------------------------------------------------------------------
def _declare_exchange(options: argparse.Namespace) -> int:
    body = {**_body(options), "type": options.type, "internal": options.internal}
    with open_api(options) as api:
        new = _declare(api, options, "exchange", body)
    _say_made(options, "exchange", new)
    return 0


def _delete_exchange(options: argparse.Namespace) -> int:
    name, vhost = options.name, vhost_of(options)
    with open_api(options) as api:
        page_of(api, EXCHANGES, name, vhost)
        what = f"delete exchange '{name}'"
        _delete(api, ("exchanges", vhost, name), what, {"if-unused": options.if_unused})
    output.say(f"deleted exchange '{name}' in vhost '{vhost}'")
    return 0


# -- bindings ------------------------------------------------------------------------------------
def _ends(api: Management, options: argparse.Namespace) -> tuple[str, str, str]:
    """Vhost, kind of destination and the path's letter for it, both ends being there."""
    vhost = vhost_of(options)
    page_of(api, EXCHANGES, options.source, vhost)
    page_of(api, EXCHANGES if options.to_exchange else QUEUES, options.destination, vhost)
    return (vhost, "exchange", "e") if options.to_exchange else (vhost, "queue", "q")


def _told(options: argparse.Namespace, kind: str, way: str) -> str:
    key = f" with routing key '{options.routing_key}'" if options.routing_key else ""
    return f"{kind} '{options.destination}' {way} exchange '{options.source}'{key}"


def _bind(options: argparse.Namespace) -> int:
    body = {"routing_key": options.routing_key, "arguments": _arguments(options)}
    with open_api(options) as api:
        vhost, kind, letter = _ends(api, options)
        path = ("bindings", vhost, "e", options.source, letter, options.destination)
        api.post(*path, body=body, what=f"bind {_told(options, kind, 'to')}")
    output.say(f"bound {_told(options, kind, 'to')}")
    return 0


def _unbind(options: argparse.Namespace) -> int:
    wanted = (options.routing_key, _arguments(options))
    with open_api(options) as api:
        vhost, kind, letter = _ends(api, options)
        path = ("bindings", vhost, "e", options.source, letter, options.destination)
        rows = api.get(*path, what=f"find the bindings of {kind} '{options.destination}'")
        found = [row for row in rows if (row["routing_key"], row["arguments"] or {}) == wanted]
        what = f"unbind {_told(options, kind, 'from')}"
        if not found:
            raise ApiMissing(what, 404, _no_binding(rows))
        api.delete(*path, found[0]["properties_key"], what=what)
    output.say(f"unbound {_told(options, kind, 'from')}")
    return 0


def _no_binding(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "there is no binding between them"
    keys = ", ".join(f"'{output.clean(row['routing_key'])}'" for row in rows[:5])
    return f"there is none such; the bindings between them have the routing keys {keys}"
