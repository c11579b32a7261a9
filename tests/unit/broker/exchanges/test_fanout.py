from __future__ import annotations

from tests.unit.broker.exchanges.stand_ins import PLAIN, Queue, bind, routed
from warren.broker.exchanges.fanout import FanoutExchange


def test_the_routing_key_does_not_matter() -> None:
    exchange = FanoutExchange("x")
    bind(exchange, Queue("a"), "one")
    bind(exchange, Queue("b"), "two")
    assert routed(exchange, "three") == ["a", "b"]


def test_a_queue_bound_twice_gets_the_message_once() -> None:
    exchange, queue = FanoutExchange("x"), Queue("a")
    bind(exchange, queue, "one")
    bind(exchange, queue, "two")
    assert routed(exchange) == ["a"]


def test_the_route_follows_the_bindings() -> None:
    exchange, queue = FanoutExchange("x"), Queue("a")
    bind(exchange, queue)
    assert routed(exchange) == ["a"]
    bind(exchange, Queue("b"))
    assert routed(exchange) == ["a", "b"]
    exchange.remove_destination(queue)
    assert routed(exchange) == ["b"]


def test_all_keys_share_one_route() -> None:
    exchange = FanoutExchange("x")
    bind(exchange, Queue("a"))
    assert exchange.route("one", PLAIN) is exchange.route("two", PLAIN)
