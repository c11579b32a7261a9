from __future__ import annotations

from tests.unit.broker.exchanges.stand_ins import PLAIN, Queue, bind, routed
from warren.broker.exchanges.direct import DirectExchange


def test_only_the_very_same_key_matches() -> None:
    exchange = DirectExchange("x")
    bind(exchange, Queue("q"), "a.b")
    assert routed(exchange, "a.b") == ["q"]
    for other in ("a", "a.b.", "A.B", "*.b", "#", ""):
        assert routed(exchange, other) == []


def test_every_queue_of_a_key_gets_the_message() -> None:
    exchange = DirectExchange("x")
    queues = [Queue("a"), Queue("b"), Queue("c")]
    for queue in queues:
        bind(exchange, queue, "k")
    assert routed(exchange, "k") == ["a", "b", "c"]

    exchange.remove_destination(queues[1])
    assert routed(exchange, "k") == ["a", "c"]


def test_keys_that_are_not_utf8_are_told_apart() -> None:
    exchange = DirectExchange("x")
    bind(exchange, Queue("q"), b"\xff".decode("utf-8", "surrogateescape"))
    assert routed(exchange, b"\xff".decode("utf-8", "surrogateescape")) == ["q"]
    assert routed(exchange, b"\xfe".decode("utf-8", "surrogateescape")) == []


def test_a_route_does_not_change_after_it_was_given() -> None:
    exchange, first = DirectExchange("x"), Queue("a")
    bind(exchange, first, "k")
    bind(exchange, Queue("b"), "k")
    given = exchange.route("k", PLAIN)
    exchange.remove_destination(first)
    assert [queue.name for queue in given] == ["a", "b"]
