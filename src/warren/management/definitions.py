"""``/api/definitions``: everything that was declared, out to a file and in from one.

The file is RabbitMQ's: one exported there is taken here, and the other way round.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from warren.broker.core import RABBITMQ_VERSION
from warren.broker.plain import to_json
from warren.broker.users import MD5, SHA256
from warren.broker.vhost import VirtualHost
from warren.errors import AdminError, Refusal
from warren.management.bindings import explicit
from warren.management.call import Call
from warren.management.lists import reply_one
from warren.management.messages import HttpError, Response, bad_request
from warren.management.parameters import LIMITS, OPERATOR, parameters, put_parameter
from warren.management.permissions import permission_row, topic_row
from warren.management.policies import policy_from, policy_row
from warren.management.rules import administrator
from warren.management.site import Route
from warren.management.users import put_user, user_row
from warren.management.vhosts import tags_of

log = logging.getLogger(__name__)

_BEFORE_3_6 = ("3.5.", "3.4.", "3.3.", "3.2.", "3.1.", "3.0.")

Item = dict[str, Any]


# -- out -----------------------------------------------------------------------------------------
def _queues(vhost: VirtualHost) -> list[Item]:
    return [
        {
            "name": queue.name,
            "vhost": vhost.name,
            "durable": queue.durable,
            "auto_delete": queue.auto_delete,
            "arguments": to_json(queue.arguments),
        }
        for queue in vhost.queues.values()
        if queue.owner is None
    ]


def _exchanges(vhost: VirtualHost) -> list[Item]:
    return [
        {
            "name": exchange.name,
            "vhost": vhost.name,
            "type": exchange.type,
            "durable": exchange.durable,
            "auto_delete": exchange.auto_delete,
            "internal": exchange.internal,
            "arguments": to_json(exchange.arguments),
        }
        for exchange in vhost.exchanges.values()
        if exchange.name and not exchange.name.startswith("amq.")
    ]


def _bindings(vhost: VirtualHost) -> list[Item]:
    rows = []
    for row in explicit(vhost):
        queue = vhost.queues.get(row["destination"])
        if row["destination_type"] == "queue" and (queue is None or queue.owner is not None):
            continue
        rows.append({key: value for key, value in row.items() if key != "properties_key"})
    return rows


def _topology(vhosts: list[VirtualHost]) -> dict[str, list[Item]]:
    return {
        "queues": [item for vhost in vhosts for item in _queues(vhost)],
        "exchanges": [item for vhost in vhosts for item in _exchanges(vhost)],
        "bindings": [item for vhost in vhosts for item in _bindings(vhost)],
    }


def export_all(call: Call) -> Response:
    admin = call.core.admin
    value = {
        "rabbit_version": RABBITMQ_VERSION,
        "rabbitmq_version": RABBITMQ_VERSION,
        "product_name": "RabbitMQ",
        "product_version": RABBITMQ_VERSION,
        "users": [user_row(call, user) for user in admin.users()],
        "vhosts": [{"name": name} for name in call.core.vhosts],
        "permissions": [permission_row(item) for item in admin.permissions()],
        "topic_permissions": [topic_row(item) for item in admin.topic_permissions()],
        "parameters": parameters(call),
        "global_parameters": [
            {"name": name, "value": value} for name, value in admin.parameters.all().items()
        ],
        "policies": [policy_row(policy) for policy in call.core.policies.all()],
        **_topology(list(call.core.vhosts.values())),
    }
    return _download(call, value)


def export_vhost(call: Call) -> Response:
    vhost = call.core.vhosts.get(call.names["vhost"])
    if vhost is None:
        raise bad_request("vhost_not_found")
    topology = _topology([vhost])
    value = {
        "rabbit_version": RABBITMQ_VERSION,
        "parameters": parameters(call, vhost.name),
        "policies": [policy_row(policy) for policy in call.core.policies.all(vhost.name)],
        **{key: [_without_vhost(item) for item in items] for key, items in topology.items()},
    }
    return _download(call, value)


def _without_vhost(item: Item) -> Item:
    return {key: value for key, value in item.items() if key != "vhost"}


def _download(call: Call, value: dict[str, Any]) -> Response:
    response = reply_one(call, value)
    name = call.request.query.get("download")
    if name is not None:
        response.headers.append(("content-disposition", f"attachment; filename={name}"))
    return response


# -- in ------------------------------------------------------------------------------------------
class Import:
    """One file on its way in: things first, then what refers to them."""

    def __init__(self, call: Call, values: dict[str, Any], only: str | None = None) -> None:
        self._call = call
        self._values = values
        #: The one virtual host that everything goes to.
        self._only = only

    def run(self) -> None:
        if self._only is None:
            self._each("users", self._user)
            self._each("vhosts", self._vhost)
            self._each("permissions", self._permission)
            self._each("topic_permissions", self._topic_permission)
        self._each("exchanges", self._exchange)
        if self._only is None:
            self._each("global_parameters", self._global_parameter)
        self._each("policies", self._policy)
        self._each("parameters", self._parameter)
        self._each("queues", self._queue)
        self._each("bindings", self._binding)

    def _each(self, section: str, act: Callable[[Item], None]) -> None:
        items = self._values.get(section) or []
        if not isinstance(items, list):
            raise bad_request("not_json")
        for item in items:
            try:
                act(item)
            except AdminError as error:
                raise bad_request(str(error)) from None
            except Refusal as refusal:
                raise bad_request(str(refusal)) from None
            except (KeyError, TypeError, AttributeError) as error:
                raise bad_request(f"{section}: {error} is missing or wrong") from None

    def _in_vhost(self, item: Item) -> str:
        name = self._only if self._only is not None else str(item["vhost"])
        if name not in self._call.core.vhosts:
            raise bad_request(
                f'Please create virtual host "{name}" prior to importing definitions.'
            )
        return name

    def _user(self, item: Item) -> None:
        version = self._values.get("rabbitmq_version", self._values.get("rabbit_version", ""))
        # Before 3.6 there was but one way to hash a password, and files did not name it.
        hashing = MD5 if str(version).startswith(_BEFORE_3_6) else SHA256
        put_user(self._call, item["name"], {"hashing_algorithm": hashing, **item})

    def _vhost(self, item: Item) -> None:
        name = item["name"]
        if name not in self._call.core.vhosts:
            metadata = item.get("metadata") or item
            self._call.core.admin.put_vhost(
                name,
                description=metadata.get("description", ""),
                tags=tags_of(metadata.get("tags")),
                acting_user=self._call.user.name,
            )

    def _permission(self, item: Item) -> None:
        patterns = (item["configure"], item["write"], item["read"])
        self._call.core.admin.set_permissions(item["user"], item["vhost"], *patterns)

    def _topic_permission(self, item: Item) -> None:
        patterns = (item["exchange"], item["write"], item["read"])
        self._call.core.admin.set_topic_permissions(item["user"], item["vhost"], *patterns)

    def _parameter(self, item: Item) -> None:
        vhost, component = self._in_vhost(item), item["component"]
        if component in (LIMITS, OPERATOR):
            put_parameter(self._call, vhost, component, item["name"], item["value"])
        else:
            # Of a plugin that is not here. RabbitMQ refuses the file then; but a broker that has
            # no shovels can well take the queues of one that has.
            log.warning("definitions: parameter of %r left out: there is no such plugin", component)

    def _global_parameter(self, item: Item) -> None:
        self._call.core.admin.parameters.put(item["name"], item["value"])

    def _policy(self, item: Item) -> None:
        policy = policy_from(self._in_vhost(item), item["name"], item, operator=False)
        self._call.core.policies.put(policy)

    def _queue(self, item: Item) -> None:
        vhost = self._in_vhost(item)
        if item["name"] in self._call.core.vhosts[vhost].queues:
            return  # what is there stays as it is
        with self._call.direct(vhost) as channel:
            channel.declare_queue(
                item["name"],
                durable=item["durable"],
                auto_delete=item["auto_delete"],
                arguments=item.get("arguments") or {},
            )

    def _exchange(self, item: Item) -> None:
        vhost = self._in_vhost(item)
        if item["name"] in self._call.core.vhosts[vhost].exchanges:
            return
        with self._call.direct(vhost) as channel:
            channel.declare_exchange(
                item["name"],
                item["type"],
                durable=item["durable"],
                auto_delete=item["auto_delete"],
                internal=item.get("internal", False),
                arguments=item.get("arguments") or {},
            )

    def _binding(self, item: Item) -> None:
        with self._call.direct(self._in_vhost(item)) as channel:
            channel.bind(
                item["source"],
                item["destination_type"],
                item["destination"],
                item["routing_key"],
                item.get("arguments") or {},
            )


def _read(call: Call) -> dict[str, Any]:
    kind, body = call.request.headers.get("content-type", ""), call.request.body
    if kind.startswith("multipart/form-data"):
        body = _uploaded(kind, body)
    try:
        values = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise bad_request("failed_to_parse_json") from None
    if not isinstance(values, dict):
        raise bad_request("failed_to_parse_json")
    return values


def _uploaded(kind: str, body: bytes) -> bytes:
    """The field ``file`` of a form, as browsers and ``curl -F file=@broker.json`` send it."""
    head = f"content-type: {kind}\r\n\r\n".encode("utf-8", "replace")
    # Here and not above: the two take longer to load than the rest of the API.
    from email.parser import BytesParser
    from email.policy import HTTP

    for part in BytesParser(policy=HTTP).parsebytes(head + body).iter_parts():
        if part.get_param("name", header="content-disposition") == "file":
            return bytes(part.get_payload(decode=True))
    raise bad_request("failed_to_parse_json")


def import_all(call: Call) -> Response:
    Import(call, _read(call)).run()
    return Response(204)


def import_vhost(call: Call) -> Response:
    values = _read(call)
    name = call.names["vhost"]
    if name not in call.core.vhosts:
        raise HttpError(404, "not_found", "vhost_not_found")
    Import(call, values, name).run()
    return Response(204)


ROUTES = (
    Route("/definitions", administrator, get=export_all, post=import_all),
    Route("/all-configuration", administrator, get=export_all, post=import_all),
    Route("/definitions/{vhost}", administrator, get=export_vhost, post=import_vhost),
)
