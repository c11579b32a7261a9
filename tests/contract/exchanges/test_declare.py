"""Declaring exchanges: what is made, what is compared, what is refused; auto-delete, internal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pika import spec

from tests.support.brokers import TestBroker
from tests.support.wire import Channel, Closed, Connection

TYPES = ["direct", "fanout", "topic", "headers", "x-consistent-hash"]


def _exists(channel: Channel, exchange: str) -> bool:
    asking = channel.connection.channel()  # a channel of its own: "no" closes it
    try:
        asking.call(spec.Exchange.Declare(exchange=exchange, passive=True))
    except Closed as refusal:
        text = f"NOT_FOUND - no exchange '{exchange}' in vhost '/'"
        assert refusal.args == ("channel", 404, text, 40, 10)
        return False
    return True


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("durable", [False, True])
def test_every_type_can_be_declared_and_declared_again(
    channel: Channel, name: Callable, type: str, durable: bool
) -> None:
    exchange = name("exchange")
    for _ in range(2):
        assert channel.declare_exchange(exchange, type, durable=durable).NAME
    assert _exists(channel, exchange)


@pytest.mark.parametrize(
    ("exchange", "type"),
    [
        ("amq.direct", "direct"),
        ("amq.fanout", "fanout"),
        ("amq.topic", "topic"),
        ("amq.headers", "headers"),
        ("amq.match", "headers"),
    ],
)
def test_predeclared_exchanges_are_durable_and_may_be_declared_as_they_are(
    channel: Channel, exchange: str, type: str
) -> None:
    channel.declare_exchange(exchange, type, durable=True)
    refusal = channel.refused(spec.Exchange.Declare(exchange=exchange, type=type))
    text = (
        f"PRECONDITION_FAILED - inequivalent arg 'durable' for exchange '{exchange}' in vhost '/':"
        " received 'false' but current is 'true'"
    )
    assert refusal.args == ("channel", 406, text, 40, 10)


def test_the_trace_exchange_is_an_internal_topic_exchange(channel: Channel) -> None:
    channel.declare_exchange("amq.rabbitmq.trace", "topic", durable=True, internal=True)
    channel.publish("key", exchange="amq.rabbitmq.trace")
    assert channel.expect_closed().code == 403


@pytest.mark.parametrize("exchange", ["amq.mine", "amq.", "amq.gen-x"])
def test_names_that_begin_with_amq_dot_are_reserved(channel: Channel, exchange: str) -> None:
    refusal = channel.refused(spec.Exchange.Declare(exchange=exchange, type="direct"))
    text = f"ACCESS_REFUSED - exchange name '{exchange}' contains reserved prefix 'amq.*'"
    assert refusal.args == ("channel", 403, text, 40, 10)


@pytest.mark.parametrize("word", ["amq", "amqp.x", "AMQ.x", "x.amq.y", "with space", "ключ", "a/b"])
def test_other_names_are_free(channel: Channel, name: Callable, word: str) -> None:
    exchange = name(word)
    channel.declare_exchange(exchange, "fanout")
    assert _exists(channel, exchange)


def test_names_of_255_octets_are_fine(channel: Channel, name: Callable) -> None:
    exchange = name("x" * 246)
    assert len(exchange) == 255
    channel.declare_exchange(exchange)
    assert _exists(channel, exchange)


def test_line_ends_are_taken_out_of_names(channel: Channel, name: Callable) -> None:
    exchange = name("exchange")
    channel.declare_exchange(f"{exchange[:3]}\r\n{exchange[3:]}\n")
    assert _exists(channel, exchange)


def test_an_exchange_and_a_queue_may_have_the_same_name(channel: Channel, name: Callable) -> None:
    both = name("both")
    channel.declare(both)
    channel.declare_exchange(both, "fanout")
    channel.bind(both, both)
    channel.publish("", b"hello", exchange=both)
    assert channel.drain(both) == [b"hello"]


def test_each_vhost_has_its_own_exchanges(
    broker: TestBroker, connect: Callable[..., Connection], channel: Channel, name: Callable
) -> None:
    exchange, vhost = name("exchange"), name("vhost")
    channel.declare_exchange(exchange, "fanout")
    broker.add_vhost(vhost)
    try:
        other = connect(vhost=vhost).channel()
        other.declare_exchange("amq.topic", "topic", durable=True)
        other.publish("key", b"hello", exchange=exchange)
        text = f"NOT_FOUND - no exchange '{exchange}' in vhost '{vhost}'"
        assert other.expect_closed().args == ("channel", 404, text, 60, 40)
        other.connection.channel().declare_exchange(exchange, "topic")
    finally:
        broker.delete_vhost(vhost)


# -- passive ---------------------------------------------------------------------------------
def test_a_passive_declaration_of_a_missing_exchange_is_refused(
    channel: Channel, name: Callable
) -> None:
    exchange = name("missing")
    refusal = channel.refused(spec.Exchange.Declare(exchange=exchange, passive=True))
    text = f"NOT_FOUND - no exchange '{exchange}' in vhost '/'"
    assert refusal.args == ("channel", 404, text, 40, 10)
    assert not _exists(channel, exchange)


def test_a_passive_declaration_of_a_reserved_name_only_looks(channel: Channel) -> None:
    refusal = channel.refused(spec.Exchange.Declare(exchange="amq.mine", passive=True))
    text = "NOT_FOUND - no exchange 'amq.mine' in vhost '/'"
    assert refusal.args == ("channel", 404, text, 40, 10)


@pytest.mark.parametrize(
    "options",
    [
        {"type": "fanout"},
        {"type": ""},
        {"type": "no-such-type"},
        {"type": "direct", "durable": True, "auto_delete": True, "internal": True},
        {"type": "direct", "arguments": {"alternate-exchange": "amq.fanout"}},
        {"type": "direct", "arguments": {"alternate-exchange": 5}},
    ],
)
def test_a_passive_declaration_compares_nothing(
    channel: Channel, name: Callable, options: dict[str, Any]
) -> None:
    exchange = name("exchange")
    channel.declare_exchange(exchange, "direct")
    channel.call(spec.Exchange.Declare(exchange=exchange, passive=True, **options))


# -- equivalence -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("declared", "again", "words"),
    [
        ({}, {"type": "fanout"}, "'type' {} received 'fanout' but current is 'direct'"),
        ({}, {"durable": True}, "'durable' {} received 'true' but current is 'false'"),
        ({"durable": True}, {}, "'durable' {} received 'false' but current is 'true'"),
        ({}, {"auto_delete": True}, "'auto_delete' {} received 'true' but current is 'false'"),
        ({"auto_delete": True}, {}, "'auto_delete' {} received 'false' but current is 'true'"),
        ({}, {"internal": True}, "'internal' {} received 'true' but current is 'false'"),
        ({"internal": True}, {}, "'internal' {} received 'false' but current is 'true'"),
        (
            {},
            {"arguments": {"alternate-exchange": "other"}},
            "'alternate-exchange' {} received the value 'other' of type 'longstr'"
            " but current is none",
        ),
        (
            {"arguments": {"alternate-exchange": "other"}},
            {},
            "'alternate-exchange' {} received none"
            " but current is the value 'other' of type 'longstr'",
        ),
        (
            {"arguments": {"alternate-exchange": "one"}},
            {"arguments": {"alternate-exchange": "two"}},
            "'alternate-exchange' {} received 'two' but current is 'one'",
        ),
        (
            {"arguments": {"alternate-exchange": "one"}},
            {"arguments": {"alternate-exchange": 5}},
            "'alternate-exchange' {} received '5' but current is 'one'",
        ),
    ],
)
def test_a_declaration_that_differs_is_refused(
    channel: Channel, name: Callable, declared: dict, again: dict, words: str
) -> None:
    exchange = name("exchange")
    channel.declare_exchange(exchange, **declared)
    refusal = channel.refused(
        spec.Exchange.Declare(exchange=exchange, **{"type": "direct", **again})
    )
    words = words.format(f"for exchange '{exchange}' in vhost '/':")
    text = f"PRECONDITION_FAILED - inequivalent arg {words}"
    assert refusal.args == ("channel", 406, text, 40, 10)


def test_the_first_difference_is_named(channel: Channel, name: Callable) -> None:
    exchange = name("exchange")
    channel.declare_exchange(exchange)
    differences = {
        "type": "topic",
        "durable": True,
        "auto_delete": True,
        "internal": True,
        "arguments": {"alternate-exchange": "other"},
    }
    found = []
    while differences:
        channel = channel.connection.channel()
        text = channel.refused(
            spec.Exchange.Declare(exchange=exchange, **{"type": "direct", **differences})
        ).text
        found.append(text.split("'")[1])
        del differences[next(iter(differences))]
    assert found == ["type", "durable", "auto_delete", "internal", "alternate-exchange"]


def test_unknown_arguments_are_accepted_and_not_compared(channel: Channel, name: Callable) -> None:
    exchange = name("exchange")
    channel.declare_exchange(exchange, arguments={"x-mine": 1})
    channel.declare_exchange(exchange, arguments={"x-mine": 2, "more": "words"})
    channel.declare_exchange(exchange)


def test_a_refused_redeclaration_changes_nothing(channel: Channel, name: Callable) -> None:
    exchange = name("exchange")
    queue = channel.declare(name("queue")).queue
    channel.declare_exchange(exchange, "direct")
    channel.bind(queue, exchange, "key")
    channel.refused(spec.Exchange.Declare(exchange=exchange, type="fanout"))
    again = channel.connection.channel()
    again.publish("other", b"lost", exchange=exchange)
    again.publish("key", b"kept", exchange=exchange)
    assert again.drain(queue) == [b"kept"]


# -- refusals --------------------------------------------------------------------------------
def test_an_unknown_type_closes_the_connection(channel: Channel, name: Callable) -> None:
    refusal = channel.refused(spec.Exchange.Declare(exchange=name("x"), type="x-no-such-type"))
    text = "COMMAND_INVALID - unknown exchange type 'x-no-such-type'"
    assert refusal.args == ("connection", 503, text, 40, 10)


def test_an_empty_type_is_called_invalid(channel: Channel, name: Callable) -> None:
    refusal = channel.refused(spec.Exchange.Declare(exchange=name("x"), type=""))
    text = "COMMAND_INVALID - invalid exchange type ''"
    assert refusal.args == ("connection", 503, text, 40, 10)


def test_the_type_is_looked_at_before_the_name(channel: Channel) -> None:
    refusal = channel.refused(spec.Exchange.Declare(exchange="", type="x-no-such-type"))
    assert (refusal.scope, refusal.code) == ("connection", 503)


@pytest.mark.parametrize(
    ("value", "type"),
    [(5, "signedint"), (True, "bool"), ({}, "table"), ([], "array"), (None, "void")],
)
def test_an_alternate_exchange_that_is_no_text_is_refused(
    channel: Channel, name: Callable, value: Any, type: str
) -> None:
    exchange = name("exchange")
    refusal = channel.refused(
        spec.Exchange.Declare(exchange=exchange, arguments={"alternate-exchange": value})
    )
    text = (
        f"PRECONDITION_FAILED - invalid type '{type}' for arg 'alternate-exchange'"
        f" in exchange '{exchange}' in vhost '/'"
    )
    assert refusal.args == ("channel", 406, text, 40, 10)
    assert not _exists(channel, exchange)


# -- no-wait ---------------------------------------------------------------------------------
def test_a_no_wait_declaration_has_no_answer(channel: Channel, name: Callable) -> None:
    exchange = name("exchange")
    channel.send(spec.Exchange.Declare(exchange=exchange, type="fanout", nowait=True))
    channel.sync()
    assert not channel.inbox
    assert _exists(channel, exchange)


def test_a_no_wait_passive_declaration_has_no_answer(channel: Channel) -> None:
    channel.send(spec.Exchange.Declare(exchange="amq.topic", passive=True, nowait=True))
    channel.sync()
    assert not channel.inbox


def test_a_no_wait_declaration_that_fails_closes_the_channel(
    channel: Channel, name: Callable
) -> None:
    exchange = name("exchange")
    channel.declare_exchange(exchange)
    refusal = channel.refused(spec.Exchange.Declare(exchange=exchange, type="fanout", nowait=True))
    assert (refusal.scope, refusal.code) == ("channel", 406)


# -- internal --------------------------------------------------------------------------------
def test_an_internal_exchange_takes_no_message_from_a_client(
    channel: Channel, name: Callable
) -> None:
    exchange = name("internal")
    channel.declare_exchange(exchange, internal=True)
    channel.publish("key", b"hello", exchange=exchange)
    text = f"ACCESS_REFUSED - cannot publish to internal exchange '{exchange}' in vhost '/'"
    assert channel.expect_closed().args == ("channel", 403, text, 60, 40)


def test_an_internal_exchange_takes_messages_from_another_exchange(
    channel: Channel, name: Callable
) -> None:
    inner, outer = name("inner"), name("outer")
    queue = channel.declare(name("queue")).queue
    channel.declare_exchange(inner, "fanout", internal=True)
    channel.declare_exchange(outer, "fanout")
    channel.bind_exchange(inner, outer)
    channel.bind(queue, inner)
    channel.publish("", b"hello", exchange=outer)
    assert channel.drain(queue) == [b"hello"]


# -- auto-delete -----------------------------------------------------------------------------
@pytest.fixture
def auto(channel: Channel, name: Callable) -> str:
    exchange = name("auto")
    channel.declare_exchange(exchange, "fanout", auto_delete=True)
    return exchange


def test_an_auto_delete_exchange_that_was_never_bound_stays(
    channel: Channel, auto: str, name: Callable
) -> None:
    queue = channel.declare(name("queue")).queue
    channel.unbind(queue, auto)
    assert _exists(channel, auto)


def test_an_auto_delete_exchange_goes_with_its_last_binding(
    channel: Channel, auto: str, name: Callable
) -> None:
    first, second = channel.declare(name("first")).queue, channel.declare(name("second")).queue
    channel.bind(first, auto)
    channel.bind(second, auto)
    channel.unbind(first, auto)
    assert _exists(channel, auto)
    channel.unbind(second, auto)
    assert not _exists(channel, auto)


def test_an_auto_delete_exchange_goes_with_its_last_queue(
    channel: Channel, auto: str, name: Callable
) -> None:
    queue = channel.declare(name("queue")).queue
    channel.bind(queue, auto)
    channel.call(spec.Queue.Delete(queue=queue))
    assert not _exists(channel, auto)


def test_an_auto_delete_exchange_goes_with_its_last_destination_exchange(
    channel: Channel, auto: str, name: Callable
) -> None:
    destination = name("destination")
    channel.declare_exchange(destination)
    channel.bind_exchange(destination, auto)
    channel.call(spec.Exchange.Delete(exchange=destination))
    assert not _exists(channel, auto)


def test_an_auto_delete_exchange_goes_when_its_last_exchange_is_unbound(
    channel: Channel, auto: str, name: Callable
) -> None:
    destination = name("destination")
    channel.declare_exchange(destination)
    channel.bind_exchange(destination, auto)
    channel.unbind_exchange(destination, auto)
    assert not _exists(channel, auto)
    assert _exists(channel, destination)


def test_being_bound_to_another_exchange_does_not_keep_or_delete_it(
    channel: Channel, auto: str, name: Callable
) -> None:
    source, queue = name("source"), channel.declare(name("queue")).queue
    channel.declare_exchange(source, "fanout")
    channel.bind_exchange(auto, source)
    channel.unbind_exchange(auto, source)
    assert _exists(channel, auto)  # only bindings from it count
    channel.bind_exchange(auto, source)
    channel.bind(queue, auto)
    channel.unbind(queue, auto)
    assert not _exists(channel, auto)
    assert _exists(channel, source)


def test_auto_delete_exchanges_go_one_after_the_other(
    channel: Channel, auto: str, name: Callable
) -> None:
    middle, first, queue = name("middle"), name("first"), channel.declare(name("queue")).queue
    channel.declare_exchange(middle, "fanout", auto_delete=True)
    channel.declare_exchange(first, "fanout", auto_delete=True)
    channel.bind_exchange(middle, first)
    channel.bind_exchange(auto, middle)
    channel.bind(queue, auto)
    channel.call(spec.Queue.Delete(queue=queue))
    assert [_exists(channel, each) for each in (first, middle, auto)] == [False] * 3


def test_an_auto_delete_exchange_bound_to_itself_goes_when_unbound(
    channel: Channel, auto: str
) -> None:
    channel.bind_exchange(auto, auto)
    assert _exists(channel, auto)
    channel.unbind_exchange(auto, auto)
    assert not _exists(channel, auto)


def test_an_auto_delete_exchange_goes_with_an_exclusive_queue(
    channel: Channel, connect: Callable, auto: str
) -> None:
    owner = connect()
    queue = owner.channel().declare("", exclusive=True).queue
    owner.channels[1].bind(queue, auto)
    owner.close()
    assert not _exists(channel, auto)
