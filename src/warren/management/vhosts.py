"""``/api/vhosts`` and limits on them."""

from __future__ import annotations

from typing import Any

from warren.broker.vhost import VirtualHost
from warren.management.call import Call, administer, made, parse_bool
from warren.management.erlang import NODE
from warren.management.lists import reply_list, reply_one
from warren.management.messages import Response, not_found
from warren.management.rules import administrator, sees_vhost
from warren.management.sampler import DELIVERING, PUBLISHING
from warren.management.site import Route

_DEPTHS = ("messages", "messages_ready", "messages_unacknowledged")


def vhost_row(call: Call, vhost: VirtualHost) -> dict[str, Any]:
    sampler = call.site.sampler
    counts = sampler.vhost_counts(vhost)
    row: dict[str, Any] = {
        "cluster_state": {NODE: "running"},
        "default_queue_type": "undefined",
        "description": vhost.description,
        "metadata": {"description": vhost.description, "tags": list(vhost.tags)},
        "name": vhost.name,
        "tags": list(vhost.tags),
        "tracing": False,
        **sampler.message_stats(vhost, counts, PUBLISHING, DELIVERING, span=call.span("msg_rates")),
    }
    if vhost.queues:  # RabbitMQ gives the samples of these with the others'
        row.update(sampler.rated(vhost, counts, *_DEPTHS, span=call.span("msg_rates")))
    if counts.get("recv_oct"):
        span = call.span("data_rates")
        row.update(sampler.rated(vhost, counts, "recv_oct", "send_oct", span=span))
    return row


def list_vhosts(call: Call) -> Response:
    return reply_list(call, call.visible_vhosts(), lambda vhost: vhost_row(call, vhost))


def show(call: Call) -> Response:
    return reply_one(call, vhost_row(call, call.vhost))


def tags_of(value: Any) -> list[str]:
    """A list, or a text with commas."""
    items = value if isinstance(value, list) else str(value or "").split(",")
    return [str(item).strip() for item in items if str(item).strip()]


def put(call: Call) -> Response:
    values = call.json()
    parse_bool(values.get("tracing", False))
    description = str(values.get("description", ""))
    new = administer(
        lambda: call.core.admin.put_vhost(
            call.names["vhost"],
            description=description,
            tags=tags_of(values.get("tags")),
            acting_user=call.user.name,
        )
    )
    return made(new)


def delete(call: Call) -> Response:
    call.core.admin.delete_vhost(call.vhost.name)
    return Response(204)


def restart(call: Call) -> Response:
    if call.names["node"] != NODE or call.names["vhost"] not in call.core.vhosts:
        raise not_found()
    return Response(204)


# -- limits --------------------------------------------------------------------------------------
def list_limits(call: Call) -> Response:
    visible = {vhost.name for vhost in call.visible_vhosts()}
    return _limits(call, {k: v for k, v in call.core.admin.vhost_limits().items() if k in visible})


def list_limits_of(call: Call) -> Response:
    return _limits(call, call.core.admin.vhost_limits(call.vhost.name))


def _limits(call: Call, limits: dict[str, dict[str, int]]) -> Response:
    rows = [{"vhost": vhost, "value": value} for vhost, value in limits.items() if value]
    return reply_list(call, rows, lambda row: row)


def put_limit(call: Call) -> Response:
    vhost, value = call.changed_vhost(), call.json("value")["value"]
    administer(lambda: call.core.admin.set_vhost_limit(vhost.name, call.names["name"], value))
    return Response(204)


def delete_limit(call: Call) -> Response:
    vhost = call.vhost
    administer(lambda: call.core.admin.clear_vhost_limit(vhost.name, call.names["name"]))
    return Response(204)


ROUTES = (
    Route("/vhosts", get=list_vhosts),
    Route("/vhosts/{vhost}", administrator, get=show, put=put, delete=delete),
    Route("/vhosts/{vhost}/start/{node}", administrator, post=restart),
    Route("/vhost-limits", get=list_limits),
    Route("/vhost-limits/{vhost}", sees_vhost, get=list_limits_of),
    Route("/vhost-limits/{vhost}/{name}", administrator, put=put_limit, delete=delete_limit),
)
