"""Who may ask for what: RabbitMQ's rules, by user tag and by virtual host."""

from __future__ import annotations

from collections.abc import Callable

from warren.management.call import Call

#: None if the user may; else RabbitMQ's reason why not.
Rule = Callable[[Call], str | None]

_NOT_THIS_VHOST = "User not authorised to access virtual host"
_NOT_THIS_OBJECT = "User not authorised to access object"


def anyone(call: Call) -> str | None:
    return None


def administrator(call: Call) -> str | None:
    return None if call.is_admin else "Not administrator user"


def monitor(call: Call) -> str | None:
    return None if call.is_monitor else "Not monitor user"


def _has_access(call: Call) -> bool:
    vhost = call.names.get("vhost") or call.request.headers.get("x-vhost", "")
    return vhost not in call.core.vhosts or call.core.admin.has_access(call.user, vhost)


def in_vhost(call: Call) -> str | None:
    return None if call.is_admin or _has_access(call) else _NOT_THIS_VHOST


def sees_vhost(call: Call) -> str | None:
    return None if call.is_monitor or _has_access(call) else _NOT_THIS_VHOST


def policymaker(call: Call) -> str | None:
    allowed = call.is_admin or (call.user.may("policymaker") and _has_access(call))
    return None if allowed else _NOT_THIS_OBJECT


def any_policymaker(call: Call) -> str | None:
    return None if call.user.may("policymaker") else _NOT_THIS_OBJECT


def owner(call: Call, user: str) -> str | None:
    """Of connections and channels: people see and close their own, monitors see all."""
    allowed = call.is_admin if call.request.method == "DELETE" else call.is_monitor
    return None if allowed or call.user.name == user else _NOT_THIS_OBJECT
