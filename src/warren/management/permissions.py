"""``/api/permissions`` and ``/api/topic-permissions``."""

from __future__ import annotations

from typing import Any

from warren.broker.permissions import Permission, TopicPermission
from warren.errors import AdminError
from warren.management.call import Call, administer, made
from warren.management.lists import reply_list, reply_one
from warren.management.messages import HttpError, Response, bad_request, not_found
from warren.management.rules import administrator
from warren.management.site import Route
from warren.management.users import find as find_user

_FIELDS = ("user", "vhost", "configure", "write", "read")
_TOPIC_FIELDS = ("user", "vhost", "exchange", "write", "read")


def permission_row(permission: Permission) -> dict[str, Any]:
    return {name: getattr(permission, name) for name in _FIELDS}


def topic_row(permission: TopicPermission) -> dict[str, Any]:
    return {name: getattr(permission, name) for name in _TOPIC_FIELDS}


def list_all(call: Call) -> Response:
    return reply_list(call, map(permission_row, call.core.admin.permissions()), dict)


def list_of_user(call: Call) -> Response:
    found = call.core.admin.permissions(user=find_user(call).name)
    return reply_list(call, map(permission_row, found), dict)


def list_of_vhost(call: Call) -> Response:
    found = call.core.admin.permissions(vhost=call.vhost.name)
    return reply_list(call, map(permission_row, found), dict)


def _place(call: Call) -> tuple[str, str]:
    return call.names["user"], call.names["vhost"]


def show(call: Call) -> Response:
    permission = call.core.admin.permission(*_place(call))
    if permission is None:
        raise not_found()
    return reply_one(call, permission_row(permission))


def put(call: Call) -> Response:
    _check_place(call)
    values = call.json("configure", "write", "read")
    patterns = [_text(values[name]) for name in ("configure", "write", "read")]
    user, vhost = _place(call)
    return made(administer(lambda: call.core.admin.set_permissions(user, vhost, *patterns)))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise bad_request("not_json")
    return value


def _check_place(call: Call) -> None:
    user, vhost = _place(call)
    if call.core.admin.user(user) is None or vhost not in call.core.vhosts:
        raise bad_request("vhost_or_user_not_found")


def delete(call: Call) -> Response:
    _clear(lambda: call.core.admin.clear_permissions(*_place(call)))
    return Response(204)


def _clear(act: Any) -> None:
    try:
        if not act():
            raise not_found()
    except AdminError as error:
        raise (not_found() if error.kind == "not_found" else HttpError(400)) from None


# -- topics --------------------------------------------------------------------------------------
def list_topics(call: Call) -> Response:
    return reply_list(call, map(topic_row, call.core.admin.topic_permissions()), dict)


def topics_of_user(call: Call) -> Response:
    found = call.core.admin.topic_permissions(user=find_user(call).name)
    return reply_list(call, map(topic_row, found), dict)


def topics_of_vhost(call: Call) -> Response:
    found = call.core.admin.topic_permissions(vhost=call.vhost.name)
    return reply_list(call, map(topic_row, found), dict)


def show_topics(call: Call) -> Response:
    user, vhost = _place(call)
    exchange = call.names.get("exchange")
    found = [
        permission
        for permission in call.core.admin.topic_permissions(user=user, vhost=vhost)
        if exchange in (None, permission.exchange)
    ]
    if not found:
        raise not_found()
    return reply_list(call, map(topic_row, found), dict)


def put_topic(call: Call) -> Response:
    _check_place(call)
    values = call.json("exchange", "write", "read")
    exchange, write, read = (_text(values[name]) for name in ("exchange", "write", "read"))
    user, vhost = _place(call)
    return made(
        administer(
            lambda: call.core.admin.set_topic_permissions(user, vhost, exchange, write, read)
        )
    )


def delete_topics(call: Call) -> Response:
    user, vhost = _place(call)
    exchange = call.names.get("exchange")
    _clear(lambda: call.core.admin.clear_topic_permissions(user, vhost, exchange))
    return Response(204)


_ONE = "/permissions/{vhost}/{user}"
_TOPICS = "/topic-permissions/{vhost}/{user}"
ROUTES = (
    Route("/permissions", administrator, get=list_all),
    Route(_ONE, administrator, get=show, put=put, delete=delete),
    Route("/users/{user}/permissions", administrator, get=list_of_user),
    Route("/vhosts/{vhost}/permissions", administrator, get=list_of_vhost),
    Route("/topic-permissions", administrator, get=list_topics),
    Route(_TOPICS, administrator, get=show_topics, put=put_topic, delete=delete_topics),
    Route(
        _TOPICS + "/{exchange}",
        administrator,
        get=show_topics,
        put=put_topic,
        delete=delete_topics,
    ),
    Route("/users/{user}/topic-permissions", administrator, get=topics_of_user),
    Route("/vhosts/{vhost}/topic-permissions", administrator, get=topics_of_vhost),
)
