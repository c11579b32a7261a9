"""Topic exchanges: ``*`` is one word, ``#`` any number of them, words are split at dots."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from pika import spec

from tests.support.wire import Channel


@pytest.fixture
def exchange(channel: Channel, name: Callable) -> str:
    exchange = name("topic")
    channel.declare_exchange(exchange, "topic")
    return exchange


@pytest.fixture
def queue(channel: Channel, name: Callable) -> str:
    return channel.declare(name("queue")).queue


@pytest.mark.parametrize(
    ("pattern", "key", "matches"),
    [
        ("stock.usd.nyse", "stock.usd.nyse", True),
        ("stock.usd.nyse", "stock.usd", False),
        ("stock.usd.nyse", "stock.usd.nyse.x", False),
        ("stock.*", "stock.usd", True),
        ("stock.*", "stock", False),
        ("stock.*", "stock.usd.nyse", False),
        ("stock.#", "stock", True),
        ("stock.#", "stock.usd.nyse", True),
        ("stock.#", "stocks", False),
        ("#.nyse", "nyse", True),
        ("#.nyse", "stock.usd.nyse", True),
        ("#.nyse", "stock.usd.nyse.x", False),
        ("*.usd.*", "stock.usd.nyse", True),
        ("*.usd.#", "stock.usd", True),
        ("stock.#.nyse", "stock.nyse", True),
        ("stock.#.nyse", "stock.a.b.c.nyse", True),
        ("stock.#.nyse", "stock.nyse.a", False),
        ("#.a.#", "x.a.y", True),
        ("#.a.#", "a", True),
        ("#.a.#", "x.y", False),
        # nothing but wildcards
        ("#", "", True),
        ("#", "a", True),
        ("#", "a.b.c", True),
        ("#.#", "", True),
        ("#.#", "a", True),
        ("#.#", "a.b", True),
        ("*", "a", True),
        ("*", "", False),
        ("*", "a.b", False),
        ("*.#", "", False),
        ("*.#", "a", True),
        ("*.#", "a.b.c", True),
        ("#.*", "", False),
        ("#.*", "a.b", True),
        ("#.*.#", "", False),
        ("#.*.#", "a", True),
        ("*.*", "a", False),
        ("*.*", "a.b", True),
        # empty words count as words, but an empty key has none
        ("", "", True),
        ("", "a", False),
        (".", ".", True),
        (".", "", False),
        ("*.*", ".", True),
        ("*", ".", False),
        ("a.*", "a.", True),
        ("*.a", ".a", True),
        ("a.*.b", "a..b", True),
        ("a..b", "a..b", True),
        ("a..b", "a.b", False),
        ("a.#.b", "a..b", True),
        ("a.#", "a.", True),
        ("#.b", ".b", True),
        ("a.b", "a.b.", False),
        # a wildcard is a word of its own, or it is no wildcard
        ("a*", "ab", False),
        ("a*", "a*", True),
        ("a#", "a.b", False),
        ("##", "a", False),
        ("**", "a", False),
        ("a.b*.c", "a.bb.c", False),
        # wildcards in a published key are plain words
        ("a", "*", False),
        ("a.b", "#", False),
        ("a.b", "a.*", False),
        ("*", "*", True),
        ("*", "#", True),
        ("#.a", "#", False),
        ("#", "#.*", True),
        # case, length, other alphabets
        ("A", "a", False),
        ("a.*.ё", "a.ключ.ё", True),
        ("#." + "w" * 200, "v." + "w" * 200, True),
        ("#.z", "a." * 127 + "z", True),
        ("#.z", "a." * 127 + "y", False),
    ],
)
def test_a_pattern_matches_a_key(
    channel: Channel, exchange: str, queue: str, pattern: str, key: str, matches: bool
) -> None:
    channel.bind(queue, exchange, pattern)
    channel.publish(key, b"hello", exchange=exchange)
    assert channel.drain(queue) == ([b"hello"] if matches else [])


def _matches(pattern: list[str], key: list[str]) -> bool:
    if not pattern:
        return not key
    head, rest = pattern[0], pattern[1:]
    if head == "#":
        return any(_matches(rest, key[at:]) for at in range(len(key) + 1))
    return bool(key) and head in ("*", key[0]) and _matches(rest, key[1:])


def _sentences(words: list[str], upto: int) -> list[list[str]]:
    return [
        list(sentence)
        for length in range(1, upto + 1)
        for sentence in itertools.product(words, repeat=length)
    ]


def test_all_short_patterns_side_by_side_match_as_defined(
    channel: Channel, name: Callable, exchange: str
) -> None:
    patterns = _sentences(["a", "b", "*", "#"], 3)
    keys = [*_sentences(["a", "b", "c"], 3), ["a", "b", "a", "b"]]
    # A queue a pattern: all of them in one trie, where one may shadow another.
    for number, pattern in enumerate(patterns):
        queue = name("queue")
        channel.send(spec.Queue.Declare(queue=queue, exclusive=True, nowait=True))
        channel.send(
            spec.Queue.Bind(
                queue=queue, exchange=exchange, routing_key=".".join(pattern), nowait=True
            )
        )
        channel.send(
            spec.Basic.Consume(queue=queue, consumer_tag=str(number), no_ack=True, nowait=True)
        )
    expected = {
        (".".join(pattern), ".".join(key))
        for pattern in patterns
        for key in keys
        if _matches(pattern, key)
    }
    for key in keys:
        channel.publish(".".join(key), exchange=exchange)
    arrived = [
        (".".join(patterns[int(message.method.consumer_tag)]), message.method.routing_key)
        for message in channel.deliveries(len(expected))
    ]
    assert set(arrived) == expected
    assert len(arrived) == len(expected)
    assert channel.quiet(0.1)


def test_a_queue_that_several_patterns_reach_gets_one_copy(
    channel: Channel, exchange: str, queue: str
) -> None:
    for pattern in ("a.b", "a.*", "a.#", "#", "*.b", "#.b", "#.#"):
        channel.bind(queue, exchange, pattern)
    channel.publish("a.b", b"hello", exchange=exchange)
    assert channel.drain(queue) == [b"hello"]


def test_unbinding_a_pattern_leaves_those_beside_above_and_below_it(
    channel: Channel, exchange: str, queue: str
) -> None:
    for pattern in ("a", "a.b", "a.b.c", "a.*"):
        channel.bind(queue, exchange, pattern)
    channel.unbind(queue, exchange, "a.b")
    channel.unbind(queue, exchange, "a.*")
    for key in ("a", "a.b", "a.b.c", "a.x"):
        channel.publish(key, key.encode(), exchange=exchange)
    assert channel.drain(queue) == [b"a", b"a.b.c"]


def test_unbinding_removes_the_pattern_not_what_it_matches(
    channel: Channel, exchange: str, queue: str
) -> None:
    channel.bind(queue, exchange, "a.b")
    channel.unbind(queue, exchange, "a.*")
    channel.unbind(queue, exchange, "#")
    channel.publish("a.b", b"hello", exchange=exchange)
    assert channel.drain(queue) == [b"hello"]


def test_a_pattern_shared_by_two_queues_stays_for_the_second(
    channel: Channel, name: Callable, exchange: str, queue: str
) -> None:
    other = channel.declare(name("other")).queue
    channel.bind(queue, exchange, "a.#")
    channel.bind(other, exchange, "a.#")
    channel.call(spec.Queue.Delete(queue=queue))
    channel.publish("a.b", b"hello", exchange=exchange)
    assert channel.drain(other) == [b"hello"]


def test_patterns_that_differ_only_in_arguments_are_two_bindings(
    channel: Channel, exchange: str, queue: str
) -> None:
    channel.bind(queue, exchange, "a.*", {"n": 1})
    channel.bind(queue, exchange, "a.*", {"n": 2})
    channel.unbind(queue, exchange, "a.*", {"n": 1})
    channel.publish("a.b", b"hello", exchange=exchange)
    assert channel.drain(queue) == [b"hello"]


def test_a_deleted_and_redeclared_exchange_has_no_patterns(
    channel: Channel, exchange: str, queue: str
) -> None:
    channel.bind(queue, exchange, "#")
    channel.call(spec.Exchange.Delete(exchange=exchange))
    channel.declare_exchange(exchange, "topic")
    channel.publish("a", b"hello", exchange=exchange)
    assert channel.drain(queue) == []


def test_the_predeclared_topic_exchange_routes(
    channel: Channel, queue: str, name: Callable
) -> None:
    word = name("word")
    channel.bind(queue, "amq.topic", f"{word}.*")
    channel.publish(f"{word}.x", b"hello", exchange="amq.topic")
    assert channel.drain(queue) == [b"hello"]
