"""Permissions: what may be configured, written to and read from, by patterns of names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pika import spec

from tests.support.brokers import TestBroker
from tests.support.wire import Channel, Closed, Connection

Allowed = Callable[..., Channel]
Name = Callable[[str], str]


def refusal(kind: str, name: str, vhost: str, user: str) -> str:
    return (
        f"ACCESS_REFUSED - access to {kind} '{name}' in vhost '{vhost}' refused for user '{user}'"
    )


@pytest.fixture
def queue(admin: Channel, name: Name) -> str:
    return admin.declare(name("queue")).queue


@pytest.fixture
def exchange(admin: Channel, name: Name) -> str:
    exchange = name("exchange")
    admin.declare_exchange(exchange)
    return exchange


def test_without_permission_to_configure_no_queue_is_declared(
    allowed: Allowed, vhost: str, user: str
) -> None:
    channel = allowed(write=".*", read=".*")
    closed = channel.refused(spec.Queue.Declare(queue="orders"))
    assert closed.args == ("channel", 403, refusal("queue", "orders", vhost, user), 50, 10)


def test_nor_is_one_that_is_there_already(allowed: Allowed, queue: str) -> None:
    assert allowed().refused(spec.Queue.Declare(queue=queue)).code == 403


def test_whoever_is_in_may_look_whether_a_queue_is_there(allowed: Allowed, queue: str) -> None:
    assert allowed().declare(queue, passive=True).queue == queue


def test_whoever_is_in_may_look_whether_an_exchange_is_there(
    allowed: Allowed, exchange: str
) -> None:
    allowed().declare_exchange(exchange, passive=True)


def test_permission_is_asked_for_before_a_queue_is_compared(allowed: Allowed, queue: str) -> None:
    assert allowed().refused(spec.Queue.Declare(queue=queue, durable=True)).code == 403


def test_a_reserved_name_is_refused_before_permission_is_asked_for(allowed: Allowed) -> None:
    closed = allowed().refused(spec.Queue.Declare(queue="amq.mine"))
    assert closed.text == "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"


def test_a_server_named_queue_needs_permission_for_its_made_up_name(
    allowed: Allowed, vhost: str, user: str
) -> None:
    closed = allowed(configure="^orders").refused(spec.Queue.Declare(queue=""))
    assert closed.code == 403
    assert closed.text.startswith("ACCESS_REFUSED - access to queue 'amq.gen-")
    assert closed.text.endswith(f"' in vhost '{vhost}' refused for user '{user}'")


def test_a_pattern_for_made_up_names_allows_server_named_queues(allowed: Allowed) -> None:
    assert allowed(configure=r"^amq\.gen.*").declare().queue.startswith("amq.gen-")


def test_a_queue_is_deleted_by_who_may_configure_it(
    allowed: Allowed, queue: str, vhost: str, user: str
) -> None:
    closed = allowed(write=".*", read=".*").refused(spec.Queue.Delete(queue=queue))
    assert closed.args == ("channel", 403, refusal("queue", queue, vhost, user), 50, 40)
    allowed(configure=queue).call(spec.Queue.Delete(queue=queue))


def test_a_queue_that_is_not_there_is_not_deleted_either(allowed: Allowed, name: Name) -> None:
    assert allowed().refused(spec.Queue.Delete(queue=name("missing"))).code == 403


def test_an_exchange_is_declared_by_who_may_configure_it(
    allowed: Allowed, name: Name, vhost: str, user: str
) -> None:
    exchange = name("exchange")
    method = spec.Exchange.Declare(exchange=exchange, type="direct")
    closed = allowed(write=".*", read=".*").refused(method)
    assert closed.args == ("channel", 403, refusal("exchange", exchange, vhost, user), 40, 10)
    allowed(configure=exchange).call(method)


def test_permission_for_an_exchange_is_asked_for_before_its_reserved_name(
    allowed: Allowed, vhost: str, user: str
) -> None:
    closed = allowed().refused(spec.Exchange.Declare(exchange="amq.mine", type="direct"))
    assert closed.text == refusal("exchange", "amq.mine", vhost, user)


def test_an_exchange_is_deleted_by_who_may_configure_it(
    allowed: Allowed, exchange: str, vhost: str, user: str
) -> None:
    method = spec.Exchange.Delete(exchange=exchange)
    closed = allowed(write=".*", read=".*").refused(method)
    assert closed.args == ("channel", 403, refusal("exchange", exchange, vhost, user), 40, 20)
    allowed(configure=exchange).call(method)


# -- binding ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("method", "ids"), [(spec.Queue.Bind, (50, 20)), (spec.Queue.Unbind, (50, 50))]
)
def test_a_queue_is_bound_by_who_may_write_to_it(
    allowed: Allowed, queue: str, vhost: str, user: str, method: Any, ids: tuple[int, int]
) -> None:
    channel = allowed(configure=".*", read=".*")
    closed = channel.refused(method(queue=queue, exchange="amq.direct", routing_key="k"))
    assert closed.args == ("channel", 403, refusal("queue", queue, vhost, user), *ids)


@pytest.mark.parametrize("method", [spec.Queue.Bind, spec.Queue.Unbind])
def test_and_read_from_the_exchange(
    allowed: Allowed, queue: str, vhost: str, user: str, method: Any
) -> None:
    channel = allowed(configure=".*", write=".*")
    closed = channel.refused(method(queue=queue, exchange="amq.direct", routing_key="k"))
    assert closed.text == refusal("exchange", "amq.direct", vhost, user)


def test_who_may_write_to_the_queue_and_read_from_the_exchange_may_bind(
    allowed: Allowed, queue: str
) -> None:
    channel = allowed(write=f"^{queue}$", read=r"^amq\.direct$")
    channel.bind(queue, "amq.direct", "k")
    channel.unbind(queue, "amq.direct", "k")


@pytest.mark.parametrize(
    ("method", "ids"), [(spec.Exchange.Bind, (40, 30)), (spec.Exchange.Unbind, (40, 40))]
)
def test_an_exchange_is_bound_by_who_may_write_to_it_and_read_from_the_other(
    allowed: Allowed, exchange: str, vhost: str, user: str, method: Any, ids: tuple[int, int]
) -> None:
    bind = method(destination=exchange, source="amq.direct", routing_key="k")
    closed = allowed(configure=".*", read=".*").refused(bind)
    assert closed.args == ("channel", 403, refusal("exchange", exchange, vhost, user), *ids)
    closed = allowed(configure=".*", write=".*").refused(bind)
    assert closed.args == ("channel", 403, refusal("exchange", "amq.direct", vhost, user), *ids)
    allowed(write=exchange, read=r"amq\.direct").call(bind)


def test_the_default_exchange_is_protected_after_the_destinations_permission(
    allowed: Allowed, queue: str, vhost: str, user: str
) -> None:
    bind = spec.Queue.Bind(queue=queue, exchange="", routing_key="k")
    assert allowed().refused(bind).text == refusal("queue", queue, vhost, user)
    assert "default exchange" in allowed(write=queue).refused(bind).text


def test_the_default_exchange_as_a_destination_is_called_amq_default(
    allowed: Allowed, vhost: str, user: str
) -> None:
    closed = allowed().refused(spec.Exchange.Bind(destination="", source="amq.direct"))
    assert closed.text == refusal("exchange", "amq.default", vhost, user)


# -- dead letters and alternates -------------------------------------------------------------------
def test_a_queue_with_a_dead_letter_exchange_must_be_readable(
    allowed: Allowed, name: Name, vhost: str, user: str
) -> None:
    queue = name("queue")
    arguments = {"x-dead-letter-exchange": "amq.direct"}
    method = spec.Queue.Declare(queue=queue, arguments=arguments)
    closed = allowed(configure=".*", write=".*").refused(method)
    assert closed.args == ("channel", 403, refusal("queue", queue, vhost, user), 50, 10)


def test_and_its_dead_letter_exchange_writable(
    allowed: Allowed, name: Name, vhost: str, user: str
) -> None:
    queue = name("queue")
    arguments = {"x-dead-letter-exchange": "amq.direct"}
    method = spec.Queue.Declare(queue=queue, arguments=arguments)
    closed = allowed(configure=".*", read=".*").refused(method)
    assert closed.text == refusal("exchange", "amq.direct", vhost, user)
    allowed(configure=queue, read=queue, write="amq.direct").call(method)


def test_the_default_exchange_takes_dead_letters_under_its_other_name(
    allowed: Allowed, name: Name, vhost: str, user: str
) -> None:
    method = spec.Queue.Declare(queue=name("queue"), arguments={"x-dead-letter-exchange": ""})
    closed = allowed(configure=".*", read=".*").refused(method)
    assert closed.text == refusal("exchange", "amq.default", vhost, user)


def test_a_queue_that_is_there_is_found_without_permission_for_its_dead_letters(
    admin: Channel, allowed: Allowed, name: Name
) -> None:
    arguments = {"x-dead-letter-exchange": "amq.direct"}
    queue = admin.declare(name("queue"), arguments=arguments).queue
    assert allowed(configure=queue).declare(queue, arguments=arguments).queue == queue


def test_an_exchange_with_an_alternate_must_be_readable_and_the_alternate_writable(
    allowed: Allowed, name: Name, vhost: str, user: str
) -> None:
    exchange = name("exchange")
    method = spec.Exchange.Declare(
        exchange=exchange, type="direct", arguments={"alternate-exchange": "amq.fanout"}
    )
    closed = allowed(configure=".*", write=".*").refused(method)
    assert closed.args == ("channel", 403, refusal("exchange", exchange, vhost, user), 40, 10)
    closed = allowed(configure=".*", read=".*").refused(method)
    assert closed.args == ("channel", 403, refusal("exchange", "amq.fanout", vhost, user), 40, 10)
    allowed(configure=exchange, read=exchange, write="amq.fanout").call(method)


# -- messages --------------------------------------------------------------------------------------
def test_a_message_is_published_by_who_may_write_to_the_exchange(
    allowed: Allowed, exchange: str, vhost: str, user: str
) -> None:
    channel = allowed(configure=".*", read=".*")
    channel.publish("key", b"hello", exchange=exchange)
    text = refusal("exchange", exchange, vhost, user)
    assert channel.expect_closed().args == ("channel", 403, text, 60, 40)


def test_permission_is_asked_for_before_the_exchange_is_looked_for(
    allowed: Allowed, name: Name
) -> None:
    channel = allowed()
    channel.publish("key", b"hello", exchange=name("missing"))
    assert channel.expect_closed().code == 403


def test_the_default_exchange_is_written_to_as_amq_default(
    admin: Channel, allowed: Allowed, queue: str, vhost: str, user: str
) -> None:
    channel = allowed(write=queue)
    channel.publish(queue, b"hello")
    assert channel.expect_closed().text == refusal("exchange", "amq.default", vhost, user)
    channel = allowed(write=r"^amq\.default$")
    channel.publish(queue, b"hello")
    channel.sync()
    assert admin.drain(queue) == [b"hello"]


def test_the_queues_a_message_goes_to_need_no_permission(
    admin: Channel, allowed: Allowed, queue: str, exchange: str
) -> None:
    admin.bind(queue, exchange, "key")
    channel = allowed(write=exchange)
    channel.publish("key", b"hello", exchange=exchange)
    channel.sync()
    assert admin.drain(queue) == [b"hello"]


@pytest.mark.parametrize(
    ("method", "ids"),
    [
        pytest.param(lambda queue: spec.Basic.Get(queue=queue), (60, 70), id="get"),
        pytest.param(lambda queue: spec.Basic.Consume(queue=queue), (60, 20), id="consume"),
        pytest.param(lambda queue: spec.Queue.Purge(queue=queue), (50, 30), id="purge"),
    ],
)
def test_messages_are_taken_by_who_may_read_the_queue(
    allowed: Allowed, queue: str, vhost: str, user: str, method: Any, ids: tuple[int, int]
) -> None:
    closed = allowed(configure=".*", write=".*").refused(method(queue))
    assert closed.args == ("channel", 403, refusal("queue", queue, vhost, user), *ids)
    allowed(read=queue).call(method(queue))


@pytest.mark.parametrize("method", [spec.Basic.Get, spec.Basic.Consume, spec.Queue.Purge])
def test_permission_is_asked_for_before_the_queue_is_looked_for(
    allowed: Allowed, name: Name, method: Any
) -> None:
    assert allowed().refused(method(queue=name("missing"))).code == 403


def test_a_reply_consumer_needs_no_permission(allowed: Allowed) -> None:
    allowed().consume("amq.rabbitmq.reply-to", no_ack=True)


def test_acknowledging_needs_no_permission(
    broker: TestBroker, admin: Channel, allowed: Allowed, queue: str, vhost: str, user: str
) -> None:
    admin.publish(queue, b"hello")
    channel = allowed(read=queue)
    message = channel.get(queue, no_ack=False)
    assert message is not None
    broker.set_permissions(user, vhost, "", "", "")
    channel.ack(message.tag)
    channel.sync()
    assert admin.count(queue) == 0


# -- patterns --------------------------------------------------------------------------------------
def may(channel: Channel, queue: str) -> bool:
    """Does the pattern that the channel's user may configure match the name?"""
    try:
        channel.call(spec.Queue.Delete(queue=queue))
    except Closed as closed:
        assert closed.code == 403, closed
        return False
    return True


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("", "orders", False),
        ("^$", "orders", False),
        ("order", "my-orders", True),  # anywhere in the name
        ("^order", "my-orders", False),
        ("^order$", "orders", False),
        ("^(a|b).*$", "bee", True),
        ("Orders", "orders", False),
        ("(?i)Orders", "orders", True),
        (r"^\d+$", "123", True),
        (r"^\w+$", "größe", False),  # octets, not characters
        ("^.{7}$", "größe", True),
        ("^größe$", "größe", True),
        ("^[[:alpha:]]+$", "orders", True),
        ("^[[:alpha:]]+$", "orders1", False),
        ("^[^[:digit:]]+$", "orders1", False),
        (r"^\Qa.b\E$", "a.b", True),
        (r"^\Qa.b\E$", "a-b", False),
        (r"\Aorders\z", "orders", True),
        ("^(?<word>o).*s$", "orders", True),
        ("^a++b", "aaab", True),
        ("^[]a]+$", "a]", True),
        ("^.*$", "two words", True),
    ],
)
def test_a_pattern_is_searched_for_as_a_perl_regular_expression(
    allowed: Allowed, pattern: str, name: str, matches: bool
) -> None:
    assert may(allowed(configure=pattern), name) == matches


# -- changes ---------------------------------------------------------------------------------------
def test_new_permissions_hold_for_connections_that_are_open(
    broker: TestBroker, allowed: Allowed, vhost: str, user: str, name: Name
) -> None:
    connection = allowed(configure=".*").connection
    broker.set_permissions(user, vhost, "", "", "")
    closed = connection.channel().refused(spec.Queue.Declare(queue=name("queue")))
    assert closed.code == 403
    broker.set_permissions(user, vhost, ".*", "", "")
    connection.channel().declare(name("queue"))


def test_new_permissions_hold_for_publishes(
    broker: TestBroker, admin: Channel, allowed: Allowed, vhost: str, user: str, queue: str
) -> None:
    connection = allowed(write="amq.default").connection
    publisher = connection.channel()
    publisher.publish(queue, b"allowed")
    publisher.sync()
    broker.set_permissions(user, vhost, "", "", "")
    publisher = connection.channel()
    publisher.publish(queue, b"refused")
    assert publisher.expect_closed().code == 403
    assert admin.drain(queue) == [b"allowed"]


def test_without_any_permissions_left_the_connection_stays_and_may_do_nothing(
    broker: TestBroker, allowed: Allowed, vhost: str, user: str, queue: str
) -> None:
    connection = allowed(configure=".*", write=".*", read=".*").connection
    broker.clear_permissions(user, vhost)
    closed = connection.channel().refused(spec.Basic.Get(queue=queue))
    assert closed.args == ("channel", 403, refusal("queue", queue, vhost, user), 60, 70)
    connection.channel().declare(queue, passive=True)


def test_permissions_hold_in_one_virtual_host(
    broker: TestBroker, connect: Callable[..., Connection], user: str, allowed: Allowed, name: Name
) -> None:
    broker.set_permissions(user, "/", "", "", "")
    allowed(configure=".*").declare(name("queue"))
    elsewhere = connect(user=user, password=user).channel()
    assert elsewhere.refused(spec.Queue.Declare(queue=name("queue"))).code == 403
