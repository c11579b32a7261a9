"""Topic permissions: routing keys that may be published with, or bound, by exchange."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.support.brokers import TestBroker
from tests.support.wire import Channel

Allowed = Callable[..., Channel]
Name = Callable[[str], str]
TOPIC = "amq.topic"


def refusal(key: str, exchange: str, vhost: str, user: str) -> str:
    return (
        f"ACCESS_REFUSED - access to topic '{key}' in exchange '{exchange}' in vhost"
        f" '{vhost}' refused for user '{user}'"
    )


@pytest.fixture
def topics(
    broker: TestBroker, allowed: Allowed, vhost: str, user: str
) -> Callable[[str, str], Channel]:
    """Gives the user topic permissions; returns a channel on which all else is allowed."""

    def channel(write: str = "", read: str = "", exchange: str = TOPIC) -> Channel:
        broker.set_topic_permissions(user, vhost, exchange, write, read)
        return allowed(".*", ".*", ".*")

    return channel


@pytest.fixture
def queue(admin: Channel, name: Name) -> str:
    queue = admin.declare(name("queue")).queue
    admin.bind(queue, TOPIC, "#")
    return queue


Topics = Callable[..., Channel]


def test_a_key_that_matches_is_published(admin: Channel, topics: Topics, queue: str) -> None:
    channel = topics(write=r"^orders\.")
    channel.publish("orders.new", b"hello", exchange=TOPIC)
    channel.sync()
    assert admin.drain(queue) == [b"hello"]


def test_a_key_that_does_not_match_is_refused(topics: Topics, vhost: str, user: str) -> None:
    channel = topics(write=r"^orders\.", read=".*")
    channel.publish("bills.new", b"hello", exchange=TOPIC)
    text = refusal("bills.new", TOPIC, vhost, user)
    assert channel.expect_closed().args == ("channel", 403, text, 60, 40)


def test_each_key_is_looked_at(admin: Channel, topics: Topics, queue: str) -> None:
    channel = topics(write=r"^orders\.")
    channel.publish("orders.new", b"allowed", exchange=TOPIC)
    channel.publish("bills.new", b"refused", exchange=TOPIC)
    assert channel.expect_closed().code == 403
    assert admin.drain(queue) == [b"allowed"]


def test_the_empty_pattern_allows_the_empty_key_only(topics: Topics) -> None:
    channel = topics(write="")
    channel.publish("", b"hello", exchange=TOPIC)
    channel.sync()
    channel.publish("key", b"hello", exchange=TOPIC)
    assert channel.expect_closed().code == 403


def test_keys_of_copies_are_not_looked_at(admin: Channel, topics: Topics, queue: str) -> None:
    channel = topics(write="^orders$")
    channel.publish("orders", b"hello", exchange=TOPIC, headers={"CC": ["bills"]})
    channel.sync()
    assert admin.drain(queue) == [b"hello"]


def test_without_topic_permissions_for_the_exchange_every_key_is_allowed(
    topics: Topics, admin: Channel, queue: str
) -> None:
    channel = topics(exchange="another")
    channel.publish("key", b"hello", exchange=TOPIC)
    channel.sync()
    assert admin.drain(queue) == [b"hello"]


@pytest.mark.parametrize("exchange", ["amq.direct", "amq.fanout", "amq.headers", ""])
def test_they_mean_nothing_for_exchanges_of_other_types(topics: Topics, exchange: str) -> None:
    channel = topics(exchange=exchange)
    channel.publish("key", b"hello", exchange=exchange)
    channel.sync()


def test_permission_for_the_exchange_is_needed_as_well(
    broker: TestBroker, allowed: Allowed, vhost: str, user: str
) -> None:
    broker.set_topic_permissions(user, vhost, TOPIC, ".*", ".*")
    channel = allowed()
    channel.publish("key", b"hello", exchange=TOPIC)
    assert "access to exchange 'amq.topic'" in channel.expect_closed().text


def test_a_queue_is_bound_with_keys_that_may_be_read(
    topics: Topics, queue: str, vhost: str, user: str
) -> None:
    channel = topics(write=".*", read=r"^orders\.")
    channel.bind(queue, TOPIC, "orders.#")
    closed = channel.refused(spec.Queue.Bind(queue=queue, exchange=TOPIC, routing_key="bills.#"))
    assert closed.args == ("channel", 403, refusal("bills.#", TOPIC, vhost, user), 50, 20)


def test_and_unbound_with_them(topics: Topics, queue: str, vhost: str, user: str) -> None:
    channel = topics(write=".*", read=r"^orders\.")
    closed = channel.refused(spec.Queue.Unbind(queue=queue, exchange=TOPIC, routing_key="#"))
    assert closed.args == ("channel", 403, refusal("#", TOPIC, vhost, user), 50, 50)


def test_an_exchange_is_bound_with_keys_that_may_be_read(
    topics: Topics, vhost: str, user: str
) -> None:
    channel = topics(write=".*", read=r"^orders\.")
    bind = spec.Exchange.Bind(destination="amq.fanout", source=TOPIC, routing_key="#")
    closed = channel.refused(bind)
    assert closed.args == ("channel", 403, refusal("#", TOPIC, vhost, user), 40, 30)


def test_consuming_looks_at_no_keys(topics: Topics, queue: str) -> None:
    topics(read="^never$").consume(queue)


@pytest.mark.parametrize(
    ("pattern", "key"),
    [
        ("^{username}-{vhost}$", "{user}-{vhost}"),
        ("^{username}.{username}$", "{user}.{user}"),
        (r"^\{client_id\}$", "{{client_id}}"),  # AMQP clients have none
    ],
)
def test_names_stand_in_patterns(
    topics: Topics, vhost: str, user: str, pattern: str, key: str
) -> None:
    channel = topics(write=pattern)
    channel.publish(key.format(user=user, vhost=vhost), b"hello", exchange=TOPIC)
    channel.sync()
    channel.publish("somebody.else", b"hello", exchange=TOPIC)
    assert channel.expect_closed().code == 403


def test_new_topic_permissions_hold_for_connections_that_are_open(
    broker: TestBroker, topics: Topics, vhost: str, user: str
) -> None:
    connection = topics(write=".*").connection
    broker.set_topic_permissions(user, vhost, TOPIC, "^orders$", "")
    channel = connection.channel()
    channel.publish("bills", b"hello", exchange=TOPIC)
    assert channel.expect_closed().text == refusal("bills", TOPIC, vhost, user)
