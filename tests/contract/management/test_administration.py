"""Virtual hosts, users, permissions and limits over HTTP."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.management.http import Api, at

NOT_FOUND = (404, {"error": "Object Not Found", "reason": "Not Found"})


def bad(reason: Any) -> tuple[int, Any]:
    return 400, {"error": "bad_request", "reason": reason}


@pytest.fixture
def user(api: Api) -> Iterator[str]:
    """A user without tags or permissions."""
    name = f"user-{secrets.token_hex(4)}"
    assert api.put(at("users", name), {"password": "secret", "tags": ""}) == (201, None)
    yield name
    api.delete(at("users", name))


def test_a_virtual_host_is_made_described_and_deleted(api: Api) -> None:
    name = f"scratch-{secrets.token_hex(4)}"
    path = at("vhosts", name)
    assert api.put(path) == (201, None)
    assert api.put(path, {"description": "of my own", "tags": "a,b"}) == (204, None)
    row = api.get(path)
    assert (row["name"], row["description"], row["tags"]) == (name, "of my own", ["a", "b"])
    assert row["metadata"] == {"description": "of my own", "tags": ["a", "b"]}
    assert api.get(f"{path}/permissions") == [
        {"vhost": name, "user": "guest", "configure": ".*", "write": ".*", "read": ".*"}
    ]
    assert api.delete(path) == (204, None)
    assert api.delete(path) == NOT_FOUND


def test_a_user_is_shown_with_the_hash_of_its_password_only(api: Api, user: str) -> None:
    row = api.get(at("users", user))
    assert len(row.pop("password_hash")) == 48
    assert row == {
        "name": user,
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": [],
        "limits": {},
    }


@pytest.mark.parametrize("tags", ["management,policymaker", ["management", "policymaker"]])
def test_tags_are_a_list_or_a_text_with_commas(api: Api, user: str, tags: Any) -> None:
    assert api.put(at("users", user), {"password": "s", "tags": tags}) == (204, None)
    assert api.get(at("users", user))["tags"] == ["management", "policymaker"]


def test_a_hash_can_be_given_instead_of_a_password(api: Api, user: str) -> None:
    row = api.get(at("users", user))
    other = f"{user}-copy"
    body = {"password_hash": row["password_hash"], "tags": "management"}
    assert api.put(at("users", other), body) == (201, None)
    mine = Api(f"http://{api.host}:{api.port}", other, "secret")
    assert mine.get("whoami") == {"name": other, "tags": ["management"]}
    assert api.delete(at("users", other)) == (204, None)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"password": "s"}, "tags_not_present"),
        ({"password_hash": "!!", "tags": ""}, ["not_base64", "!!"]),
    ],
)
def test_a_user_that_can_not_be_is_refused(
    api: Api, user: str, body: dict[str, Any], reason: Any
) -> None:
    assert api.put(at("users", user), body) == bad(reason)


def test_users_without_permissions_are_told(api: Api, user: str, vhost: str) -> None:
    assert user in [row["name"] for row in api.get("users/without-permissions")]
    api.put(at("permissions", vhost, user), {"configure": "", "write": "", "read": ""})
    assert user not in [row["name"] for row in api.get("users/without-permissions")]


def test_several_users_are_deleted_at_once(api: Api, user: str) -> None:
    assert api.post("users/bulk-delete", {"users": [user]}) == (204, None)
    assert api.ask("GET", at("users", user)).said == NOT_FOUND


def test_permissions_are_set_shown_and_cleared(api: Api, user: str, vhost: str) -> None:
    path = at("permissions", vhost, user)
    patterns = {"configure": "^my-", "write": ".*", "read": ""}
    assert api.put(path, patterns) == (201, None)
    assert api.put(path, patterns) == (204, None)
    row = {"user": user, "vhost": vhost, **patterns}
    assert api.get(path) == row
    assert api.get(at("users", user, "permissions")) == [row]
    assert row in api.get(at("vhosts", vhost, "permissions"))
    assert row in api.get("permissions")
    assert api.delete(path) == (204, None)
    assert api.delete(path) == NOT_FOUND


def test_permissions_need_all_three_patterns(api: Api, user: str, vhost: str) -> None:
    answer = api.put(at("permissions", vhost, user), {"configure": "", "write": ""})
    assert answer == bad("[{key_missing,read}]")


@pytest.mark.parametrize("path", ["permissions/{vhost}/nobody", "permissions/nowhere/{user}"])
def test_permissions_need_a_user_and_a_virtual_host(
    api: Api, user: str, vhost: str, path: str
) -> None:
    patterns = {"configure": "", "write": "", "read": ""}
    answer = api.put(path.format(vhost=vhost, user=user), patterns)
    assert answer == bad("vhost_or_user_not_found")


def test_topic_permissions_are_set_shown_and_cleared(api: Api, user: str, vhost: str) -> None:
    path = at("topic-permissions", vhost, user)
    body = {"exchange": "amq.topic", "write": "^a", "read": ".*"}
    assert api.put(path, body) == (201, None)
    row = {"user": user, "vhost": vhost, **body}
    assert api.get(path) == [row]
    assert api.get(f"{path}/amq.topic") == [row]
    assert api.get(at("users", user, "topic-permissions")) == [row]
    assert api.get(at("vhosts", vhost, "topic-permissions")) == [row]
    assert api.delete(f"{path}/amq.topic") == (204, None)
    assert api.ask("GET", path).said == NOT_FOUND


def test_a_users_limits_are_set_shown_and_cleared(api: Api, user: str) -> None:
    path = at("user-limits", user)
    assert api.put(f"{path}/max-connections", {"value": 5}) == (204, None)
    assert api.get(path) == [{"user": user, "value": {"max-connections": 5}}]
    assert api.get(at("users", user))["limits"] == {"max-connections": 5}
    assert api.delete(f"{path}/max-connections") == (204, None)
    assert api.get(path) == []


def test_a_virtual_hosts_limits_are_set_shown_and_cleared(api: Api, vhost: str) -> None:
    path = at("vhost-limits", vhost)
    assert api.put(f"{path}/max-queues", {"value": 5}) == (204, None)
    assert api.get(path) == [{"vhost": vhost, "value": {"max-queues": 5}}]
    assert api.delete(f"{path}/max-queues") == (204, None)
    assert api.get(path) == []


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("user-limits/{user}/zz", {"value": 5}, 'Unrecognised terms [{<<"zz">>,5}] in user-limits'),
        (
            "user-limits/{user}/max-channels",
            {"value": "a"},
            'max-channels should be a number, actually was <<"a">>',
        ),
        ("user-limits/{user}/max-channels", {}, "[{key_missing,value}]"),
        (
            "vhost-limits/{vhost}/zz",
            {"value": 5},
            'Validation failed\n\nUnrecognised terms [{<<"zz">>,5}] in limits\n',
        ),
    ],
)
def test_a_limit_that_can_not_be_is_refused(
    api: Api, user: str, vhost: str, path: str, body: Any, reason: str
) -> None:
    assert api.put(path.format(user=user, vhost=vhost), body) == bad(reason)
