"""Headers exchanges: a binding's arguments are compared with a message's headers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pika import spec

from tests.support.wire import Channel
from tests.support.wire_frames import Field

Table = dict[str, Any]


@pytest.fixture
def exchange(channel: Channel, name: Callable) -> str:
    exchange = name("headers")
    channel.declare_exchange(exchange, "headers")
    return exchange


@pytest.fixture
def queue(channel: Channel, name: Callable) -> str:
    return channel.declare(name("queue")).queue


@pytest.fixture
def routes(channel: Channel, exchange: str, queue: str) -> Callable[..., bool]:
    """Bind with these arguments, publish with these headers: does the message arrive?"""

    def routes(arguments: Table | None, headers: Table | None, key: str = "") -> bool:
        channel.bind(queue, exchange, "", arguments)
        channel.publish(key, b"hello", exchange=exchange, headers=headers)
        return channel.drain(queue) == [b"hello"]

    return routes


BOTH = {"format": "pdf", "type": "log"}


@pytest.mark.parametrize(
    ("match", "arguments", "headers", "arrives"),
    [
        ("all", BOTH, BOTH, True),
        ("all", BOTH, {**BOTH, "more": 1}, True),
        ("all", BOTH, {"format": "pdf"}, False),
        ("all", BOTH, {"format": "pdf", "type": "report"}, False),
        ("all", BOTH, {}, False),
        ("all", BOTH, None, False),
        ("any", BOTH, BOTH, True),
        ("any", BOTH, {"format": "pdf"}, True),
        ("any", BOTH, {"format": "zip", "type": "log"}, True),
        ("any", BOTH, {"format": "zip", "type": "report"}, False),
        ("any", BOTH, {"other": "pdf"}, False),
        ("any", BOTH, {}, False),
        ("any", BOTH, None, False),
        ("all-with-x", BOTH, BOTH, True),
        ("all-with-x", BOTH, {"format": "pdf"}, False),
        ("any-with-x", BOTH, {"format": "pdf"}, True),
        ("any-with-x", BOTH, {"format": "zip"}, False),
        # nothing to compare: all of nothing is true, any of nothing is not
        ("all", {}, {"format": "pdf"}, True),
        ("all", {}, None, True),
        ("any", {}, {"format": "pdf"}, False),
        ("any", {}, None, False),
        ("all-with-x", {}, None, True),
        ("any-with-x", {}, {"format": "pdf"}, False),
        # arguments that begin with x- count with the -with-x kinds only
        ("all", {"a": 1, "x-b": 2}, {"a": 1}, True),
        ("all", {"x-b": 2}, None, True),
        ("any", {"x-b": 2}, {"x-b": 2}, False),
        ("any", {"a": 1, "x-b": 2}, {"a": 2, "x-b": 2}, False),
        ("all-with-x", {"a": 1, "x-b": 2}, {"a": 1}, False),
        ("all-with-x", {"a": 1, "x-b": 2}, {"a": 1, "x-b": 2}, True),
        ("all-with-x", {"a": 1, "x-b": 2}, {"a": 1, "x-b": 3}, False),
        ("any-with-x", {"a": 1, "x-b": 2}, {"x-b": 2}, True),
        ("any-with-x", {"a": 1, "x-b": 2}, {"a": 1}, True),
        ("any-with-x", {"a": 1, "x-b": 2}, {"x-b": 3}, False),
        # x-match itself is never compared
        ("all-with-x", {"a": 1}, {"a": 1, "x-match": "other"}, True),
        ("any-with-x", {"a": 1}, {"x-match": "any-with-x"}, False),
        # X- is not x-, and names are compared with their case
        ("all", {"X-b": 2}, {"a": 1}, False),
        ("all", {"Format": "pdf"}, {"format": "pdf"}, False),
    ],
)
def test_x_match_says_how_arguments_and_headers_are_compared(
    routes: Callable[..., bool], match: str, arguments: Table, headers: Table, arrives: bool
) -> None:
    assert routes({"x-match": match, **arguments}, headers) is arrives


@pytest.mark.parametrize(
    ("arguments", "headers", "arrives"),
    [
        (BOTH, BOTH, True),
        (BOTH, {"format": "pdf"}, False),
        ({}, {"format": "pdf"}, True),
        (None, None, True),
    ],
)
def test_without_x_match_all_arguments_must_match(
    routes: Callable[..., bool], arguments: Table | None, headers: Table, arrives: bool
) -> None:
    assert routes(arguments, headers) is arrives


MOMENT = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("argument", "header", "equal"),
    [
        ("text", "text", True),
        ("text", "Text", False),
        ("", "", True),
        ("", "text", False),
        ("naïve", "naïve", True),
        # numbers are compared by value, whatever their width or kind
        (1, 1, True),
        (1, 2, False),
        (Field("b", 7), Field("l", 7), True),
        (Field("s", 7), 7, True),
        (Field("B", 200), Field("u", 200), True),
        (Field("i", 7), Field("I", 7), True),
        (7, Field("d", 7.0), True),
        (Field("d", 7.0), 7, True),
        (7, Field("d", 7.5), False),
        (Field("d", 0.5), Field("f", 0.5), True),
        (Field("d", 0.1), Field("f", 0.1), False),
        (Field("l", -1), Field("b", -1), True),
        (2**53 + 1, Field("d", float(2**53)), False),
        (Field("T", 1700000000), 1700000000, True),
        (MOMENT, MOMENT, True),
        # a number, a text and a truth value are never the same
        (1, "1", False),
        ("1", 1, False),
        (True, True, True),
        (False, False, True),
        (True, False, False),
        (True, 1, False),
        (1, True, False),
        (False, 0, False),
        (True, "true", False),
        # octets equal the text of the same octets
        (b"octets", b"octets", True),
        ("octets", Field("x", b"octets"), True),
        (Decimal("1.5"), Decimal("1.5"), True),
        (Decimal("1.5"), Decimal("2.5"), False),
        # whole arrays and tables
        ([1, "a"], [1, "a"], True),
        ([1, "a"], ["a", 1], False),
        ([1], [1, 2], False),
        ([1], 1, False),
        ([], [], True),
        ({"a": {"b": 1}}, {"a": {"b": 1}}, True),
        ({"a": 1}, {"a": 2}, False),
        # ... in which the types count
        ([1], [Field("l", 1)], False),
        ({"a": 1}, {"a": Field("l", 1)}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        # void in a binding asks only that the header is there
        (None, "anything", True),
        (None, 5, True),
        (None, None, True),
        ("anything", None, False),
        (0, None, False),
        (False, None, False),
    ],
)
@pytest.mark.parametrize("match", ["all", "any"])
def test_values_are_compared(
    routes: Callable[..., bool], match: str, argument: Any, header: Any, equal: bool
) -> None:
    assert routes({"x-match": match, "h": argument}, {"h": header}) is equal


def test_void_in_a_binding_does_not_match_a_header_that_is_absent(
    routes: Callable[..., bool],
) -> None:
    assert not routes({"x-match": "all", "h": None}, {"other": 1})


def test_the_order_of_headers_and_arguments_does_not_matter(routes: Callable[..., bool]) -> None:
    assert routes({"c": 3, "x-match": "all", "a": 1, "b": 2}, {"b": 2, "z": 0, "c": 3, "a": 1})


@pytest.mark.parametrize("key", ["", "key", "#"])
def test_the_routing_key_is_ignored(routes: Callable[..., bool], key: str) -> None:
    assert routes({"x-match": "any", "a": 1}, {"a": 1}, key)


def test_a_queue_with_several_matching_bindings_gets_one_copy(
    channel: Channel, exchange: str, queue: str
) -> None:
    channel.bind(queue, exchange, "", {"x-match": "any", "a": 1, "b": 1})
    channel.bind(queue, exchange, "", {"x-match": "all", "a": 1})
    channel.bind(queue, exchange, "other key", {"x-match": "all", "a": 1})
    channel.publish("", b"hello", exchange=exchange, headers={"a": 1, "b": 1})
    assert channel.drain(queue) == [b"hello"]


def test_unbinding_takes_one_of_the_bindings_that_differ_in_arguments(
    channel: Channel, exchange: str, queue: str
) -> None:
    channel.bind(queue, exchange, "", {"x-match": "all", "a": 1})
    channel.bind(queue, exchange, "", {"x-match": "all", "a": 2})
    channel.unbind(queue, exchange, "", {"a": 1, "x-match": "all"})
    channel.publish("", b"one", exchange=exchange, headers={"a": 1})
    channel.publish("", b"two", exchange=exchange, headers={"a": 2})
    assert channel.drain(queue) == [b"two"]


@pytest.mark.parametrize(
    ("match", "words"),
    [
        ("some", 'value <<"some">>; expected all, any, all-with-x, or any-with-x'),
        ("ALL", 'value <<"ALL">>; expected all, any, all-with-x, or any-with-x'),
        ("", "value <<>>; expected all, any, all-with-x, or any-with-x"),
        (5, "type signedint (value 5); expected longstr"),
        (True, "type bool (value true); expected longstr"),
        (None, "type void (value undefined); expected longstr"),
        (["all"], 'type array (value [{longstr,<<"all">>}]); expected longstr'),
        ({"a": 1}, 'type table (value [{<<"a">>,signedint,1}]); expected longstr'),
    ],
)
def test_a_wrong_x_match_is_refused(
    channel: Channel, exchange: str, queue: str, match: Any, words: str
) -> None:
    refusal = channel.refused(
        spec.Queue.Bind(queue=queue, exchange=exchange, arguments={"x-match": match})
    )
    text = f"PRECONDITION_FAILED - Invalid x-match field {words}"
    assert refusal.args == ("channel", 406, text, 50, 20)


def test_a_wrong_x_match_does_not_matter_to_other_exchange_types(
    channel: Channel, queue: str, name: Callable
) -> None:
    key = name("key")
    channel.bind(queue, "amq.direct", key, {"x-match": "some"})
    channel.publish(key, b"hello", exchange="amq.direct")
    assert channel.drain(queue) == [b"hello"]


@pytest.mark.parametrize("predeclared", ["amq.headers", "amq.match"])
def test_the_predeclared_headers_exchanges_route(
    channel: Channel, queue: str, name: Callable, predeclared: str
) -> None:
    word = name("word")
    channel.bind(queue, predeclared, "", {"x-match": "all", "word": word})
    channel.publish("", b"hello", exchange=predeclared, headers={"word": word})
    channel.publish("", b"other", exchange=predeclared, headers={"word": "other"})
    assert channel.drain(queue) == [b"hello"]
