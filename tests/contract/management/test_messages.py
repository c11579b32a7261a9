"""Publishing and getting over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.management.http import Api, at

Publish = Callable[..., tuple[int, Any]]


@pytest.fixture
def queue(api: Api, vhost: str, name: Callable[[str], str]) -> str:
    """An empty queue; its path."""
    path = at("queues", vhost, name("queue"))
    assert api.put(path) == (201, None)
    return path


@pytest.fixture
def publish(api: Api, vhost: str, queue: str) -> Publish:
    """Publishes to the queue; arguments go into the body instead of the usual."""

    def send(exchange: str = "amq.default", **changes: Any) -> tuple[int, Any]:
        body = {
            "properties": {},
            "routing_key": queue.rpartition("/")[2],
            "payload": "hello",
            "payload_encoding": "string",
            **changes,
        }
        return api.post(at("exchanges", vhost, exchange, "publish"), body)

    return send


def take(api: Api, queue: str, **changes: Any) -> tuple[int, Any]:
    body = {"count": 10, "ackmode": "ack_requeue_true", "encoding": "auto", **changes}
    return api.post(f"{queue}/get", body)


def test_a_published_message_comes_out_as_it_went_in(
    api: Api, queue: str, publish: Publish
) -> None:
    properties = {
        "delivery_mode": 2,
        "headers": {"number": 1, "deep": {"list": [1, "x", True]}},
        "content_type": "text/plain",
        "timestamp": 1700000000,
    }
    assert publish(properties=properties) == (200, {"routed": True})
    status, messages = take(api, queue)
    assert (status, messages) == (
        200,
        [
            {
                "payload_bytes": 5,
                "redelivered": False,
                "exchange": "",
                "routing_key": queue.rpartition("/")[2],
                "message_count": 0,
                "properties": properties,
                "payload": "hello",
                "payload_encoding": "string",
            }
        ],
    )


def test_octets_travel_as_base64(api: Api, queue: str, publish: Publish) -> None:
    assert publish(payload="/wA=", payload_encoding="base64") == (200, {"routed": True})
    message = take(api, queue)[1][0]
    assert (message["payload"], message["payload_encoding"]) == ("/wA=", "base64")
    assert (message["payload_bytes"], message["properties"]) == (2, [])


def test_a_message_for_nobody_is_not_routed(publish: Publish) -> None:
    assert publish(routing_key="nobody") == (200, {"routed": False})


@pytest.mark.parametrize(
    ("ackmode", "left"),
    [
        ("ack_requeue_true", True),
        ("reject_requeue_true", True),
        ("ack_requeue_false", False),
        ("reject_requeue_false", False),
    ],
)
def test_the_ackmode_says_whether_messages_stay(
    api: Api, queue: str, publish: Publish, ackmode: str, left: bool
) -> None:
    publish()
    assert len(take(api, queue, ackmode=ackmode)[1]) == 1
    again = take(api, queue)[1]
    assert [message["redelivered"] for message in again] == ([True] if left else [])


def test_a_payload_can_be_cut_short(api: Api, queue: str, publish: Publish) -> None:
    publish()
    message = take(api, queue, truncate=3)[1][0]
    assert (message["payload"], message["payload_bytes"]) == ("hel", 5)


def test_no_more_messages_come_than_asked_for(api: Api, queue: str, publish: Publish) -> None:
    for _ in range(3):
        publish()
    assert [m["message_count"] for m in take(api, queue, count=2)[1]] == [2, 1]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"payload_encoding": "other"}, ["unsupported_encoding", "other"]),
        ({"payload": 1}, "payload_not_string"),
        ({"properties": {"delivery_mode": "x"}}, ["not_int", "delivery_mode"]),
        (
            {"properties": {"expiration": "soon"}},
            "406 PRECONDITION_FAILED - invalid expiration 'soon': no_integer",
        ),
    ],
)
def test_what_can_not_be_published_is_refused(
    publish: Publish, changes: dict[str, Any], reason: Any
) -> None:
    assert publish(**changes) == (400, {"error": "bad_request", "reason": reason})


def test_publishing_to_an_exchange_that_is_not_there_is_refused(
    publish: Publish, vhost: str
) -> None:
    reason = f"404 NOT_FOUND - no exchange 'nowhere' in vhost '{vhost}'"
    assert publish("nowhere") == (400, {"error": "bad_request", "reason": reason})


def test_a_queue_that_refuses_the_message_is_told_of(
    api: Api, vhost: str, publish: Publish, name: Callable[[str], str]
) -> None:
    full = name("full")
    arguments = {"x-max-length": 0, "x-overflow": "reject-publish"}
    api.put(at("queues", vhost, full), {"arguments": arguments})
    reason = "rejected Unable to publish message. Check queue limits."
    assert publish(routing_key=full) == (400, {"error": "bad_request", "reason": reason})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"encoding": "other"}, "Unsupported encoding. Please use auto or base64."),
        ({"count": "x"}, ["not_integer", "x"]),
    ],
)
def test_what_can_not_be_got_is_refused(
    api: Api, queue: str, changes: dict[str, Any], reason: Any
) -> None:
    assert take(api, queue, **changes) == (400, {"error": "bad_request", "reason": reason})


def test_what_is_missing_in_a_body_is_named(api: Api, queue: str, vhost: str) -> None:
    assert api.post(f"{queue}/get", {"count": 1}) == (
        400,
        {"error": "bad_request", "reason": "[{key_missing,ackmode},{key_missing,encoding}]"},
    )


def test_getting_from_a_queue_that_is_not_there_is_refused(api: Api, vhost: str) -> None:
    reason = f"NOT_FOUND - no queue 'nothing' in vhost '{vhost}'"
    assert take(api, at("queues", vhost, "nothing")) == (
        404,
        {"error": "not_found", "reason": reason},
    )


def test_a_queue_is_purged_and_deleted(api: Api, queue: str, publish: Publish) -> None:
    publish()
    _, _, vhost = queue.partition("/")
    label = f"queue '{queue.rpartition('/')[2]}' in vhost '{vhost.partition('/')[0]}'"
    assert api.delete(f"{queue}?if-empty=true") == (
        400,
        {"error": "bad_request", "reason": f"{label} not empty"},
    )
    assert api.delete(f"{queue}/contents") == (204, None)
    assert api.delete(f"{queue}?if-empty=true") == (204, None)
    assert api.delete(queue)[0] == 404
