"""Limits: connections and channels a user, connections and queues a virtual host."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pika import spec

from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.wire import Channel, Closed, Connection

Connect = Callable[..., Connection]
Name = Callable[[str], str]


@pytest.fixture
def vhost(broker: TestBroker, user: str, name: Name) -> Iterator[str]:
    """A virtual host of the test's own: connections in it are counted."""
    vhost = name("limited")
    broker.add_vhost(vhost)
    broker.set_permissions(user, vhost)
    yield vhost
    broker.delete_vhost(vhost)


@pytest.fixture
def enter(connect: Connect, vhost: str, user: str) -> Callable[[], Connection]:
    """Opens a connection of the user's in the virtual host."""
    return lambda: connect(vhost=vhost, user=user, password=user)


Enter = Callable[[], Connection]


def refused(enter: Enter) -> tuple[object, ...] | None:
    """What is said to one connection more; None if it is let in."""
    try:
        enter().close()
    except Closed as closed:
        return closed.args
    return None


def test_a_virtual_host_takes_so_many_connections(
    broker: TestBroker, enter: Enter, vhost: str, user: str
) -> None:
    broker.set_limit("vhost", vhost, "max-connections", 2)
    enter(), enter()
    text = (
        f"NOT_ALLOWED - access to vhost '{vhost}' refused for user '{user}': connection limit (2)"
        " is reached"
    )
    assert eventually(lambda: refused(enter)) == ("connection", 530, text, 10, 40)


def test_a_user_has_so_many_connections(
    broker: TestBroker, enter: Enter, vhost: str, user: str
) -> None:
    broker.set_limit("user", user, "max-connections", 1)
    enter()
    text = (
        f"NOT_ALLOWED - connection refused for user '{user}': user connection limit (1) is reached"
    )
    assert eventually(lambda: refused(enter)) == ("connection", 530, text, 10, 40)


def test_a_closed_connection_makes_room(broker: TestBroker, enter: Enter, user: str) -> None:
    broker.set_limit("user", user, "max-connections", 1)
    first = enter()
    eventually(lambda: refused(enter))
    first.close()
    eventually(lambda: refused(enter) is None)


@pytest.mark.parametrize("kind", ["user", "vhost"])
def test_a_limit_of_none_lets_nobody_in(
    broker: TestBroker, enter: Enter, vhost: str, user: str, kind: str
) -> None:
    broker.set_limit(kind, {"user": user, "vhost": vhost}[kind], "max-connections", 0)
    said = refused(enter)
    assert said is not None
    assert "limit (0) is reached" in str(said[2])


@pytest.mark.parametrize("kind", ["user", "vhost"])
def test_a_negative_limit_is_none(
    broker: TestBroker, enter: Enter, vhost: str, user: str, kind: str
) -> None:
    name = {"user": user, "vhost": vhost}[kind]
    broker.set_limit(kind, name, "max-connections", 0)
    broker.set_limit(kind, name, "max-connections", -1)
    assert refused(enter) is None


def test_a_lower_limit_leaves_open_connections_alone(
    broker: TestBroker, enter: Enter, vhost: str
) -> None:
    channel = enter().channel()
    broker.set_limit("vhost", vhost, "max-connections", 0)
    channel.sync()


def test_the_virtual_hosts_limit_is_looked_at_before_the_users_permission(
    broker: TestBroker, enter: Enter, vhost: str, user: str
) -> None:
    broker.clear_permissions(user, vhost)
    broker.set_limit("user", user, "max-connections", 0)
    said = refused(enter)
    assert said is not None
    assert "user connection limit (0)" in str(said[2])
    broker.set_limit("vhost", vhost, "max-connections", 0)
    said = refused(enter)
    assert said is not None
    assert "': connection limit (0)" in str(said[2])


def test_a_virtual_host_has_so_many_queues(broker: TestBroker, enter: Enter, vhost: str) -> None:
    broker.set_limit("vhost", vhost, "max-queues", 1)
    channel = enter().channel()
    channel.declare("first")
    closed = channel.refused(spec.Queue.Declare(queue="second"))
    text = (
        "PRECONDITION_FAILED - cannot declare queue 'second': queue limit in vhost"
        f" '{vhost}' (1) is reached"
    )
    assert closed.args == ("channel", 406, text, 50, 10)


def test_a_queue_that_is_there_is_found_whatever_the_limit(
    broker: TestBroker, enter: Enter, vhost: str
) -> None:
    channel = enter().channel()
    channel.declare("first")
    broker.set_limit("vhost", vhost, "max-queues", 0)
    channel.declare("first")


def test_a_deleted_queue_makes_room(broker: TestBroker, enter: Enter, vhost: str) -> None:
    broker.set_limit("vhost", vhost, "max-queues", 1)
    channel = enter().channel()
    channel.declare("first")
    channel.call(spec.Queue.Delete(queue="first"))
    channel.declare("second")


def test_the_queue_limit_is_looked_at_before_the_arguments(
    broker: TestBroker, enter: Enter, vhost: str
) -> None:
    broker.set_limit("vhost", vhost, "max-queues", 0)
    arguments = {"x-dead-letter-exchange": 5, "x-message-ttl": "soon"}
    closed = enter().channel().refused(spec.Queue.Declare(queue="queue", arguments=arguments))
    assert "queue limit in vhost" in closed.text


def open_channel(connection: Connection) -> tuple[object, ...] | None:
    try:
        connection.channel()
    except Closed as closed:
        return closed.args
    return None


def test_a_user_has_so_many_channels(broker: TestBroker, enter: Enter, user: str) -> None:
    broker.set_limit("user", user, "max-channels", 2)
    connection = enter()
    connection.channel()
    enter().channel()
    text = (
        f"NOT_ALLOWED - number of channels opened for user '{user}' has reached the maximum"
        " allowed user limit of (2)"
    )
    assert eventually(lambda: open_channel(enter())) == ("connection", 530, text, 0, 0)


def test_a_closed_channel_makes_room(broker: TestBroker, enter: Enter, user: str) -> None:
    broker.set_limit("user", user, "max-channels", 1)
    channel: Channel = enter().channel()
    eventually(lambda: open_channel(enter()))
    channel.close()
    eventually(lambda: open_channel(enter()) is None)


def test_a_limit_of_no_channels(broker: TestBroker, enter: Enter, user: str) -> None:
    broker.set_limit("user", user, "max-channels", 0)
    said = open_channel(enter())
    assert said is not None
    assert "user limit of (0)" in str(said[2])
