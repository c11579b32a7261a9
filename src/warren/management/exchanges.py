"""``/api/exchanges``: the exchanges, declaring and deleting them."""

from __future__ import annotations

from typing import Any

from warren.broker.exchanges import Exchange
from warren.broker.plain import to_json
from warren.broker.vhost import VirtualHost
from warren.management.call import Call, made, parse_bool
from warren.management.lists import reply_list, reply_one
from warren.management.messages import Response, not_found
from warren.management.queues import arguments_of
from warren.management.rules import in_vhost
from warren.management.sampler import exchange_counts
from warren.management.site import Route

_INTERNAL_USER = "rmq-internal"


def exchange_row(call: Call, vhost: VirtualHost, exchange: Exchange) -> dict[str, Any]:
    name, sampler = exchange.name, call.site.sampler
    policy = call.core.policies.match(vhost.name, "exchange", name)
    row = {
        "arguments": to_json(exchange.arguments),
        "auto_delete": exchange.auto_delete,
        "durable": exchange.durable,
        "internal": exchange.internal,
        "name": name,
        "type": exchange.type,
        "user_who_performed_action": _maker(name),
        "vhost": vhost.name,
        **sampler.message_stats(
            exchange,
            exchange_counts(exchange),
            ("publish_in", "publish_out"),
            span=call.span("msg_rates"),
        ),
    }
    if policy is not None:
        row["policy"] = policy.name
    return row


def _maker(name: str) -> str:
    """Who declared it is not kept: the broker made its own, the rest is nobody's."""
    return _INTERNAL_USER if not name or name.startswith("amq.") else ""


def list_exchanges(call: Call) -> Response:
    return _list(call, call.usable_vhosts())


def list_of_vhost(call: Call) -> Response:
    return _list(call, [call.vhost])


def _list(call: Call, vhosts: list[VirtualHost]) -> Response:
    call.core.tally()
    rows = [
        exchange_row(call, vhost, exchange)
        for vhost in vhosts
        for exchange in vhost.exchanges.values()
    ]
    return reply_list(call, rows, lambda row: row)


def find(call: Call) -> Exchange:
    exchange = call.vhost.exchanges.get(call.exchange_name())
    if exchange is None:
        raise not_found()
    return exchange


def show(call: Call) -> Response:
    exchange = find(call)
    call.core.tally()
    details: dict[str, Any] = {"incoming": [], "outgoing": []}  # as in RabbitMQ's basic mode
    return reply_one(call, {**exchange_row(call, call.vhost, exchange), **details})


def declare(call: Call) -> Response:
    vhost, name = call.changed_vhost(), call.exchange_name()
    values = call.json()
    new = name not in vhost.exchanges
    call.change(
        vhost.name,
        lambda channel: channel.declare_exchange(
            name,
            values.get("type", "direct"),
            durable=parse_bool(values.get("durable", False)),
            auto_delete=parse_bool(values.get("auto_delete", False)),
            internal=parse_bool(values.get("internal", False)),
            arguments=arguments_of(values),
        ),
    )
    return made(new)


def delete(call: Call) -> Response:
    exchange = find(call)
    call.change(
        call.vhost.name,
        lambda channel: channel.delete_exchange(exchange.name, if_unused=call.flag("if-unused")),
    )
    return Response(204)


ROUTES = (
    Route("/exchanges", get=list_exchanges),
    Route("/exchanges/{vhost}", in_vhost, get=list_of_vhost),
    Route("/exchanges/{vhost}/{exchange}", in_vhost, get=show, put=declare, delete=delete),
)
