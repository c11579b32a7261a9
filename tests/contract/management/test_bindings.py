"""Exchanges and bindings over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.management.http import Api, at


@pytest.fixture
def pair(api: Api, vhost: str, name: Callable[[str], str]) -> tuple[str, str]:
    """A topic exchange and a queue."""
    exchange, queue = name("exchange"), name("queue")
    assert api.put(at("exchanges", vhost, exchange), {"type": "topic"}) == (201, None)
    assert api.put(at("queues", vhost, queue)) == (201, None)
    return exchange, queue


@pytest.fixture
def path(vhost: str, pair: tuple[str, str]) -> str:
    """Of the bindings between the two."""
    return at("bindings", vhost, "e", pair[0], "q", pair[1])


def row(vhost: str, pair: tuple[str, str], key: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {
        "source": pair[0],
        "vhost": vhost,
        "destination": pair[1],
        "destination_type": "queue",
        "routing_key": key,
        "arguments": arguments,
        "properties_key": name,
    }


@pytest.mark.parametrize(
    ("key", "label"),
    [("orders", "orders"), ("a.#", "a.%23"), ("", "~"), ("a b~c/d", "a+b%7Ec%2Fd")],
)
def test_a_binding_is_made_shown_and_removed(
    api: Api, vhost: str, pair: tuple[str, str], path: str, key: str, label: str
) -> None:
    answer = api.ask("POST", path, {"routing_key": key})
    assert answer.said == (201, None)
    assert answer.headers["location"] == f"{pair[1]}/{at(label)}"
    assert api.get(path) == [row(vhost, pair, key, label)]
    one = f"{path}/{at(label)}"
    assert api.get(one) == row(vhost, pair, key, label)
    assert api.delete(one) == (204, None)
    assert api.delete(one)[0] == 404
    assert api.get(path) == []


def test_arguments_make_another_binding(
    api: Api, vhost: str, pair: tuple[str, str], path: str
) -> None:
    api.post(path, {"routing_key": "k"})
    api.post(path, {"routing_key": "k", "arguments": {"a": 1}})
    names = sorted(binding["properties_key"] for binding in api.get(path))
    assert names[0] == "k"
    assert names[1].startswith("k~")
    assert api.delete(f"{path}/{at(names[1])}") == (204, None)
    assert [binding["arguments"] for binding in api.get(path)] == [{}]


def test_every_queue_is_bound_to_the_default_exchange(
    api: Api, vhost: str, pair: tuple[str, str], path: str
) -> None:
    api.post(path, {"routing_key": "k"})
    _, queue = pair
    assert api.get(at("queues", vhost, queue, "bindings")) == [
        row(vhost, ("", queue), queue, queue),
        row(vhost, pair, "k", "k"),
    ]


def test_exchanges_can_be_bound_to_exchanges(api: Api, vhost: str, pair: tuple[str, str]) -> None:
    exchange, _ = pair
    between = at("bindings", vhost, "e", exchange, "e", "amq.fanout")
    assert api.post(between, {"routing_key": "z"}) == (201, None)
    expected = [{**row(vhost, (exchange, "amq.fanout"), "z", "z"), "destination_type": "exchange"}]
    assert api.get(between) == expected
    assert api.get(at("exchanges", vhost, exchange, "bindings", "source")) == expected
    found = api.get(at("exchanges", vhost, "amq.fanout", "bindings", "destination"))
    assert expected[0] in found


@pytest.mark.parametrize(
    ("source", "destination", "kind", "missing"),
    [("{0}", "nothing", "queue", "nothing"), ("nothing", "{1}", "exchange", "nothing")],
)
def test_what_is_not_there_can_not_be_bound(
    api: Api,
    vhost: str,
    pair: tuple[str, str],
    source: str,
    destination: str,
    kind: str,
    missing: str,
) -> None:
    path = at("bindings", vhost, "e", source.format(*pair), "q", destination.format(*pair))
    reason = f"no {kind} '{missing}' in vhost '{vhost}'"
    assert api.post(path, {}) == (404, {"error": "not_found", "reason": reason})


def test_an_exchange_in_use_stays_if_asked_to(
    api: Api, vhost: str, pair: tuple[str, str], path: str
) -> None:
    api.post(path, {"routing_key": "k"})
    exchange = at("exchanges", vhost, pair[0])
    reason = f"exchange '{pair[0]}' in vhost '{vhost}' in use"
    assert api.delete(f"{exchange}?if-unused=true") == (
        400,
        {"error": "bad_request", "reason": reason},
    )
    assert api.delete(exchange) == (204, None)


def test_another_exchange_of_the_same_name_is_refused(
    api: Api, vhost: str, pair: tuple[str, str]
) -> None:
    where = f"exchange '{pair[0]}' in vhost '{vhost}'"
    assert api.put(at("exchanges", vhost, pair[0]), {"type": "fanout"}) == (
        400,
        {
            "error": "bad_request",
            "reason": f"inequivalent arg 'type' for {where}: "
            "received 'fanout' but current is 'topic'",
        },
    )
