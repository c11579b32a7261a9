"""Totals and rates: what the API counts after work of every kind, and how fast it says it went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pika import spec

from tests.contract.management.http import Api, at
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.wire import Connection

#: Published, of which two nobody takes; and what became of the four in the queue.
PUBLISHED = {"publish": 6, "confirm": 6, "return_unroutable": 1, "drop_unroutable": 1}
TAKEN = {
    "get": 2,
    "get_no_ack": 1,
    "get_empty": 1,
    "deliver": 2,
    "deliver_no_ack": 1,
    "redeliver": 2,
    "ack": 2,
    "deliver_get": 6,
}


@pytest.fixture(scope="module")
def places(broker: TestBroker, api: Api, vhost: str) -> Iterator[dict[str, str]]:
    """Every kind of work, done once and counted."""
    connection = Connection.open(broker.url, vhost=vhost)
    try:
        publishing, taking = connection.channel(), connection.channel()
        publishing.declare("work")
        publishing.confirm()
        for _ in range(4):
            publishing.publish("work", b"hello")
        publishing.publish("nobody", b"hello")
        publishing.publish("nobody", b"hello", mandatory=True)
        publishing.wait_confirms(6)
        _take(taking)
        local = connection.wire.sock.getsockname()
        name = f"{local[0]}:{local[1]} -> {broker.host}:{broker.port}"
        found = {
            "vhost": at(vhost),
            "publishing": at(f"{name} (1)"),
            "taking": at(f"{name} (2)"),
        }
        eventually(lambda: _counted(api, found), within_s=40, every_s=0.5)
        yield found
    finally:
        connection.close()


def _take(channel: Any) -> None:
    """Four messages: got and given back, got and acked, got for good, and given to consumers."""
    channel.nack(channel.get("work", no_ack=False).tag, requeue=True)
    channel.ack(channel.get("work", no_ack=False).tag)
    channel.get("work")
    channel.consume("work", "careful")
    one, two = channel.deliveries(2)
    channel.call(spec.Basic.Cancel("careful"))
    channel.ack(one.tag)
    channel.nack(two.tag, requeue=True)
    channel.consume("work", "careless", no_ack=True)
    channel.deliveries(1)
    channel.call(spec.Basic.Cancel("careless"))
    assert channel.get("work", no_ack=False) is None


def stats(api: Api, path: str, names: dict[str, int]) -> dict[str, int]:
    found = api.ask("GET", path).json.get("message_stats", {})
    return {name: found.get(name, -1) for name in names}


def _counted(api: Api, places: dict[str, str]) -> bool:
    return (
        stats(api, f"channels/{places['publishing']}", PUBLISHED) == PUBLISHED
        and stats(api, f"channels/{places['taking']}", TAKEN) == TAKEN
        and stats(api, f"queues/{places['vhost']}/work", TAKEN) == TAKEN
        and stats(api, f"vhosts/{places['vhost']}", {**PUBLISHED, **TAKEN})
        == {**PUBLISHED, **TAKEN}
    )


def test_a_channel_counts_what_was_published_over_it(api: Api, places: dict[str, str]) -> None:
    assert stats(api, f"channels/{places['publishing']}", PUBLISHED) == PUBLISHED


@pytest.mark.parametrize("place", ["channels/{taking}", "queues/{vhost}/work"])
def test_channel_and_queue_count_what_was_taken(
    api: Api, places: dict[str, str], place: str
) -> None:
    assert stats(api, place.format(**places), TAKEN) == TAKEN


def test_a_queue_counts_what_came_into_it(api: Api, places: dict[str, str]) -> None:
    assert stats(api, f"queues/{places['vhost']}/work", {"publish": 4}) == {"publish": 4}


def test_a_virtual_host_counts_it_all(api: Api, places: dict[str, str]) -> None:
    wanted = {**PUBLISHED, **TAKEN}
    assert stats(api, f"vhosts/{places['vhost']}", wanted) == wanted


def test_a_virtual_host_remembers_what_closed_channels_did(
    broker: TestBroker, api: Api, places: dict[str, str], vhost: str
) -> None:
    connection = Connection.open(broker.url, vhost=vhost)
    channel = connection.channel()
    channel.confirm()
    channel.publish("nobody", b"hello")
    channel.wait_confirms(1)
    path = f"vhosts/{places['vhost']}"
    eventually(lambda: stats(api, path, {"publish": 7}) == {"publish": 7}, within_s=40, every_s=0.5)
    connection.close()
    eventually(lambda: len(api.get(f"{path}/channels")) == 2, within_s=40, every_s=0.5)
    assert stats(api, path, {"publish": 7}) == {"publish": 7}


@pytest.mark.slow
def test_a_rate_is_what_a_counter_grew_by_a_second_and_ends(
    request: pytest.FixtureRequest, broker: TestBroker, api: Api, vhost: str
) -> None:
    """Both look at their counters every five seconds, or every second if they are set so."""
    if request.node.callspec.params["broker"] == "durable":
        pytest.skip("slow, and the same as without a data folder")
    connection = Connection.open(broker.url, vhost=vhost)
    try:
        channel = connection.channel()
        channel.declare("fast")
        path = at("queues", vhost, "fast")

        def rate() -> float:
            found = api.ask("GET", path).json.get("message_stats", {})
            return float(found.get("publish_details", {}).get("rate", 0.0))

        eventually(lambda: api.ask("GET", path).status == 200, within_s=30)
        seen: list[float] = []

        def grew() -> bool:
            for _ in range(10):
                channel.publish("fast", b"hello")
            seen.append(rate())
            return seen[-1] > 0

        eventually(grew, within_s=60, every_s=0.2)
        # At most all of them in one second: a broker that was held up sees many at once.
        assert 0.1 <= seen[-1] <= 10 * len(seen)
        eventually(lambda: rate() == 0.0, within_s=60, every_s=0.5)
    finally:
        connection.close()
