"""Counters as they were: samples over a span of time, and what they make on average."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.management.http import Api, at
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.wire import Connection


def asked(*prefixes: str) -> str:
    return "&".join(f"{prefix}_age=60&{prefix}_incr=1" for prefix in prefixes)


@pytest.fixture(scope="module")
def worked(broker: TestBroker, api: Api, vhost: str) -> Iterator[dict[str, str]]:
    """A queue to which three messages went, and whose samples know of it."""
    connection = Connection.open(broker.url, vhost=vhost)
    try:
        yield _work(connection, broker, api, vhost)
    finally:
        connection.close()


def _work(connection: Connection, broker: TestBroker, api: Api, vhost: str) -> dict[str, str]:
    channel = connection.channel()
    channel.declare_exchange("events", "fanout")
    channel.declare("work")
    channel.bind("work", "events", "")
    channel.confirm()
    for _ in range(3):
        channel.publish("", b"hello", exchange="events")
    channel.wait_confirms(3)
    local = connection.wire.sock.getsockname()
    name = f"{local[0]}:{local[1]} -> {broker.host}:{broker.port}"
    places = {"vhost": at(vhost), "connection": at(name), "channel": at(f"{name} (1)")}
    eventually(lambda: _sampled(api, places), within_s=40, every_s=0.5)
    return places


QUESTIONS = {
    "queue": ("queues/{vhost}/work", "lengths", "messages_details", 3),
    "queue, ready": ("queues/{vhost}/work", "lengths", "messages_ready_details", 3),
    "queue, rates": ("queues/{vhost}/work", "msg_rates", "message_stats.publish_details", 3),
    "exchange": ("exchanges/{vhost}/events", "msg_rates", "message_stats.publish_in_details", 3),
    "channel": ("channels/{channel}", "msg_rates", "message_stats.confirm_details", 3),
    "vhost": ("vhosts/{vhost}", "msg_rates", "message_stats.publish_details", 3),
    "connection": ("connections/{connection}", "data_rates", "recv_oct_details", None),
}


def details(api: Api, places: dict[str, str], question: str) -> Any:
    path, prefix, field, _ = QUESTIONS[question]
    found = api.ask("GET", f"{path.format(**places)}?{asked(prefix)}").json
    for part in field.split("."):
        found = found.get(part, {})
    return found


def _sampled(api: Api, places: dict[str, str]) -> bool:
    for question, (*_, expected) in QUESTIONS.items():
        samples = details(api, places, question).get("samples", [])
        if len(samples) < 2 or (expected is not None and samples[0]["sample"] != expected):
            return False
    return True


@pytest.mark.parametrize("question", QUESTIONS)
def test_samples_come_newest_first_a_step_apart(
    api: Api, worked: dict[str, str], question: str
) -> None:
    samples = details(api, worked, question)["samples"]
    times = [each["timestamp"] for each in samples]
    assert times == [times[0] - 1000 * number for number in range(len(times))]
    assert times[0] % 1000 == 0
    values = [each["sample"] for each in samples]
    assert values == sorted(values, reverse=True)  # nothing was taken out


@pytest.mark.parametrize("question", QUESTIONS)
def test_averages_are_those_of_the_samples(api: Api, worked: dict[str, str], question: str) -> None:
    told = details(api, worked, question)
    assert set(told) == {"rate", "samples", "avg", "avg_rate"}
    newest, oldest = told["samples"][0], told["samples"][-1]
    values = [each["sample"] for each in told["samples"]]
    assert told["avg"] == pytest.approx(sum(values) / len(values))
    grown, took_ms = newest["sample"] - oldest["sample"], newest["timestamp"] - oldest["timestamp"]
    assert told["avg_rate"] == pytest.approx(grown * 1000 / took_ms)


def test_a_list_has_samples_too(api: Api, worked: dict[str, str]) -> None:
    (row,) = api.get(f"queues/{worked['vhost']}?{asked('lengths')}")
    assert row["messages_details"]["samples"][0]["sample"] == 3


def test_the_overview_has_samples(api: Api, worked: dict[str, str]) -> None:
    found = api.get(f"overview?{asked('lengths', 'msg_rates')}")
    assert len(found["queue_totals"]["messages_details"]["samples"]) > 1
    assert len(found["message_stats"]["publish_details"]["samples"]) > 1


def test_the_node_has_samples(api: Api, worked: dict[str, str]) -> None:
    (node,) = api.get(f"nodes?{asked('node_stats')}")
    assert node["mem_used_details"]["samples"][0]["sample"] > 0
    assert len(node["connection_created_details"]["samples"]) > 1


def test_only_those_that_were_asked_for_come(api: Api, worked: dict[str, str]) -> None:
    row = api.get(f"queues/{worked['vhost']}/work?{asked('msg_rates')}")
    assert "samples" in row["message_stats"]["publish_details"]
    assert set(row["messages_details"]) == {"rate"}
    row = api.get(f"queues/{worked['vhost']}/work")
    assert set(row["message_stats"]["publish_details"]) == {"rate"}


@pytest.mark.parametrize(
    "query", ["lengths_age=60", "lengths_incr=5", "lengths_age=x&lengths_incr=5"]
)
def test_half_a_range_is_none(api: Api, worked: dict[str, str], query: str) -> None:
    row = api.get(f"queues/{worked['vhost']}/work?{query}")
    assert set(row["messages_details"]) == {"rate"}


@pytest.mark.parametrize(("age", "step"), [(0, 5), (-5, 5), (10, 0), (1000, 1)])
def test_a_range_that_makes_no_sense_is_refused(
    api: Api, worked: dict[str, str], age: int, step: int
) -> None:
    answer = api.ask("GET", f"overview?lengths_age={age}&lengths_incr={step}")
    reason = f"Invalid range parameters: age {age}, incr {step}"
    assert answer.said == (400, {"error": "bad_request", "reason": reason})
