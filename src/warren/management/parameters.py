"""``/api/parameters`` and ``/api/global-parameters``.

Of the components that have parameters in RabbitMQ, two are here: limits on virtual hosts, and
operator policies. The others belong to plugins such as federation and shovels.
"""

from __future__ import annotations

import html
from typing import Any

from warren.errors import AdminError
from warren.management.call import Call, made
from warren.management.lists import reply_list, reply_one
from warren.management.messages import HttpError, Response, bad_request, not_found
from warren.management.policies import policy_from, policy_row
from warren.management.rules import administrator, any_policymaker, policymaker
from warren.management.site import Route

LIMITS, OPERATOR = "vhost-limits", "operator_policy"
_MANDATORY = ("priority", "pattern", "definition")

Item = dict[str, Any]


def parameters(call: Call, vhost: str | None = None) -> list[Item]:
    """All there are, or those of a virtual host."""
    limits = call.core.admin.vhost_limits(vhost)
    items = [_item(name, LIMITS, "limits", value) for name, value in limits.items()]
    for policy in call.core.policies.all(vhost, operator=True):
        row = policy_row(policy)
        value = {key: row[key] for key in ("pattern", "definition", "priority", "apply-to")}
        items.append(_item(policy.vhost, OPERATOR, policy.name, value))
    return items


def _item(vhost: str, component: str, name: str, value: Any) -> Item:
    return {"value": value, "vhost": vhost, "component": component, "name": name}


def _list(call: Call) -> Response:
    vhost = call.vhost.name if "vhost" in call.names else None
    visible = {vhost.name for vhost in call.usable_vhosts()}
    component = call.names.get("component")
    found = [
        item
        for item in parameters(call, vhost)
        if component in (None, item["component"]) and item["vhost"] in visible
    ]
    return reply_list(call, found, dict)


def _find(call: Call) -> Item:
    place = (call.names["component"], call.names["name"])
    for item in parameters(call, call.vhost.name):
        if (item["component"], item["name"]) == place:
            return item
    raise not_found()


def _show(call: Call) -> Response:
    return reply_one(call, _find(call))


def _put(call: Call) -> Response:
    vhost, name, component = call.changed_vhost().name, call.names["name"], call.names["component"]
    new = not any(
        (item["component"], item["name"]) == (component, name) for item in parameters(call, vhost)
    )
    value = call.json("value")["value"]
    if component == "policy":
        raise bad_request("policies may not be set using this method")
    try:
        put_parameter(call, vhost, component, name, value)
    except AdminError as error:
        # RabbitMQ makes its reasons safe for HTML.
        raise bad_request(html.escape(str(error), quote=False)) from None
    return made(new)


def put_parameter(call: Call, vhost: str, component: str, name: str, value: Any) -> None:
    """From a body or from definitions; raises AdminError."""
    if component == LIMITS:
        if not isinstance(value, dict):
            raise _invalid(f"limits not a list {value}")
        if name != "limits":
            raise HttpError(500)  # RabbitMQ's own answer
        call.core.admin.set_vhost_limits(vhost, value)
    elif component == OPERATOR:
        missing = [key for key in _MANDATORY if key not in value]
        if missing:
            raise _invalid("\n".join(f'Key "{key}" not found in {name}' for key in missing))
        call.core.policies.put(policy_from(vhost, name, value, operator=True))
    else:
        raise _invalid(f"component {component} not found")


def _invalid(problem: str) -> AdminError:
    return AdminError("bad_request", f"Validation failed\n\n{problem}\n")


def _delete(call: Call) -> Response:
    item = _find(call)
    if item["component"] == LIMITS:
        call.core.admin.set_vhost_limits(item["vhost"], {})
    else:
        call.core.policies.delete(item["vhost"], item["name"], operator=True)
    return Response(204)


# -- of the broker as a whole --------------------------------------------------------------------
def _list_global(call: Call) -> Response:
    found = call.core.admin.parameters.all()
    return reply_list(call, [{"name": k, "value": v} for k, v in found.items()], dict)


def _show_global(call: Call) -> Response:
    found, name = call.core.admin.parameters.all(), call.names["name"]
    if name not in found:
        raise not_found()
    return reply_one(call, {"value": found[name], "name": name})


def _put_global(call: Call) -> Response:
    return made(call.core.admin.parameters.put(call.names["name"], call.json("value")["value"]))


def _delete_global(call: Call) -> Response:
    if not call.core.admin.parameters.delete(call.names["name"]):
        raise not_found()
    return Response(204)


def _show_cluster_name(call: Call) -> Item:
    return {"name": str(call.core.server_properties["cluster_name"])}


def _put_cluster_name(call: Call) -> Response:
    refused = administrator(call)
    if refused is not None:
        raise HttpError(401, "not_authorised", refused)
    name = call.json("name")["name"]
    if not isinstance(name, str):
        raise HttpError(500)  # RabbitMQ's own answer
    call.core.admin.parameters.put("cluster_name", name)
    return Response(204)


_ONE = "/parameters/{component}/{vhost}/{name}"
_GLOBAL = "/global-parameters/{name}"
ROUTES = (
    Route("/parameters", any_policymaker, get=_list),
    Route("/parameters/{component}", any_policymaker, get=_list),
    Route("/parameters/{component}/{vhost}", policymaker, get=_list),
    Route(_ONE, policymaker, get=_show, put=_put, delete=_delete),
    Route("/global-parameters", any_policymaker, get=_list_global),
    Route(_GLOBAL, any_policymaker, get=_show_global, put=_put_global, delete=_delete_global),
    Route("/cluster-name", get=_show_cluster_name, put=_put_cluster_name),
)
