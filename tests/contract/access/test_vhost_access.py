"""Which virtual hosts a user may open."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.brokers import TestBroker
from tests.support.wire import Channel, Closed, Connection

Connect = Callable[..., Connection]
Name = Callable[[str], str]


def opening_refused(connect: Connect, vhost: str, user: str) -> tuple[object, ...]:
    with pytest.raises(Closed) as caught:
        connect(vhost=vhost, user=user, password=user)
    return caught.value.args


def test_a_user_without_permissions_in_a_virtual_host_can_not_open_it(
    connect: Connect, vhost: str, user: str
) -> None:
    text = f"NOT_ALLOWED - access to vhost '{vhost}' refused for user '{user}'"
    assert opening_refused(connect, vhost, user) == ("connection", 530, text, 10, 40)


def test_permissions_that_match_nothing_are_enough_to_open_it(
    broker: TestBroker, connect: Connect, vhost: str, user: str
) -> None:
    broker.set_permissions(user, vhost, "", "", "")
    connect(vhost=vhost, user=user, password=user).channel().sync()


def test_permissions_in_another_virtual_host_are_not(
    broker: TestBroker, connect: Connect, vhost: str, user: str
) -> None:
    broker.set_permissions(user, "/")
    assert opening_refused(connect, vhost, user)[1] == 530


def test_topic_permissions_are_not(
    broker: TestBroker, connect: Connect, vhost: str, user: str
) -> None:
    broker.set_topic_permissions(user, vhost, "amq.topic", ".*", ".*")
    assert opening_refused(connect, vhost, user)[1] == 530


def test_nor_is_being_an_administrator(
    broker: TestBroker, connect: Connect, vhost: str, user: str
) -> None:
    broker.add_user(user, user, "administrator")
    assert opening_refused(connect, vhost, user)[1] == 530


def test_a_virtual_host_that_is_not_there_is_named_to_everybody(
    connect: Connect, user: str, name: Name
) -> None:
    vhost = name("missing")
    text = f"NOT_ALLOWED - vhost {vhost} not found"
    assert opening_refused(connect, vhost, user) == ("connection", 530, text, 10, 40)


def test_a_cleared_permission_closes_the_door_behind_who_is_in(
    broker: TestBroker, allowed: Callable[..., Channel], connect: Connect, vhost: str, user: str
) -> None:
    channel = allowed()
    broker.clear_permissions(user, vhost)
    assert opening_refused(connect, vhost, user)[1] == 530
    channel.sync()


def test_a_virtual_host_made_anew_knows_no_old_permissions(
    broker: TestBroker, connect: Connect, user: str, name: Name
) -> None:
    vhost = name("vhost")
    broker.add_vhost(vhost)
    broker.set_permissions(user, vhost)
    broker.delete_vhost(vhost)
    broker.add_vhost(vhost)
    try:
        assert opening_refused(connect, vhost, user)[1] == 530
    finally:
        broker.delete_vhost(vhost)
