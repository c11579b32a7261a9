"""The user-id property, if it is there, must be the name of the connection's user."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.wire import Channel


@pytest.fixture
def queue(channel: Channel, name: Callable) -> str:
    return channel.declare(name("queue")).queue


def test_the_users_own_name_is_accepted_and_delivered(channel: Channel, queue: str) -> None:
    channel.publish(queue, b"hello", user_id="guest")
    message = channel.get(queue)
    assert message is not None
    assert message.properties.user_id == "guest"


def test_none_is_added_where_none_was_sent(channel: Channel, queue: str) -> None:
    channel.publish(queue, b"hello")
    message = channel.get(queue)
    assert message is not None
    assert message.properties.user_id is None


@pytest.mark.parametrize("user_id", ["bob", "", "Guest", "guest ", "гость"])
def test_another_name_is_refused(channel: Channel, queue: str, user_id: str) -> None:
    channel.publish(queue, b"hello", user_id=user_id)
    text = (
        f"PRECONDITION_FAILED - user_id property set to '{user_id}'"
        " but authenticated user was 'guest'"
    )
    assert channel.expect_closed().args == ("channel", 406, text, 60, 40)
    assert channel.connection.channel().drain(queue) == []


def test_it_is_refused_even_if_no_queue_would_get_the_message(channel: Channel) -> None:
    channel.publish("nowhere", b"hello", user_id="bob")
    assert channel.expect_closed().code == 406


def test_it_is_looked_at_before_the_expiration(channel: Channel) -> None:
    channel.publish("nowhere", b"hello", user_id="bob", expiration="soon")
    assert "user_id property" in channel.expect_closed().text


def test_the_exchange_is_looked_at_first(channel: Channel, name: Callable) -> None:
    channel.publish("key", b"hello", exchange=name("missing"), user_id="bob")
    assert channel.expect_closed().code == 404
