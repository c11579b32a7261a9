from __future__ import annotations

from collections.abc import Callable

import pytest

from warren.broker.admin import Admin
from warren.broker.core import BrokerCore
from warren.errors import AccessRefused, AdminError


@pytest.fixture
def core() -> BrokerCore:
    return BrokerCore()


@pytest.fixture
def admin(core: BrokerCore) -> Admin:
    return core.admin


def failing(act: Callable[[], object]) -> tuple[str, object]:
    with pytest.raises(AdminError) as caught:
        act()
    return caught.value.kind, caught.value.reason


def test_a_new_broker_has_guest_who_may_do_everything(admin: Admin) -> None:
    assert [user.name for user in admin.users()] == ["guest"]
    assert admin.user("guest").may("administrator")  # type: ignore[union-attr]
    assert admin.may("guest", "/", "configure", "queue", "anything")
    assert admin.authenticate("guest", "guest", host="127.0.0.1").name == "guest"


def test_putting_a_user_tells_whether_it_is_new(admin: Admin) -> None:
    assert admin.put_user("ann", password="old", tags="management, monitoring")
    assert not admin.put_user("ann", password="new")
    assert admin.user("ann").tags == ()  # type: ignore[union-attr]
    assert admin.authenticate("ann", "new", host="203.0.113.7").name == "ann"
    with pytest.raises(AccessRefused):
        admin.authenticate("ann", "old", host="203.0.113.7")


def test_tags_come_as_text_or_as_a_list(admin: Admin) -> None:
    for tags in ("management, impersonator", ["management ", "impersonator", ""]):
        admin.put_user("ann", tags=tags)
        assert admin.user("ann").tags == ("management", "impersonator")  # type: ignore[union-attr]


def test_a_user_keeps_its_limits_when_it_is_changed(admin: Admin) -> None:
    admin.put_user("ann")
    admin.set_user_limit("ann", "max-channels", 5)
    admin.put_user("ann", password="new")
    admin.set_tags("ann", ["management"])
    assert admin.user_limits("ann") == {"ann": {"max-channels": 5}}


def test_a_password_is_set_and_cleared(admin: Admin) -> None:
    admin.put_user("ann")
    admin.set_password("ann", "sesame")
    assert admin.authenticate("ann", "sesame", host="203.0.113.7")
    admin.clear_password("ann")
    assert admin.user("ann").password_hash_text == ""  # type: ignore[union-attr]
    with pytest.raises(AccessRefused):
        admin.authenticate("ann", "sesame", host="203.0.113.7")


def test_a_deleted_user_takes_its_permissions_along(admin: Admin) -> None:
    admin.put_user("ann")
    admin.set_permissions("ann", "/", "", "", "")
    admin.set_topic_permissions("ann", "/", "amq.topic", "", "")
    admin.delete_user("ann")
    assert admin.permissions(user="ann") == []
    assert admin.topic_permissions(user="ann") == []


def test_a_deleted_virtual_host_takes_its_permissions_along(admin: Admin) -> None:
    admin.put_user("ann")
    assert admin.put_vhost("shop", acting_user="ann")
    admin.set_topic_permissions("ann", "shop", "amq.topic", "", "")
    admin.delete_vhost("shop")
    assert admin.permissions(vhost="shop") == []
    assert admin.topic_permissions(vhost="shop") == []


def test_who_makes_a_virtual_host_may_do_everything_in_it(admin: Admin) -> None:
    admin.put_user("ann")
    admin.put_vhost("shop", acting_user="ann")
    assert admin.may("ann", "shop", "write", "exchange", "")
    assert not admin.has_access("guest", "shop")
    admin.clear_permissions("ann", "shop")
    assert not admin.put_vhost("shop", description="ours", tags="a,b", acting_user="ann")
    assert not admin.has_access("ann", "shop")


def test_the_management_shows_what_a_user_may_open_and_all_to_who_watches(admin: Admin) -> None:
    admin.put_vhost("shop")
    admin.put_user("ann", tags="management")
    admin.put_user("eve", tags="monitoring")
    admin.set_permissions("ann", "shop", "", "", "")
    assert admin.visible_vhosts(admin.user("ann")) == ["shop"]  # type: ignore[arg-type]
    assert admin.visible_vhosts(admin.user("eve")) == ["/", "shop"]  # type: ignore[arg-type]


def test_a_change_of_permissions_voids_routes(core: BrokerCore, admin: Admin) -> None:
    changes: list[Callable[[], object]] = [
        lambda: admin.set_permissions("guest", "/", "", "", ""),
        lambda: admin.set_topic_permissions("guest", "/", "amq.topic", "", ""),
        lambda: admin.clear_topic_permissions("guest", "/"),
        lambda: admin.clear_permissions("guest", "/"),
    ]
    for change in changes:
        before = core.vhosts["/"].version
        change()
        assert core.vhosts["/"].version > before


def test_clearing_tells_whether_there_was_something(admin: Admin) -> None:
    admin.set_topic_permissions("guest", "/", "one", "", "")
    admin.set_topic_permissions("guest", "/", "two", "", "")
    assert admin.clear_topic_permissions("guest", "/", "one")
    assert [each.exchange for each in admin.topic_permissions()] == ["two"]
    assert admin.clear_topic_permissions("guest", "/")
    assert not admin.clear_topic_permissions("guest", "/")
    assert admin.clear_permissions("guest", "/")
    assert not admin.clear_permissions("guest", "/")


def test_limits_are_set_listed_and_cleared(admin: Admin) -> None:
    admin.set_user_limit("guest", "max-connections", 5)
    admin.set_vhost_limit("/", "max-queues", 7)
    admin.set_vhost_limit("/", "max-connections", -1)
    assert admin.user_limits() == {"guest": {"max-connections": 5}}
    assert admin.vhost_limits("/") == {"/": {"max-queues": 7, "max-connections": -1}}
    admin.clear_user_limit("guest", "max-connections")
    admin.clear_vhost_limit("/", "max-queues")
    admin.clear_vhost_limit("/", "max-connections")
    assert admin.user_limits() == admin.vhost_limits() == {}


@pytest.mark.parametrize(
    ("act", "kind", "reason"),
    [
        (lambda a: a.delete_user("x"), "not_found", ["no_such_user", "x"]),
        (lambda a: a.set_password("x", "y"), "not_found", ["no_such_user", "x"]),
        (lambda a: a.delete_vhost("x"), "not_found", ["no_such_vhost", "x"]),
        (
            lambda a: a.set_permissions("x", "/", "", "", ""),
            "not_found",
            ["no_such_user", "x"],
        ),
        (
            lambda a: a.set_permissions("guest", "x", "", "", ""),
            "not_found",
            ["no_such_vhost", "x"],
        ),
        (
            lambda a: a.put_user("x", password="", password_hash=""),
            "bad_request",
            "both_password_and_password_hash_are_provided",
        ),
        (
            lambda a: a.put_user("x", password_hash="!!!"),
            "bad_request",
            ["not_base64", "!!!"],
        ),
        (
            lambda a: a.set_user_limit("guest", "max-nope", 2),
            "bad_request",
            'Unrecognised terms [{<<"max-nope">>,2}] in user-limits',
        ),
        (
            lambda a: a.set_user_limit("guest", "max-channels", "x"),
            "bad_request",
            'max-channels should be a number, actually was <<"x">>',
        ),
        (
            lambda a: a.set_vhost_limit("/", "max-nope", 2),
            "bad_request",
            'Validation failed\n\nUnrecognised terms [{<<"max-nope">>,2}] in limits\n',
        ),
    ],
)
def test_what_can_not_be_done_is_told_in_rabbitmqs_words(
    admin: Admin, act: Callable[[Admin], object], kind: str, reason: object
) -> None:
    assert failing(lambda: act(admin)) == (kind, reason)


def test_a_bad_pattern_changes_nothing(admin: Admin) -> None:
    assert failing(lambda: admin.set_permissions("guest", "/", "(", "", ""))[0] == "bad_request"
    assert admin.permission("guest", "/").configure == ".*"  # type: ignore[union-attr]
