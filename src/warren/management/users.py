"""``/api/users``, their permissions and their limits."""

from __future__ import annotations

from typing import Any

from warren.broker.users import SHA256, User
from warren.management.call import Call, administer, made
from warren.management.lists import reply_list, reply_one
from warren.management.messages import Response, bad_request, not_found
from warren.management.rules import administrator
from warren.management.site import Route
from warren.management.vhosts import tags_of


def user_row(call: Call, user: User) -> dict[str, Any]:
    return {
        "name": user.name,
        "password_hash": user.password_hash_text,
        "hashing_algorithm": user.hashing,
        "tags": list(user.tags),
        "limits": dict(user.limits),
    }


def list_users(call: Call) -> Response:
    return reply_list(call, call.core.admin.users(), lambda user: user_row(call, user))


def without_permissions(call: Call) -> Response:
    admin = call.core.admin
    users = [user for user in admin.users() if not admin.permissions(user=user.name)]
    return reply_list(call, users, lambda user: user_row(call, user))


def find(call: Call) -> User:
    user = call.core.admin.user(call.names["user"])
    if user is None:
        raise not_found()
    return user


def show(call: Call) -> Response:
    return reply_one(call, user_row(call, find(call)))


def put(call: Call) -> Response:
    return made(administer(lambda: put_user(call, call.names["user"], call.json())))


def put_user(call: Call, name: str, values: dict[str, Any]) -> bool:
    """From a body or from definitions; a hash comes along with how it was made."""
    if "tags" not in values:
        raise bad_request("tags_not_present")
    new = call.core.admin.put_user(
        name,
        password=values.get("password"),
        password_hash=values.get("password_hash"),
        hashing=values.get("hashing_algorithm", SHA256),
        tags=tags_of(values["tags"]),
    )
    for limit, value in (values.get("limits") or {}).items():
        call.core.admin.set_user_limit(name, limit, value)
    return new


def delete(call: Call) -> Response:
    call.core.admin.delete_user(find(call).name)
    return Response(204)


def delete_many(call: Call) -> Response:
    for name in call.json("users")["users"]:
        if call.core.admin.user(name) is not None:
            call.core.admin.delete_user(name)
    return Response(204)


# -- limits --------------------------------------------------------------------------------------
def list_limits(call: Call) -> Response:
    return _limits(call, call.core.admin.user_limits())


def list_limits_of(call: Call) -> Response:
    return _limits(call, call.core.admin.user_limits(find(call).name))


def _limits(call: Call, limits: dict[str, dict[str, int]]) -> Response:
    rows = [{"user": user, "value": value} for user, value in limits.items() if value]
    return reply_list(call, rows, lambda row: row)


def put_limit(call: Call) -> Response:
    name, value = call.names["user"], call.json("value")["value"]
    administer(lambda: call.core.admin.set_user_limit(name, call.names["name"], value))
    return Response(204)


def delete_limit(call: Call) -> Response:
    name = find(call).name
    administer(lambda: call.core.admin.clear_user_limit(name, call.names["name"]))
    return Response(204)


ROUTES = (
    Route("/users", administrator, get=list_users),
    Route("/users/without-permissions", administrator, get=without_permissions),
    Route("/users/bulk-delete", administrator, post=delete_many),
    Route("/users/{user}", administrator, get=show, put=put, delete=delete),
    Route("/user-limits", get=list_limits),
    Route("/user-limits/{user}", get=list_limits_of),
    Route("/user-limits/{user}/{name}", administrator, put=put_limit, delete=delete_limit),
)
