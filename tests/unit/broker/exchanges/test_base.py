from __future__ import annotations

import tracemalloc

import pytest

from tests.unit.broker.exchanges.stand_ins import Queue, bind, routed
from warren.broker.exchanges import EXCHANGE_TYPES, Binding, Exchange
from warren.broker.exchanges.direct import DirectExchange
from warren.broker.exchanges.fanout import FanoutExchange

PLACE = "exchange 'x' in vhost '/'"


@pytest.fixture(params=sorted(EXCHANGE_TYPES))
def exchange(request: pytest.FixtureRequest) -> Exchange:
    return EXCHANGE_TYPES[request.param]("x")


def test_the_types_are_those_a_client_can_declare() -> None:
    assert set(EXCHANGE_TYPES) == {"direct", "fanout", "topic", "headers", "x-consistent-hash"}
    assert all(kind.type == name for name, kind in EXCHANGE_TYPES.items())


def test_without_bindings_a_message_goes_nowhere(exchange: Exchange) -> None:
    assert routed(exchange, "1") == []


def test_the_same_binding_counts_once(exchange: Exchange) -> None:
    queue = Queue("q")
    assert exchange.add(Binding("x", queue, "queue", "1", {"a": 1, "b": 2})) is True
    assert exchange.add(Binding("x", queue, "queue", "1", {"b": 2, "a": 1})) is False
    assert len(exchange.bindings) == 1


def test_a_removed_binding_routes_no_more(exchange: Exchange) -> None:
    binding = bind(exchange, Queue("q"), "1")
    assert routed(exchange, "1") == ["q"]

    assert exchange.remove(binding.key) is binding
    assert routed(exchange, "1") == []
    assert exchange.remove(binding.key) is None


def test_a_destination_stays_until_its_last_binding_goes(exchange: Exchange) -> None:
    queue = Queue("q")
    first, second = bind(exchange, queue, "1"), bind(exchange, queue, "1", {"x-note": "other"})
    assert routed(exchange, "1") == ["q"]

    exchange.remove(first.key)
    # RabbitMQ takes a queue off the ring with whichever of its bindings goes first.
    assert routed(exchange, "1") == ([] if exchange.type == "x-consistent-hash" else ["q"])
    exchange.remove(second.key)
    assert routed(exchange, "1") == []


def test_all_bindings_of_a_destination_go_at_once(exchange: Exchange) -> None:
    going, staying = Queue("going"), Queue("staying")
    made = [bind(exchange, going, str(n)) for n in range(1, 4)]
    kept = bind(exchange, staying, "1")

    assert exchange.remove_destination(going) == made
    assert exchange.remove_destination(going) == []
    assert list(exchange.bindings.values()) == [kept]
    assert routed(exchange, "1") == ["staying"]


def test_a_queue_and_an_exchange_of_one_name_are_two_destinations(exchange: Exchange) -> None:
    queue, other = Queue("same"), FanoutExchange("same")
    assert exchange.add(Binding("x", queue, "queue", "1", {}))
    assert exchange.add(Binding("x", other, "exchange", "1", {}))
    assert exchange.bindings_of(other) != exchange.bindings_of(queue)


@pytest.mark.parametrize("arguments", [{"n": 1}, {"n": 1.0}, {"n": True}, {"n": "1"}, {"n": None}])
def test_arguments_of_other_types_make_another_binding(arguments: dict[str, object]) -> None:
    queue, seen = Queue("q"), [{"n": 1}, {"n": 1.0}, {"n": True}, {"n": "1"}, {"n": None}]
    same = [Binding("x", queue, "queue", "", other).key for other in seen]
    assert same.count(Binding("x", queue, "queue", "", arguments).key) == 1


@pytest.mark.parametrize(
    ("key", "shown"),
    [("", "~"), ("a.b/~ %é", "a.b%2F%7E+%25%C3%A9"), ("~", "%7E"), ("+-_.!", "%2B-_.%21")],
)
def test_the_management_name_is_the_quoted_key(key: str, shown: str) -> None:
    assert Binding("x", Queue("q"), "queue", key, {}).properties_key == shown


def test_the_management_name_tells_arguments_apart() -> None:
    names = [
        Binding("x", Queue("q"), "queue", "k", arguments).properties_key
        for arguments in ({"a": 1}, {"a": 2}, {"a": 1, "b": 2}, {"b": 2, "a": 1})
    ]
    assert len(set(names)) == 3
    assert names[2] == names[3]
    assert all(name.startswith("k~") and len(name) == 8 for name in names)


def test_the_alternate_exchange_is_read_from_the_arguments() -> None:
    assert DirectExchange("x", arguments={"alternate-exchange": "ae"}).alternate == "ae"
    assert DirectExchange("x").alternate is None


@pytest.mark.parametrize(
    ("value", "kind"),
    [(1, "signedint"), (2**40, "long"), (None, "void"), (b"a", "binary"), ({}, "table")],
)
def test_an_alternate_exchange_must_be_text(exchange: Exchange, value: object, kind: str) -> None:
    text = f"invalid type '{kind}' for arg 'alternate-exchange'"
    assert exchange.validate_arguments({"alternate-exchange": value}) == text
    assert exchange.validate_arguments({"alternate-exchange": value}, PLACE) == f"{text} in {PLACE}"
    assert exchange.validate_arguments({"alternate-exchange": ""}) is None


def test_a_binding_without_arguments_costs_no_table() -> None:
    first, second = (Binding("x", Queue("q"), "queue", "k", {}) for _ in range(2))
    assert first.arguments is second.arguments


@pytest.mark.parametrize(("kind", "key"), [("direct", "key-{}"), ("topic", "device.{}.status")])
def test_a_binding_fits_in_600_bytes(kind: str, key: str) -> None:
    count, exchange = 5000, EXCHANGE_TYPES[kind]("x")
    queues = [Queue(f"q{n}") for n in range(count // 10)]
    tracemalloc.start()
    for n in range(count):
        bind(exchange, queues[n % len(queues)], key.format(n))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken / count < 600
