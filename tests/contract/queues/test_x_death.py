"""The x-death header and its relatives: the story of a message's deaths."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from pika import data

from tests.contract.queues.steps import arrival, drain, fill, reject_next, wait_ready
from tests.support.eventually import eventually
from tests.support.wire import Channel, Closed
from tests.support.wire_frames import Field

Queue = Callable[..., str]


def to(queue: str, **arguments: Any) -> dict[str, Any]:
    """Arguments of a queue whose dead messages go to another queue."""
    return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue, **arguments}


def headers_after_reject(channel: Channel, queue_with: Queue, **properties: Any) -> Any:
    """Publish a message, reject it, and return (its queue, its headers where it went)."""
    grave = queue_with()
    source = queue_with(to(grave))
    fill(channel, source, "a", **properties)
    reject_next(channel, source)
    return source, arrival(channel, grave).properties.headers


def test_the_first_death_is_told_in_full(channel: Channel, queue_with: Queue) -> None:
    source, headers = headers_after_reject(channel, queue_with)
    (event,) = headers["x-death"]
    assert abs(event.pop("time").timestamp() - time.time()) < 5
    assert event == {
        "count": 1,
        "reason": "rejected",
        "queue": source,
        "exchange": "",
        "routing-keys": [source],
    }
    assert headers["x-first-death-reason"] == "rejected"
    assert headers["x-first-death-queue"] == source
    assert headers["x-first-death-exchange"] == ""


def test_headers_are_sorted_and_the_first_event_has_its_own_order(
    channel: Channel, queue_with: Queue
) -> None:
    _, headers = headers_after_reject(
        channel, queue_with, headers={"z": 1, "a": 2}, expiration="60000"
    )
    assert list(headers) == [
        "a",
        "x-death",
        "x-first-death-exchange",
        "x-first-death-queue",
        "x-first-death-reason",
        "z",
    ]
    assert list(headers["x-death"][0]) == [
        "count",
        "reason",
        "queue",
        "time",
        "exchange",
        "routing-keys",
        "original-expiration",
    ]


def test_the_count_is_a_64_bit_integer(channel: Channel, queue_with: Queue) -> None:
    _, headers = headers_after_reject(channel, queue_with)
    assert isinstance(headers["x-death"][0]["count"], data.long)


def test_the_exchange_and_key_are_those_it_was_published_with(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    source = queue_with(to(queue))
    channel.bind(source, "amq.topic", "#")
    channel.publish(f"some.{queue}", b"a", exchange="amq.topic")
    reject_next(channel, source)
    headers = arrival(channel, queue).properties.headers
    event = headers["x-death"][0]
    assert (event["exchange"], event["routing-keys"]) == ("amq.topic", [f"some.{queue}"])
    assert headers["x-first-death-exchange"] == "amq.topic"


def test_expiration_is_taken_off_and_remembered(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    source = queue_with(to(queue))
    fill(channel, source, "a", expiration="50")
    dead = arrival(channel, queue).properties
    assert dead.expiration is None
    assert dead.headers["x-death"][0]["original-expiration"] == "50"


def test_expiration_is_taken_off_a_rejected_message_too(
    channel: Channel, queue_with: Queue
) -> None:
    _, headers = headers_after_reject(channel, queue_with, expiration="60000")
    assert headers["x-death"][0]["original-expiration"] == "60000"


def test_a_message_without_expiration_has_none_to_remember(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    source = queue_with(to(queue, **{"x-message-ttl": 50}))
    fill(channel, source, "a")
    assert "original-expiration" not in arrival(channel, queue).properties.headers["x-death"][0]


def test_the_second_death_is_first_in_the_list_and_sorted_by_key(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    second = queue_with(to(queue))
    first = queue_with(to(second))
    fill(channel, first, "a", expiration="30")
    wait_ready(channel, second, 1)
    reject_next(channel, second)
    headers = arrival(channel, queue).properties.headers
    last_event, first_event = headers["x-death"]
    assert (last_event["queue"], last_event["reason"]) == (second, "rejected")
    assert (first_event["queue"], first_event["reason"]) == (first, "expired")
    assert list(last_event) == ["count", "exchange", "queue", "reason", "routing-keys", "time"]
    assert "original-expiration" not in last_event
    assert first_event["original-expiration"] == "30"
    assert headers["x-first-death-queue"] == first
    assert headers["x-first-death-reason"] == "expired"


def test_with_each_further_death_the_older_ones_turn_round(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    chain = [queue]
    for _ in range(4):
        chain.insert(0, queue_with(to(chain[0], **{"x-message-ttl": 30})))
    fill(channel, chain[0], "a")
    death = arrival(channel, queue).properties.headers["x-death"]
    assert [chain.index(event["queue"]) for event in death] == [3, 1, 0, 2]


def test_another_death_for_the_same_reason_in_the_same_queue_is_counted(
    channel: Channel, queue_with: Queue
) -> None:
    queue = queue_with({"x-dead-letter-exchange": ""})
    fill(channel, queue, "a", expiration="60000")
    for _ in range(2):
        wait_ready(channel, queue, 1)
        reject_next(channel, queue)
    (event,) = arrival(channel, queue).properties.headers["x-death"]
    assert event["count"] == 2
    assert event["original-expiration"] == "60000"
    assert list(event) == sorted(event)


def test_another_reason_in_the_same_queue_is_another_event(
    channel: Channel, queue_with: Queue, name: Callable[[str], str]
) -> None:
    work = name("work")
    retry = queue_with(to(work, **{"x-message-ttl": 30}))
    channel.declare(work, arguments=to(retry, **{"x-max-length": 1}))
    fill(channel, work, "a")
    reject_next(channel, work)
    wait_ready(channel, work, 1)
    channel.consume(retry)
    fill(channel, work, "b")
    death = channel.delivery().properties.headers["x-death"]
    events = [(event["queue"], event["reason"]) for event in death]
    assert events == [(work, "maxlen"), (work, "rejected"), (retry, "expired")]


@pytest.mark.parametrize("odd", ["text", 5, {"queue": "x"}, True], ids=repr)
def test_an_incoming_header_of_another_type_is_replaced(
    channel: Channel, queue_with: Queue, odd: Any
) -> None:
    source, headers = headers_after_reject(channel, queue_with, headers={"x-death": odd})
    (event,) = headers["x-death"]
    assert (event["queue"], event["reason"], event["count"]) == (source, "rejected", 1)
    assert "x-first-death-queue" not in headers


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ([], []),
        ([{"queue": "q", "reason": "r"}], [{"queue": "q", "reason": "r"}]),
        ([{"count": "many"}], [{"count": "many"}]),
        ([{"queue": "q"}, {"queue": "q"}], [{"count": 2, "queue": "q"}]),
        (
            [{"queue": "p"}, {"queue": "q"}],
            [{"count": 1, "queue": "q"}, {"count": 1, "queue": "p"}],
        ),
    ],
    ids=["nothing", "one", "a count that is none", "one twice", "two"],
)
def test_an_incoming_story_is_carried_on(
    channel: Channel, queue_with: Queue, told: Any, kept: Any
) -> None:
    source, headers = headers_after_reject(channel, queue_with, headers={"x-death": told})
    event, *older = headers["x-death"]
    assert (event["queue"], event["count"]) == (source, 1)
    assert older == kept
    assert "x-first-death-queue" not in headers


@pytest.mark.parametrize("count", [3, Field("l", 3), Field("b", 3)], ids=["int", "long", "byte"])
def test_an_incoming_count_goes_on(
    channel: Channel, queue: str, queue_with: Queue, count: Any
) -> None:
    source = queue_with(to(queue))
    told = {"queue": source, "reason": "rejected", "count": count}
    fill(channel, source, "a", headers={"x-death": [told]})
    reject_next(channel, source)
    (event,) = arrival(channel, queue).properties.headers["x-death"]
    assert event == {"queue": source, "reason": "rejected", "count": 4}


@pytest.mark.parametrize("odd", [["text", "text"], [1, {"queue": "q"}]], ids=repr)
def test_a_story_without_sense_harms_the_queue_for_a_moment_at_most(
    channel: Channel, queue: str, queue_with: Queue, odd: Any
) -> None:
    source = queue_with(to(queue))
    fill(channel, source, "a", headers={"x-death": odd})
    reject_next(channel, source)

    def usable() -> bool:
        visitor = channel.connection.channel()
        try:
            fill(visitor, source, "b")
            return drain(visitor, source) == "b"
        except Closed as refusal:  # RabbitMQ's queue process dies of it and is started again
            assert refusal.code == 404
            return False

    eventually(usable)


def test_a_cycle_told_by_a_client_is_none(channel: Channel, queue: str, queue_with: Queue) -> None:
    source = queue_with(to(queue, **{"x-message-ttl": 0}))
    told = [{"queue": queue, "reason": "rejected"}]
    fill(channel, source, "a", headers={"x-death": told})
    assert arrival(channel, queue).body == b"a"


def test_a_client_can_tell_a_cycle_and_lose_its_message(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    source = queue_with(to(queue, **{"x-message-ttl": 0}))
    told = [{"queue": queue, "reason": "expired"}]
    fill(channel, source, "a", headers={"x-death": told})
    fill(channel, source, "b")
    assert arrival(channel, queue).body == b"b"
    assert channel.count(queue) == 0
