from __future__ import annotations

import tracemalloc
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.broker.exchanges.stand_ins import PLAIN, Message, Queue, bind, routed
from warren.broker.exchanges import INTERNAL_ERROR
from warren.broker.exchanges.consistent_hash import ConsistentHashExchange

KEYS = [f"key-{n}" for n in range(300)]
WEIGHTS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 5), min_size=1)


def exchange_with(weights: dict[str, int], **arguments: str) -> ConsistentHashExchange:
    named = {name.replace("_", "-", 1): value for name, value in arguments.items()}
    exchange = ConsistentHashExchange("x", arguments=named)
    for name, weight in weights.items():
        bind(exchange, Queue(name), str(weight))
    return exchange


def owners(exchange: ConsistentHashExchange) -> dict[str, str]:
    return {key: "".join(routed(exchange, key)) for key in KEYS}


def drop(exchange: ConsistentHashExchange, name: str) -> None:
    for binding in list(exchange.bindings.values()):
        if binding.destination.name == name:
            exchange.remove_destination(binding.destination)


@pytest.mark.parametrize(
    "weights",
    [
        {"a": 1, "b": 1},
        {"a": 1, "b": 1, "c": 1},
        {"a": 1, "b": 2, "c": 1},
        {"a": 1, "b": 9},
        {f"queue-{n}": 1 for n in range(8)},
        {f"queue-{n}": 100 for n in range(8)},
    ],
)
@pytest.mark.parametrize("form", ["{}", "user-{}", "{:012d}", "eu.order.{}.created", "{:x}" * 4])
def test_keys_are_spread_evenly_by_weight(weights: dict[str, int], form: str) -> None:
    exchange, total = exchange_with(weights), 8000
    keys = [form.format(*[n * 7919] * 4) for n in range(total)]
    counts = Counter(exchange.route(key, PLAIN)[0].name for key in keys)
    for name, weight in weights.items():
        share = total * weight / sum(weights.values())
        assert abs(counts[name] - share) < 5 * share**0.5


def test_a_thousand_queues_get_their_shares() -> None:
    weights = {f"queue-{n}": 1 + n % 3 for n in range(1000)}
    exchange, total = exchange_with(weights), 20_000
    counts = Counter(exchange.route(f"user-{n}", PLAIN)[0].name for n in range(total))
    unit = total / sum(weights.values())
    # The sum of squared differences, in units of what chance alone makes, is near 1000.
    spread = sum((counts[q] - w * unit) ** 2 / (w * unit) for q, w in weights.items())
    assert 750 < spread < 1250
    drop(exchange, "queue-500")
    moved = Counter(exchange.route(f"user-{n}", PLAIN)[0].name for n in range(total))
    assert sum((moved - counts).values()) == counts["queue-500"]


def test_an_exchange_with_few_queues_is_small() -> None:
    tracemalloc.start()
    try:
        exchange = exchange_with({"a": 1, "b": 1})
        owners(exchange)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 200_000


@given(WEIGHTS)
@settings(max_examples=30)
def test_the_order_of_binding_does_not_matter(weights: dict[str, int]) -> None:
    backwards = dict(reversed(list(weights.items())))
    assert owners(exchange_with(weights)) == owners(exchange_with(backwards))


@given(WEIGHTS, st.integers(1, 5))
@settings(max_examples=30)
def test_a_new_queue_takes_keys_and_moves_no_others(weights: dict[str, int], weight: int) -> None:
    exchange = exchange_with(weights)
    before = owners(exchange)
    bind(exchange, Queue("new"), str(weight))
    after = owners(exchange)
    assert all(after[key] in (before[key], "new") for key in KEYS)
    assert after == owners(exchange_with({**weights, "new": weight}))


@given(WEIGHTS.filter(lambda weights: len(weights) > 1), st.data())
@settings(max_examples=30)
def test_a_queue_that_goes_gives_its_keys_and_moves_no_others(
    weights: dict[str, int], data: st.DataObject
) -> None:
    exchange, gone = exchange_with(weights), data.draw(st.sampled_from(sorted(weights)))
    before = owners(exchange)
    drop(exchange, gone)
    after = owners(exchange)
    assert all((after[key] != before[key]) == (before[key] == gone) for key in KEYS)


def test_keys_come_back_with_their_queue() -> None:
    exchange = exchange_with({"a": 1, "b": 1, "c": 1})
    before = owners(exchange)
    for _ in range(40):  # often enough that the places of those gone are cleared away
        drop(exchange, "b")
        bind(exchange, Queue("b"), "1")
    assert owners(exchange) == before


def test_keys_stay_where_they_are_across_restarts_and_releases() -> None:
    placed = [routed(exchange_with({"a": 1, "b": 2, "c": 1}), key)[0] for key in KEYS[:16]]
    assert "".join(placed) == "acbbabbbbababbbb"


def test_each_message_goes_to_one_queue_only() -> None:
    exchange = exchange_with({"a": 1, "b": 1, "c": 1})
    assert all(len(routed(exchange, key)) == 1 for key in KEYS)


def test_when_the_last_queue_goes_messages_go_nowhere() -> None:
    exchange = exchange_with({"a": 1})
    assert routed(exchange, "k") == ["a"]
    drop(exchange, "a")
    assert routed(exchange, "k") == []


def test_a_queue_bound_again_keeps_its_first_weight_and_goes_with_either() -> None:
    exchange = exchange_with({"a": 1, "b": 1})
    before = owners(exchange)
    queue = next(iter(exchange.bindings.values())).destination
    again = bind(exchange, queue, "50")
    assert owners(exchange) == before

    exchange.remove(again.key)
    assert set(owners(exchange).values()) == {"b"}


def test_a_giant_weight_takes_nearly_all_and_no_memory() -> None:
    exchange = exchange_with({"a": 1, "b": 10**250})
    assert set(owners(exchange).values()) == {"b"}


def test_the_header_is_hashed_when_it_is_named() -> None:
    exchange = exchange_with({"a": 1, "b": 1}, hash_header="user")
    by_user = {n: routed(exchange, "", Message({"user": n})) for n in range(50)}
    assert {"a", "b"} == {name for (name,) in by_user.values()}
    assert all(routed(exchange, k, Message({"user": 7})) == by_user[7] for k in KEYS[:20])


@pytest.mark.parametrize("value", [None, True, 1.5, "text", b"\xff", [1, "a"], {"a": {"b": None}}])
def test_a_header_of_any_type_can_be_hashed(value: Any) -> None:
    exchange = exchange_with({"a": 1, "b": 1}, hash_header="h")
    assert len(routed(exchange, "", Message({"h": value}))) == 1


@pytest.mark.parametrize(
    ("name", "values"),
    [("message_id", KEYS), ("correlation_id", KEYS), ("timestamp", list(range(300)))],
)
def test_the_property_is_hashed_when_it_is_named(name: str, values: list[Any]) -> None:
    exchange = exchange_with({"a": 1, "b": 1}, hash_property=name)
    found = {value: routed(exchange, "k", Message(None, **{name: value})) for value in values}
    assert {"a", "b"} == {name for (name,) in found.values()}


@pytest.mark.parametrize("arguments", [{"hash_header": "h"}, {"hash_property": "message_id"}])
def test_messages_without_what_is_hashed_all_go_one_way(arguments: dict[str, str]) -> None:
    exchange = exchange_with({"a": 1, "b": 1, "c": 1}, **arguments)
    assert len(set(owners(exchange).values())) == 1


@pytest.mark.parametrize("key", ["1", "+5", "007", "1000000"])
def test_a_weight_is_a_whole_number_above_zero(key: str) -> None:
    assert ConsistentHashExchange("x").validate_binding(key, {}) is None


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("0", "The binding key must be greater than 0"),
        ("-1", "The binding key must be greater than 0"),
        ("", "The binding key must be an integer: <<>>"),
        ("abc", 'The binding key must be an integer: <<"abc">>'),
        ("1.5", 'The binding key must be an integer: <<"1.5">>'),
        (" 5", 'The binding key must be an integer: <<" 5">>'),
    ],
)
def test_anything_else_is_refused_as_a_weight(key: str, text: str) -> None:
    assert ConsistentHashExchange("x").validate_binding(key, {}) == text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"hash-header": "h"}, None),
        ({"hash-header": ""}, None),
        ({"hash-property": "message_id"}, None),
        ({"hash-property": "correlation_id"}, None),
        ({"hash-property": "timestamp"}, None),
        ({"hash-property": "message-id"}, "Unsupported property: message-id"),
        (
            {"hash-header": "h", "hash-property": "foo"},
            "hash-header and hash-property are mutually exclusive",
        ),
        ({"hash-header": 1}, INTERNAL_ERROR),
        ({"hash-property": b"message_id"}, INTERNAL_ERROR),
        ({"hash-property": "foo", "hash-header": None}, INTERNAL_ERROR),
    ],
)
def test_what_may_be_hashed(arguments: dict[str, Any], text: str | None) -> None:
    assert ConsistentHashExchange.validate_arguments(arguments) == text
