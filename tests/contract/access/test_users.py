"""Users: who may log in, with which password, and what becomes of them when they are deleted."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.wire.raw import greet, start_ok
from tests.support.brokers import TestBroker
from tests.support.wire import Channel, Closed, Connection
from tests.support.wire_frames import Wire

Connect = Callable[..., Connection]
Name = Callable[[str], str]
REFUSED = (
    "connection",
    403,
    "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the"
    " broker logfile.",
    0,
    0,
)


@pytest.fixture
def enter(connect: Connect, vhost: str, user: str, broker: TestBroker) -> Callable[[str], Channel]:
    """Logs the user in with a password."""
    broker.set_permissions(user, vhost)

    def log_in(password: str) -> Channel:
        return connect(vhost=vhost, user=user, password=password).channel()

    return log_in


Enter = Callable[[str], Channel]


def refused(enter: Enter, password: str) -> bool:
    with pytest.raises(Closed) as caught:
        enter(password)
    return caught.value.args == REFUSED


def salted(algorithm: str, password: str) -> str:
    salt = b"salt"
    digest = hashlib.new(algorithm, salt + password.encode()).digest()
    return base64.b64encode(salt + digest).decode()


def test_a_user_logs_in_with_the_password(enter: Enter, user: str) -> None:
    enter(user).sync()
    assert refused(enter, "another")


def test_a_password_may_have_any_characters(enter: Enter, broker: TestBroker, user: str) -> None:
    broker.add_user(user, "pässwörd ☂")
    enter("pässwörd ☂").sync()


def test_a_changed_password_replaces_the_old_one(
    enter: Enter, broker: TestBroker, user: str
) -> None:
    broker.add_user(user, "new")
    enter("new").sync()
    assert refused(enter, user)


def test_a_changed_password_leaves_open_connections_alone(
    enter: Enter, broker: TestBroker, user: str
) -> None:
    channel = enter(user)
    broker.add_user(user, "new")
    channel.sync()
    channel.connection.channel().sync()


@pytest.mark.parametrize("algorithm", ["sha256", "sha512", "md5"])
def test_a_user_comes_with_a_hash_from_definitions(
    enter: Enter, broker: TestBroker, user: str, algorithm: str
) -> None:
    hashing = f"rabbit_password_hashing_{algorithm}"
    password_hash = salted(algorithm, "sesame")
    broker.add_user(user, None, password_hash=password_hash, hashing_algorithm=hashing)
    enter("sesame").sync()
    assert refused(enter, "another")


@pytest.mark.parametrize("password_hash", ["", base64.b64encode(b"abc").decode()])
def test_nobody_logs_in_without_a_hash_to_compare_with(
    enter: Enter, broker: TestBroker, user: str, password_hash: str
) -> None:
    broker.add_user(user, None, password_hash=password_hash)
    assert refused(enter, user)


def test_nobody_logs_in_with_a_blank_password(broker: TestBroker, user: str) -> None:
    broker.add_user(user, "")
    wire = Wire(broker.host, broker.port)
    greet(wire)
    wire.send(start_ok(f"\0{user}\0".encode()))
    assert wire.read().method.reply_code == 403
    wire.close()


@pytest.fixture
def doomed(broker: TestBroker, connect: Connect, vhost: str, name: Name) -> Connection:
    """A connection of a user who is deleted in the test."""
    user = name("doomed")
    broker.add_user(user, user)
    broker.set_permissions(user, vhost)
    connection = connect(vhost=vhost, user=user, password=user)
    connection.user = user  # type: ignore[attr-defined]
    return connection


def test_a_deleted_users_connections_are_closed(broker: TestBroker, doomed: Connection) -> None:
    user = doomed.user  # type: ignore[attr-defined]
    doomed.channel()
    broker.delete_user(user)
    text = f"CONNECTION_FORCED - user '{user}' is deleted"
    assert doomed.expect_closed().args == ("connection", 320, text, 0, 0)


def test_a_deleted_user_does_not_come_back(
    broker: TestBroker, connect: Connect, vhost: str, name: Name
) -> None:
    user = name("user")
    broker.add_user(user, user)
    broker.set_permissions(user, vhost)
    broker.delete_user(user)
    with pytest.raises(Closed) as caught:
        connect(vhost=vhost, user=user, password=user)
    assert caught.value.args == REFUSED


def test_a_user_made_anew_has_none_of_the_old_permissions(
    broker: TestBroker, connect: Connect, vhost: str, name: Name
) -> None:
    user = name("user")
    broker.add_user(user, user)
    broker.set_permissions(user, vhost)
    broker.delete_user(user)
    broker.add_user(user, user)
    try:
        with pytest.raises(Closed, match="access to vhost"):
            connect(vhost=vhost, user=user, password=user)
    finally:
        broker.delete_user(user)


def test_other_users_stay_when_one_is_deleted(
    broker: TestBroker, enter: Enter, user: str, doomed: Connection
) -> None:
    channel = enter(user)
    broker.delete_user(doomed.user)  # type: ignore[attr-defined]
    doomed.expect_closed()
    channel.sync()


def test_messages_carry_the_name_of_their_user(enter: Enter, user: str) -> None:
    channel = enter(user)
    queue = channel.declare().queue
    channel.publish(queue, b"hello", user_id=user)
    message = channel.get(queue)
    assert message is not None
    assert message.properties.user_id == user


def test_and_no_other_name(enter: Enter, user: str) -> None:
    channel = enter(user)
    channel.publish("nowhere", b"hello", user_id="guest")
    text = (
        f"PRECONDITION_FAILED - user_id property set to 'guest' but authenticated user was '{user}'"
    )
    assert channel.expect_closed().args == ("channel", 406, text, 60, 40)


def test_an_impersonator_may_send_any_name(enter: Enter, broker: TestBroker, user: str) -> None:
    broker.add_user(user, user, "impersonator")
    channel = enter(user)
    queue = channel.declare().queue
    channel.publish(queue, b"hello", user_id="anybody")
    message = channel.get(queue)
    assert message is not None
    assert message.properties.user_id == "anybody"


@pytest.mark.parametrize("tags", ["administrator", "management", "impersonators"])
def test_other_tags_do_not_allow_it(enter: Enter, broker: TestBroker, user: str, tags: str) -> None:
    broker.add_user(user, user, tags)
    channel = enter(user)
    channel.publish("nowhere", b"hello", user_id="anybody")
    assert channel.expect_closed().code == 406


def test_a_tag_does_not_count_before_the_next_login(
    enter: Enter, broker: TestBroker, user: str
) -> None:
    channel = enter(user)
    broker.add_user(user, user, "impersonator")
    channel.publish("nowhere", b"hello", user_id="anybody")
    assert channel.expect_closed().code == 406


def test_tags_give_no_permissions(
    broker: TestBroker, allowed: Callable[..., Channel], user: str, name: Name
) -> None:
    broker.add_user(user, user, "administrator")
    assert allowed().refused(spec.Queue.Declare(queue=name("queue"))).code == 403


def test_a_new_secret_is_accepted_and_the_password_stays(enter: Enter, user: str) -> None:
    connection = enter(user).connection
    connection.wire.send_method(0, spec.Connection.UpdateSecret("another", "it is time"))
    connection.expect(spec.Connection.UpdateSecretOk)
    enter(user).sync()
    assert refused(enter, "another")
