"""What is expected here was read off RabbitMQ 3.10.8."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.broker.exchanges.stand_ins import Message, Queue, bind, routed
from warren.amqp.tables import Timestamp
from warren.broker.exchanges.headers import HeadersExchange

Table = dict[str, Any]


def matched(arguments: Table, headers: Table) -> bool:
    exchange = HeadersExchange("x")
    bind(exchange, Queue("q"), "", arguments)
    return routed(exchange, "", Message(headers)) == ["q"]


@pytest.mark.parametrize(
    ("arguments", "headers", "match"),
    [
        ({}, {}, True),
        ({}, {"a": 1}, True),
        ({"x-match": "any"}, {"a": 1}, False),
        ({"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}, True),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, False),
        ({"x-match": "any", "a": 1, "b": 2}, {"b": 2}, True),
        ({"x-match": "any", "a": 1, "b": 2}, {"a": 2, "b": 1}, False),
        ({"x-match": "all", "x-a": 1}, {}, True),
        ({"x-match": "all", "x-a": 1, "b": 1}, {"b": 1}, True),
        ({"x-match": "any", "x-a": 1}, {"x-a": 1}, False),
        ({"x-match": "all-with-x", "x-a": 1}, {}, False),
        ({"x-match": "all-with-x", "x-a": 1}, {"x-a": 1}, True),
        ({"x-match": "any-with-x", "x-a": 1, "b": 1}, {"x-a": 1}, True),
        ({"x-match": "all-with-x"}, {}, True),
        ({"x-match": "any-with-x"}, {"x-match": "any-with-x"}, False),
        ({"x-": 1}, {}, True),
        ({"X-a": 1}, {}, False),
        ({"x": 1}, {}, False),
    ],
)
def test_which_headers_count(arguments: Table, headers: Table, match: bool) -> None:
    assert matched(arguments, headers) is match


@pytest.mark.parametrize(
    ("wanted", "given", "match"),
    [
        (None, 1, True),
        (None, None, True),
        (1, None, False),
        ("", None, False),
        (1, 1.0, True),
        (1.0, 1, True),
        (1, True, False),
        (True, 1, False),
        (True, True, True),
        (5, Timestamp(5), True),
        (Timestamp(5), 5, True),
        ("1", 1, False),
        ("xy", b"xy", True),
        (b"xy", "xy", True),
        (b"\xff", "\udcff", True),
        (0.0, -0.0, True),
        (2**53 + 1, float(2**53), False),
        (Decimal("1.50"), Decimal("1.50"), True),
        (Decimal("1.50"), Decimal("1.5"), False),
        (Decimal(1), 1, False),
        ([], {}, True),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        ([1], [1.0], False),
        ([1], [Timestamp(1)], False),
        ([1], [True], False),
        (["x"], [b"x"], False),
        ({"p": 1, "q": 2}, {"p": 1, "q": 2}, True),
        ({"p": 1, "q": 2}, {"q": 2, "p": 1}, False),
    ],
)
def test_which_values_are_equal(wanted: Any, given: Any, match: bool) -> None:
    assert matched({"a": wanted}, {"a": given}) is match
    assert matched({"a": wanted, "x-match": "any"}, {"a": given}) is match


@pytest.mark.parametrize("match", ["all", "any", "all-with-x", "any-with-x"])
def test_the_four_kinds_of_match_are_accepted(match: str) -> None:
    assert HeadersExchange("x").validate_binding("", {"x-match": match}) is None
    assert HeadersExchange("x").validate_binding("", {}) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("some", 'value <<"some">>; expected all, any, all-with-x, or any-with-x'),
        ("ALL", 'value <<"ALL">>; expected all, any, all-with-x, or any-with-x'),
        (1, "type signedint (value 1); expected longstr"),
        (None, "type void (value undefined); expected longstr"),
        (b"all", 'type binary (value <<"all">>); expected longstr'),
    ],
)
def test_any_other_kind_of_match_is_refused(value: Any, text: str) -> None:
    refusal = HeadersExchange("x").validate_binding("", {"x-match": value})
    assert refusal == f"Invalid x-match field {text}"


def test_a_queue_that_matches_in_many_ways_gets_the_message_once() -> None:
    exchange, queue = HeadersExchange("x"), Queue("q")
    for arguments in ({}, {"a": 1}, {"b": None}, {"x-match": "any", "a": 1, "b": 2}):
        bind(exchange, queue, "", arguments)
    assert routed(exchange, "", Message({"a": 1, "b": 2})) == ["q"]


NAMES = st.sampled_from(["a", "b", "x-c"])
VALUES = st.sampled_from([None, 1, 2, "1", True])
TABLES = st.dictionaries(NAMES, VALUES)
KINDS = st.sampled_from(["all", "any", "all-with-x", "any-with-x"])
BINDINGS = st.builds(lambda table, kind: {**table, "x-match": kind}, TABLES, KINDS)
STEPS = st.lists(st.tuples(st.booleans(), BINDINGS, st.integers(0, 2)), max_size=20)


def naive(arguments: Table, headers: Table) -> bool:
    with_x = arguments["x-match"].endswith("-with-x")
    verdicts = [
        name in headers
        and (value is None or (type(value), value) == (type(headers[name]), headers[name]))
        for name, value in arguments.items()
        if name != "x-match" and (with_x or not name.startswith("x-"))
    ]
    return any(verdicts) if arguments["x-match"].startswith("any") else all(verdicts)


@given(STEPS, st.lists(TABLES, min_size=1, max_size=4))
def test_filing_finds_what_comparing_all_would(
    steps: list[tuple[bool, Table, int]], messages: list[Table]
) -> None:
    exchange, queues = HeadersExchange("x"), [Queue(f"q{n}") for n in range(3)]
    for removes, arguments, n in steps:
        binding = bind(exchange, queues[n], "", arguments)
        if removes:
            exchange.remove(binding.key)
    for headers in messages:
        found = {
            b.destination.name for b in exchange.bindings.values() if naive(b.arguments, headers)
        }
        assert routed(exchange, "", Message(headers)) == sorted(found)


@given(STEPS)
def test_nothing_is_left_when_all_bindings_are_gone(steps: list[tuple[bool, Table, int]]) -> None:
    exchange, queues = HeadersExchange("x"), [Queue(f"q{n}") for n in range(3)]
    for _, arguments, n in steps:
        bind(exchange, queues[n], "", arguments)
    for queue in queues:
        exchange.remove_destination(queue)
    left = (exchange._rules, exchange._files, exchange._mentions, exchange._always)
    assert left == ({}, {}, {}, None)
