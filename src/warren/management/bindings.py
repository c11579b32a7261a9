"""``/api/bindings`` and the bindings of one exchange or queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, unquote_plus

from warren.broker.exchanges import Binding
from warren.broker.plain import to_json
from warren.broker.vhost import VirtualHost
from warren.management.call import Call
from warren.management.lists import reply_list, reply_one
from warren.management.messages import HttpError, Response, bad_request, not_found
from warren.management.queues import arguments_of
from warren.management.rules import in_vhost
from warren.management.site import Route

_KINDS = {"q": "queue", "e": "exchange"}

Row = dict[str, Any]


def binding_row(vhost: str, binding: Binding) -> Row:
    return {
        "source": binding.source,
        "vhost": vhost,
        "destination": binding.destination.name,
        "destination_type": binding.destination_kind,
        "routing_key": binding.routing_key,
        "arguments": to_json(binding.arguments),
        "properties_key": binding.properties_key,
    }


def default_row(vhost: str, queue: str) -> Row:
    """Every queue is bound to the default exchange by its own name."""
    return {
        "source": "",
        "vhost": vhost,
        "destination": queue,
        "destination_type": "queue",
        "routing_key": queue,
        "arguments": {},
        "properties_key": quote(queue, safe="-_.") or "~",
    }


def explicit(vhost: VirtualHost) -> Iterator[Row]:
    for exchange in vhost.exchanges.values():
        for binding in exchange.bindings.values():
            yield binding_row(vhost.name, binding)


def _rows(vhosts: Iterable[VirtualHost]) -> list[Row]:
    rows = []
    for vhost in vhosts:
        rows += [default_row(vhost.name, queue) for queue in vhost.queues]
        rows += explicit(vhost)
    return rows


def _reply(call: Call, rows: Iterable[Row]) -> Response:
    ordered = sorted(
        rows,
        key=lambda row: (row["vhost"], row["source"], row["destination"], row["properties_key"]),
    )
    return reply_list(call, ordered, lambda row: row)


def list_bindings(call: Call) -> Response:
    return _reply(call, _rows(call.usable_vhosts()))


def list_of_vhost(call: Call) -> Response:
    return _reply(call, _rows([call.vhost]))


def of_source(call: Call) -> Response:
    vhost, name = call.vhost, call.exchange_name()
    return _reply(call, [row for row in _rows([vhost]) if row["source"] == name])


def of_destination(call: Call) -> Response:
    vhost, name = call.vhost, call.exchange_name()
    return _reply(call, [row for row in explicit(vhost) if _leads_to(row, "exchange", name)])


def of_queue(call: Call) -> Response:
    vhost, name = call.vhost, call.names["queue"]
    rows = [row for row in explicit(vhost) if _leads_to(row, "queue", name)]
    return _reply(call, [default_row(vhost.name, name), *rows])


def _leads_to(row: Row, kind: str, name: str) -> bool:
    return bool(row["destination_type"] == kind and row["destination"] == name)


# -- between two ---------------------------------------------------------------------------------
def _pair(call: Call) -> tuple[str, str, str]:
    kind = _KINDS.get(call.names["kind"])
    if kind is None:
        raise HttpError(500)  # RabbitMQ's own answer
    destination = call.names["destination"]
    return call.exchange_name("source"), kind, "" if destination == "amq.default" else destination


def _between(call: Call, vhost: VirtualHost) -> list[tuple[Row, Binding | None]]:
    source, kind, destination = _pair(call)
    found: list[tuple[Row, Binding | None]] = []
    if not source and kind == "queue":
        return [(default_row(vhost.name, destination), None)]
    exchange = vhost.exchanges.get(source)
    for binding in exchange.bindings.values() if exchange is not None else ():
        row = binding_row(vhost.name, binding)
        if _leads_to(row, kind, destination):
            found.append((row, binding))
    return found


def list_between(call: Call) -> Response:
    return _reply(call, [row for row, _ in _between(call, call.vhost)])


def bind(call: Call) -> Response:
    vhost = call.changed_vhost()
    source, kind, destination = _pair(call)
    values = call.json()
    key, arguments = values.get("routing_key", ""), arguments_of(values)
    if not isinstance(key, str):
        raise bad_request("not_json")
    before = {row["properties_key"] for row, _ in _between(call, vhost)}
    call.change(vhost.name, lambda channel: channel.bind(source, kind, destination, key, arguments))
    now = [row["properties_key"] for row, _ in _between(call, vhost)]
    made = next((name for name in now if name not in before), None) or _known(
        call, vhost, key, arguments
    )
    # Relative to the path that was asked for.
    place = f"{quote(destination, safe='')}/{quote(made, safe='')}"
    return Response(201, headers=[("location", place)])


def _known(call: Call, vhost: VirtualHost, key: str, arguments: Row) -> str:
    """The name of a binding that was there before."""
    for row, _ in _between(call, vhost):
        if row["routing_key"] == key and row["arguments"] == arguments:
            return str(row["properties_key"])
    return "~"


def _find(call: Call) -> tuple[Row, Binding | None]:
    wanted = call.names["properties"]
    for row, binding in _between(call, call.vhost):
        # The path has been decoded once; the key is itself a quoted text.
        if wanted in (row["properties_key"], unquote_plus(row["properties_key"])):
            return row, binding
    raise not_found()


def show(call: Call) -> Response:
    return reply_one(call, _find(call)[0])


def unbind(call: Call) -> Response:
    row, binding = _find(call)
    if binding is None:
        raise HttpError(401, "not_authorised", "Access refused.")
    source, kind, destination = _pair(call)
    call.change(
        row["vhost"],
        lambda channel: channel.unbind(
            source, kind, destination, binding.routing_key, binding.arguments
        ),
    )
    return Response(204)


_PAIR = "/bindings/{vhost}/e/{source}/{kind}/{destination}"
ROUTES = (
    Route("/bindings", get=list_bindings),
    Route("/bindings/{vhost}", in_vhost, get=list_of_vhost),
    Route(_PAIR, in_vhost, get=list_between, post=bind),
    Route(_PAIR + "/{properties}", in_vhost, get=show, delete=unbind),
    Route("/exchanges/{vhost}/{exchange}/bindings/source", in_vhost, get=of_source),
    Route("/exchanges/{vhost}/{exchange}/bindings/destination", in_vhost, get=of_destination),
    Route("/queues/{vhost}/{queue}/bindings", in_vhost, get=of_queue),
)
