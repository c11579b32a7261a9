"""What users may see and do, by their tags."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest

from tests.contract.management.http import Api, at
from tests.support.brokers import TestBroker

#: Each needs the tag, and what is said to those who have it not.
NEEDS = [
    ("GET", "users", "administrator", "Not administrator user"),
    ("GET", "permissions", "administrator", "Not administrator user"),
    ("GET", "definitions", "administrator", "Not administrator user"),
    ("GET", "nodes", "monitoring", "Not monitor user"),
    ("GET", "parameters", "policymaker", "User not authorised to access object"),
    ("PUT", "vhosts/some", "administrator", "Not administrator user"),
]
HAVE = {
    "management": (),
    "policymaker": ("policymaker",),
    "monitoring": ("monitoring",),
}


@pytest.fixture
def as_user(broker: TestBroker, api: Api) -> Iterator[Callable[[str], Api]]:
    """Makes a user with these tags; its view."""
    made = []

    def make(tags: str) -> Api:
        name = f"user-{secrets.token_hex(4)}"
        broker.add_user(name, "secret", tags)
        made.append(name)
        return Api(broker.management, name, "secret")

    yield make
    for name in made:
        broker.delete_user(name)


def user_of(api: Api) -> str:
    return str(api.get("whoami")["name"])


@pytest.mark.parametrize("tags", ["", "impersonator", "other"])
def test_users_without_a_management_tag_are_kept_out(
    as_user: Callable[[str], Api], tags: str
) -> None:
    assert as_user(tags).ask("GET", "overview").said == (
        401,
        {"error": "not_authorised", "reason": "Not management user"},
    )


@pytest.mark.parametrize("tag", HAVE)
@pytest.mark.parametrize(("method", "path", "needed", "reason"), NEEDS)
def test_a_tag_opens_what_it_is_for(
    as_user: Callable[[str], Api], tag: str, method: str, path: str, needed: str, reason: str
) -> None:
    answer = as_user(tag).ask(method, path, None if method == "GET" else {})
    if needed in HAVE[tag]:
        assert answer.status == 200
    else:
        assert answer.said == (401, {"error": "not_authorised", "reason": reason})


def test_people_see_only_virtual_hosts_they_may_use(
    broker: TestBroker, as_user: Callable[[str], Api], vhost: str
) -> None:
    mine = as_user("management")
    assert mine.get("vhosts") == []
    assert mine.ask("GET", at("queues", vhost)).said == (
        401,
        {"error": "not_authorised", "reason": "User not authorised to access virtual host"},
    )
    broker.set_permissions(user_of(mine), vhost)
    assert [row["name"] for row in mine.get("vhosts")] == [vhost]
    assert mine.get(at("queues", vhost)) == []


def test_what_is_done_over_http_needs_the_same_permissions(
    broker: TestBroker, as_user: Callable[[str], Api], vhost: str
) -> None:
    mine = as_user("management")
    broker.set_permissions(user_of(mine), vhost, configure="^mine-", write="", read="")
    assert mine.put(at("queues", vhost, "mine-q")) == (201, None)
    assert mine.put(at("queues", vhost, "other")) == (
        401,
        {"error": "not_authorised", "reason": "Access refused."},
    )
    assert mine.delete(at("queues", vhost, "mine-q")) == (204, None)
