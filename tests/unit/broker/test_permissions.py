from __future__ import annotations

import pytest

from warren.broker.permissions import Access, Permission, Permissions, TopicPermission
from warren.errors import AccessRefused, AdminError, InternalError


@pytest.fixture
def permissions() -> Permissions:
    permissions = Permissions()
    permissions.put(Permission("ann", "/", "^ann-", "^amq\\.default$", ""))
    permissions.put(Permission("bob", "/", "", "", ""))
    permissions.put(Permission("ann", "shop", ".*", ".*", ".*"))
    return permissions


def test_each_right_has_a_pattern_of_its_own(permissions: Permissions) -> None:
    access = Access(permissions, "ann", "/")

    assert access.may("configure", "queue", "ann-orders")
    assert not access.may("configure", "queue", "orders")
    assert not access.may("write", "queue", "ann-orders")
    assert not access.may("read", "queue", "ann-orders")


def test_only_an_exchange_without_a_name_is_the_default_one(permissions: Permissions) -> None:
    access = Access(permissions, "ann", "/")

    assert access.may("write", "exchange", "")
    assert not access.may("write", "queue", "")


def test_without_a_record_nothing_is_granted(permissions: Permissions) -> None:
    assert Access(permissions, "bob", "/").granted()
    assert not Access(permissions, "bob", "shop").granted()
    assert not Access(permissions, "bob", "shop").may("read", "queue", "")


def test_a_refusal_names_what_and_whom(permissions: Permissions) -> None:
    with pytest.raises(AccessRefused) as caught:
        Access(permissions, "bob", "/").read("queue", "orders")
    assert str(caught.value) == "access to queue 'orders' in vhost '/' refused for user 'bob'"


def test_a_change_is_seen_at_once(permissions: Permissions) -> None:
    access = Access(permissions, "bob", "/")
    permissions.put(Permission("bob", "/", ".*", ".*", ".*"))

    access.configure("queue", "orders")


def test_putting_tells_whether_it_is_new(permissions: Permissions) -> None:
    assert not permissions.put(Permission("bob", "/", "", "", ""))
    assert permissions.put(Permission("bob", "shop", "", "", ""))
    assert permissions.put_topic(TopicPermission("bob", "/", "amq.topic", "", ""))
    assert not permissions.put_topic(TopicPermission("bob", "/", "amq.topic", "a", ""))


def test_they_are_listed_by_user_and_by_vhost(permissions: Permissions) -> None:
    assert len(permissions.of()) == 3
    assert {permission.vhost for permission in permissions.of(user="ann")} == {"/", "shop"}
    assert {permission.user for permission in permissions.of(vhost="/")} == {"ann", "bob"}


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(AdminError):
        Permission("ann", "/", "(", "", "")
    with pytest.raises(AdminError):
        TopicPermission("ann", "/", "amq.topic", "", "(")


def test_names_in_a_topic_pattern_are_put_in_as_they_are() -> None:
    permissions = Permissions()
    permissions.put_topic(TopicPermission("a.b", "/", "amq.topic", "^{username}{vhost}$", ""))
    access = Access(permissions, "a.b", "/")

    assert access.may_topic("write", "amq.topic", "a.b/")
    assert access.may_topic("write", "amq.topic", "axb/")  # RabbitMQ escapes nothing
    assert access.may_topic("write", "another", "anything")


def test_a_name_that_spoils_the_pattern_is_the_brokers_failure() -> None:
    permissions = Permissions()
    permissions.put_topic(TopicPermission("(", "/", "amq.topic", "{username}", ""))

    with pytest.raises(InternalError):
        Access(permissions, "(", "/").may_topic("write", "amq.topic", "key")
