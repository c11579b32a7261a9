"""The same work on both brokers, then the same questions: names and types of the answers agree.

``shapes.json`` is what RabbitMQ 3.10.8 answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.management.http import Api, at, shape
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.wire import Connection

SHAPES: dict[str, Any] = json.loads((Path(__file__).parent / "shapes.json").read_text())
#: There or not there, depending on how long ago something happened.
SOMETIMES = ("idle_since",)
QUESTIONS = {
    "overview": "overview?columns=management_version,rates_mode,exchange_types,product_name,"
    "cluster_name,message_stats,churn_rates,queue_totals,object_totals,node,contexts",
    "nodes": "nodes",
    "connections": "vhosts/{vhost}/connections",
    "connection": "connections/{connection}",
    "channels of a connection": "connections/{connection}/channels",
    "channels": "vhosts/{vhost}/channels",
    "publishing channel": "channels/{publishing}",
    "consuming channel": "channels/{consuming}",
    "consumers": "consumers/{vhost}",
    "queues": "queues/{vhost}?columns=name,vhost,type,messages,arguments,policy",
    "classic queue": "queues/{vhost}/work",
    "queue nobody used": "queues/{vhost}/unused",
    "quorum queue": "queues/{vhost}/quorum",
    "stream": "queues/{vhost}/stream",
    "page of queues": "queues/{vhost}?page=1&page_size=2&columns=name",
    "exchange": "exchanges/{vhost}/events",
    "exchanges": "exchanges/{vhost}?columns=name,vhost,type,durable,arguments",
    "bindings": "bindings/{vhost}",
    "vhost": "vhosts/{vhost}",
    "vhost permissions": "vhosts/{vhost}/permissions",
    "user": "users/guest",
    "definitions": "definitions?columns=rabbit_version,rabbitmq_version,users,vhosts,permissions",
    "definitions of a vhost": "definitions/{vhost}",
    "whoami": "whoami",
    "cluster name": "cluster-name",
    "auth": "auth",
}


@pytest.fixture(scope="module")
def places(broker: TestBroker, api: Api, vhost: str) -> Iterator[dict[str, str]]:
    """Some work done, seen by the API; the names to ask for."""
    connection = Connection.open(broker.url, vhost=vhost)
    publishing, consuming = connection.channel(), connection.channel()
    publishing.declare_exchange("events", "topic", durable=True)
    publishing.declare("work", durable=True, arguments={"x-single-active-consumer": True})
    publishing.declare("unused")
    for kind in ("quorum", "stream"):
        publishing.declare(kind, durable=True, arguments={"x-queue-type": kind})
    publishing.bind("work", "events", "a.#")
    publishing.confirm()
    for _ in range(3):
        publishing.publish("a.b", b"hello", exchange="events")
    publishing.publish("quorum", b"hello")
    publishing.publish("stream", b"hello")
    publishing.wait_confirms(5)
    consuming.qos(2)
    consuming.consume("work", "first")
    consuming.consume("work", "second")
    consuming.deliveries(2)
    local = connection.wire.sock.getsockname()
    name = f"{local[0]}:{local[1]} -> {broker.host}:{broker.port}"
    found = {
        "vhost": at(vhost),
        "connection": at(name),
        "publishing": at(f"{name} (1)"),
        "consuming": at(f"{name} (2)"),
    }
    eventually(lambda: _seen(api, found), within_s=20, every_s=0.2)
    yield found
    connection.close()


def _seen(api: Api, places: dict[str, str]) -> bool:
    """RabbitMQ's API learns what happened some seconds later, of each object by itself."""
    paths = (
        ("channels/{publishing}", "publish"),
        ("channels/{consuming}", "deliver"),
        ("queues/{vhost}/work", "deliver"),
        ("queues/{vhost}/work", "publish"),
        ("queues/{vhost}/quorum", "publish"),
        ("queues/{vhost}/stream", "publish"),
        ("exchanges/{vhost}/events", "publish_in"),
        ("vhosts/{vhost}", "publish"),
        ("vhosts/{vhost}", "deliver"),
    )
    for path, counter in paths:
        answer = api.ask("GET", path.format(**places))
        if answer.status != 200 or counter not in answer.json.get("message_stats", {}):
            return False
    depths = {"work": 3, "unused": 0, "quorum": 1, "stream": 1}
    rows = {name: api.get(f"queues/{places['vhost']}/{name}") for name in depths}
    known = all(
        row.get("messages") == depths[name] and "policy" in row and "reductions" in row
        for name, row in rows.items()
    )
    return known and len(rows["work"]["consumer_details"]) == 2


def _compared(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _compared(item) for key, item in value.items() if key not in SOMETIMES}
    return [_compared(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_has_rabbitmqs_names_and_types(
    api: Api, places: dict[str, str], question: str
) -> None:
    answer = api.get(QUESTIONS[question].format(**places))
    assert _compared(shape(answer)) == SHAPES[question]


def test_the_channel_tells_what_went_over_it(api: Api, places: dict[str, str]) -> None:
    channel = api.get(f"channels/{places['publishing']}")
    stats = channel["message_stats"]
    assert (stats["publish"], stats["confirm"], channel["confirm"]) == (5, 5, True)
    assert channel["messages_unconfirmed"] == 0


def test_the_queue_tells_what_is_in_it(api: Api, places: dict[str, str]) -> None:
    queue = api.get(f"queues/{places['vhost']}/work")
    assert (queue["messages_ready"], queue["messages_unacknowledged"]) == (1, 2)
    assert (queue["message_bytes_ready"], queue["message_bytes_unacknowledged"]) == (5, 10)
    assert (queue["message_stats"]["publish"], queue["message_stats"]["deliver"]) == (3, 2)


def test_consumers_tell_which_of_them_is_active(api: Api, places: dict[str, str]) -> None:
    rows = api.get(f"consumers/{places['vhost']}")
    assert {row["consumer_tag"]: (row["active"], row["activity_status"]) for row in rows} == {
        "first": (True, "single_active"),
        "second": (False, "waiting"),
    }
    queue = api.get(f"queues/{places['vhost']}/work")
    assert queue["single_active_consumer_tag"] == "first"


def test_the_exchange_tells_what_came_and_what_went_on(api: Api, places: dict[str, str]) -> None:
    stats = api.get(f"exchanges/{places['vhost']}/events")["message_stats"]
    assert (stats["publish_in"], stats["publish_out"]) == (3, 3)
