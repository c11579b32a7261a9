from __future__ import annotations

import sys
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.broker.exchanges.stand_ins import PLAIN, Queue, bind, routed
from warren.broker.exchanges.topic import TopicExchange

WORDS = st.sampled_from(["a", "b", "", "*", "#"])
KEYS = st.lists(WORDS, max_size=6).map(".".join)
STEPS = st.lists(st.tuples(st.booleans(), KEYS, st.integers(0, 3)), max_size=25)


def matches(pattern: str, key: str) -> bool:
    """The rule itself, word by word, as slow as it is plain."""
    wanted = pattern.split(".") if pattern else []
    words = key.split(".") if key else []

    @cache
    def at(i: int, j: int) -> bool:
        if i == len(wanted):
            return j == len(words)
        if wanted[i] == "#":
            return at(i + 1, j) or (j < len(words) and at(i, j + 1))
        return j < len(words) and wanted[i] in ("*", words[j]) and at(i + 1, j + 1)

    return at(0, 0)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("a.b", ["a.b"], ["a", "a.b.c", "a.b.", ".a.b", "b.a"]),
        ("*", ["a", "*", "#"], ["", "a.b", "."]),
        ("*.*", ["a.b", "."], ["a", "a.b.c"]),
        ("#", ["", "a", "a.b.c", "."], []),
        ("a.#", ["a", "a.b", "a.", "a.b.c"], ["", "b", "b.a"]),
        ("#.a", ["a", "b.a", "a.a", ".a"], ["", "a.b"]),
        ("a.#.b", ["a.b", "a.x.b", "a.b.b"], ["a", "b", "a.b.c"]),
        ("#.#", ["", "a", "a.b"], []),
        ("*.#", ["a", "a.b"], [""]),
        ("#.*.#", ["a", "a.b", "."], [""]),
        ("", [""], ["a", "."]),
        ("a..b", ["a..b"], ["a.b", "a.x.b"]),
        ("a.*.b", ["a..b", "a.x.b"], ["a.b"]),
        ("ab*", ["ab*"], ["abc"]),
    ],
)
def test_a_pattern_matches(pattern: str, yes: list[str], no: list[str]) -> None:
    exchange = TopicExchange("x")
    bind(exchange, Queue("q"), pattern)
    assert [key for key in yes + no if routed(exchange, key)] == yes


@given(STEPS, st.lists(KEYS, min_size=1, max_size=5))
def test_the_trie_agrees_with_the_rule(steps: list[tuple[bool, str, int]], keys: list[str]) -> None:
    exchange, queues = TopicExchange("x"), [Queue(f"q{n}") for n in range(4)]
    bound: set[tuple[str, int]] = set()
    for removes, pattern, n in steps:
        binding = bind(exchange, queues[n], pattern)
        bound.add((pattern, n))
        if removes:
            exchange.remove(binding.key)
            bound.discard((pattern, n))
    for key in keys:
        expected = {f"q{n}" for pattern, n in bound if matches(pattern, key)}
        assert routed(exchange, key) == sorted(expected)


@given(st.lists(st.tuples(KEYS, st.integers(0, 3))))
def test_nothing_is_left_when_all_bindings_are_gone(made: list[tuple[str, int]]) -> None:
    exchange, queues = TopicExchange("x"), [Queue(f"q{n}") for n in range(4)]
    for pattern, n in made:
        bind(exchange, queues[n], pattern)
    for queue in queues:
        exchange.remove_destination(queue)
    assert exchange._root.empty


def test_a_queue_that_matches_in_many_ways_gets_the_message_once() -> None:
    exchange, queue = TopicExchange("x"), Queue("q")
    for pattern in ("a.b", "a.*", "*.b", "#", "a.#", "#.b", "a.#.b"):
        bind(exchange, queue, pattern)
    assert routed(exchange, "a.b") == ["q"]


def lines_run(exchange: TopicExchange, key: str) -> int:
    """How many lines of Python it takes to route: time without a clock."""
    count = 0

    def trace(frame: Any, event: str, arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        exchange.route(key, PLAIN)
    finally:
        sys.settrace(before)
    return count


def test_bindings_that_do_not_match_cost_nothing() -> None:
    exchange = TopicExchange("x")
    for pattern in ("device.1.state", "*.1.state", "#.state", "device.#"):
        bind(exchange, Queue(pattern), pattern)
    alone = lines_run(exchange, "device.1.state")
    for n in range(2, 500):
        for pattern in ("device.{}.state", "*.{}.state", "#.state{}", "device{}.#", "#.{}.#"):
            bind(exchange, Queue("other"), pattern.format(n))
    assert lines_run(exchange, "device.1.state") <= 2 * alone


def test_many_hashes_do_not_multiply() -> None:
    exchange = TopicExchange("x")
    bind(exchange, Queue("q"), ".".join("#a" * 12) + ".b")
    assert lines_run(exchange, ".".join("a" * 100)) < 50_000
