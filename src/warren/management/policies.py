"""``/api/policies`` and ``/api/operator-policies``."""

from __future__ import annotations

import html
from typing import Any

from warren.broker.policy import Policy
from warren.errors import AdminError
from warren.management.call import Call, made
from warren.management.lists import reply_list, reply_one
from warren.management.messages import HttpError, Response, bad_request, not_found
from warren.management.rules import administrator, in_vhost, policymaker
from warren.management.site import Handler, Route


def policy_row(policy: Policy) -> dict[str, Any]:
    return {
        "vhost": policy.vhost,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": policy.definition,
        "priority": policy.priority,
    }


def policy_from(vhost: str, name: str, values: dict[str, Any], *, operator: bool) -> Policy:
    """From a body or from definitions."""
    if not isinstance(values["definition"], dict):
        raise HttpError(500)  # RabbitMQ's own answer
    return Policy(
        vhost,
        name,
        values["pattern"],
        values["definition"],
        values.get("priority", 0),
        values.get("apply-to", "all"),
        operator=operator,
    )


def _list_all(operator: bool) -> Handler:
    def handler(call: Call) -> Response:
        visible = {vhost.name for vhost in call.usable_vhosts()}
        found = [p for p in call.core.policies.all(operator=operator) if p.vhost in visible]
        return reply_list(call, map(policy_row, found), dict)

    return handler


def _list(operator: bool) -> Handler:
    def handler(call: Call) -> Response:
        found = call.core.policies.all(call.vhost.name, operator=operator)
        return reply_list(call, map(policy_row, found), dict)

    return handler


def _show(operator: bool) -> Handler:
    def handler(call: Call) -> Response:
        policy = call.core.policies.get(call.vhost.name, call.names["name"], operator=operator)
        if policy is None:
            raise not_found()
        return reply_one(call, policy_row(policy))

    return handler


def _put(operator: bool) -> Handler:
    def handler(call: Call) -> Response:
        vhost = call.changed_vhost()
        values = call.json("pattern", "definition")
        policy = policy_from(vhost.name, call.names["name"], values, operator=operator)
        try:
            return made(call.core.policies.put(policy))
        except AdminError as error:
            # RabbitMQ makes the reasons for policies safe for HTML, those of operators not.
            text = str(error)
            raise bad_request(text if operator else html.escape(text, quote=False)) from None

    return handler


def _delete(operator: bool) -> Handler:
    def handler(call: Call) -> Response:
        if not call.core.policies.delete(call.vhost.name, call.names["name"], operator=operator):
            raise not_found()
        return Response(204)

    return handler


def _routes() -> tuple[Route, ...]:
    routes = []
    for path, rule, operator in (
        ("policies", policymaker, False),
        ("operator-policies", administrator, True),
    ):
        one = f"/{path}/{{vhost}}/{{name}}"
        routes += [
            Route(f"/{path}", get=_list_all(operator)),
            Route(f"/{path}/{{vhost}}", in_vhost, get=_list(operator)),
            Route(one, rule, get=_show(operator), put=_put(operator), delete=_delete(operator)),
        ]
    return tuple(routes)


ROUTES = _routes()
