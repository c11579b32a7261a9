"""Dead-lettering: why, where to, with which key, and when a cycle is cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.queues.steps import (
    arrival,
    drain,
    fill,
    reject_next,
    take,
    wait_ready,
    word,
)
from tests.support.clock_race import against_the_clock
from tests.support.wire import Channel, Message

Queue = Callable[..., str]


def to(queue: str, **arguments: Any) -> dict[str, Any]:
    """Arguments of a queue whose dead messages go to another queue."""
    return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue, **arguments}


def reason(message: Message) -> str:
    return message.properties.headers["x-death"][0]["reason"]


@pytest.mark.parametrize("refuse", [Channel.nack, Channel.reject], ids=["nack", "reject"])
def test_a_rejected_message_is_dead_lettered(
    channel: Channel, queue: str, queue_with: Queue, refuse: Callable[..., None]
) -> None:
    source = queue_with(to(queue))
    fill(channel, source, "a")
    refuse(channel, take(channel, source).tag, requeue=False)
    dead = arrival(channel, queue)
    assert (dead.body, reason(dead)) == (b"a", "rejected")


def test_rejected_messages_keep_their_order(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    source = queue_with(to(queue))
    fill(channel, source, "abc")
    channel.consume(source)
    last = channel.deliveries(3)[-1]
    channel.nack(last.tag, multiple=True, requeue=False)
    wait_ready(channel, queue, 3)
    assert drain(channel, queue) == "abc"


def test_a_requeued_message_is_not_dead_lettered(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    source = queue_with(to(queue))
    fill(channel, source, "a")
    channel.nack(take(channel, source).tag, requeue=True)
    wait_ready(channel, source, 1)
    assert channel.count(queue) == 0


@pytest.mark.parametrize(
    ("arguments", "expiration"),
    [({"x-message-ttl": 50}, None), ({}, "50"), ({"x-message-ttl": 0}, None), ({}, "0")],
)
def test_expired_messages_are_dead_lettered_in_order(
    channel: Channel,
    queue: str,
    queue_with: Queue,
    arguments: dict[str, int],
    expiration: str | None,
) -> None:
    source = queue_with(to(queue, **arguments))
    fill(channel, source, "abc", expiration=expiration)
    wait_ready(channel, queue, 3)
    dead = [arrival(channel, queue) for _ in range(3)]
    assert word(dead) == "abc"
    assert {reason(message) for message in dead} == {"expired"}


def test_messages_that_had_to_make_room_are_dead_lettered_in_order(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    source = queue_with(to(queue, **{"x-max-length": 1}))
    fill(channel, source, "abc")
    wait_ready(channel, queue, 2)
    dead = [arrival(channel, queue) for _ in range(2)]
    assert word(dead) == "ab"
    assert {reason(message) for message in dead} == {"maxlen"}


def test_without_a_dead_letter_exchange_a_rejected_message_is_dropped(
    channel: Channel, queue: str
) -> None:
    fill(channel, queue, "ab")
    reject_next(channel, queue)
    assert drain(channel, queue) == "b"


def test_it_keeps_its_routing_key_where_no_other_is_given(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    source = queue_with({"x-dead-letter-exchange": "amq.direct"})
    channel.bind(source, "amq.topic", "a.#")
    channel.bind(queue, "amq.direct", f"a.{queue}")
    channel.publish(f"a.{queue}", b"a", exchange="amq.topic")
    reject_next(channel, source)
    dead = arrival(channel, queue).method
    assert (dead.exchange, dead.routing_key) == ("amq.direct", f"a.{queue}")


def test_it_is_delivered_with_the_key_that_was_given(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    source = queue_with(to(queue))
    fill(channel, source, "a")
    reject_next(channel, source)
    dead = arrival(channel, queue).method
    assert (dead.exchange, dead.routing_key, dead.redelivered) == ("", queue, False)


def test_an_empty_key_is_a_key(channel: Channel, queue_with: Queue) -> None:
    exchange = "amq.headers"  # whatever the key, the binding below matches
    source = queue_with({"x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": ""})
    queue = queue_with()
    channel.bind(queue, exchange, arguments={"x-match": "all", "for": queue})
    fill(channel, source, "a", headers={"for": queue})
    reject_next(channel, source)
    assert arrival(channel, queue).method.routing_key == ""


def test_body_and_properties_are_kept(channel: Channel, queue: str, queue_with: Queue) -> None:
    source = queue_with(to(queue))
    properties = {
        "content_type": "text/plain",
        "content_encoding": "utf-8",
        "delivery_mode": 2,
        "priority": 3,
        "correlation_id": "c",
        "reply_to": "r",
        "message_id": "m",
        "timestamp": 5,
        "type": "t",
        "user_id": "guest",
        "app_id": "a",
    }
    fill(channel, source, "a", headers={"mine": 1}, **properties)
    reject_next(channel, source)
    dead = arrival(channel, queue).properties
    assert {key: getattr(dead, key) for key in properties} == properties
    assert dead.headers["mine"] == 1


def test_a_dead_letter_exchange_that_is_not_there_drops_until_it_is(
    channel: Channel, queue: str, queue_with: Queue, name: Callable[[str], str]
) -> None:
    exchange = name("dead")
    source = queue_with({"x-dead-letter-exchange": exchange})
    fill(channel, source, "ab")
    reject_next(channel, source)
    channel.declare_exchange(exchange, "fanout")
    channel.bind(queue, exchange)
    reject_next(channel, source)
    assert arrival(channel, queue).body == b"b"
    assert channel.count(queue) == 0


def test_all_queues_of_the_dead_letter_exchange_get_it(
    channel: Channel, queue_with: Queue, name: Callable[[str], str]
) -> None:
    exchange = name("dead")
    channel.declare_exchange(exchange, "fanout", internal=True)  # no matter
    queues = [queue_with(), queue_with()]
    for queue in queues:
        channel.bind(queue, exchange)
    source = queue_with({"x-dead-letter-exchange": exchange})
    fill(channel, source, "a")
    reject_next(channel, source)
    assert [arrival(channel, queue).body for queue in queues] == [b"a", b"a"]


def test_one_that_nobody_takes_goes_to_the_alternate_exchange(
    channel: Channel, queue: str, queue_with: Queue, name: Callable[[str], str]
) -> None:
    spare, exchange = name("spare"), name("dead")
    channel.declare_exchange(spare, "fanout")
    channel.bind(queue, spare)
    channel.declare_exchange(exchange, arguments={"alternate-exchange": spare})
    source = queue_with({"x-dead-letter-exchange": exchange})
    fill(channel, source, "a")
    reject_next(channel, source)
    assert arrival(channel, queue).body == b"a"


def test_a_message_for_two_queues_can_die_in_one(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    source, other = queue_with(to(queue)), queue_with()
    for bound in (source, other):
        channel.bind(bound, "amq.direct", queue)
    channel.publish(queue, b"a", exchange="amq.direct", expiration="60000")
    reject_next(channel, source)
    assert arrival(channel, queue).body == b"a"
    living = take(channel, other).properties
    assert (living.headers, living.expiration) == (None, "60000")


def test_without_a_key_of_its_own_it_goes_to_cc_and_bcc_keys_too(
    channel: Channel, queue_with: Queue
) -> None:
    copied, blind = queue_with(), queue_with()
    for queue in (copied, blind):
        channel.bind(queue, "amq.direct", queue + "-dead")
    source = queue_with({"x-dead-letter-exchange": "amq.direct"})
    headers = {"CC": [copied + "-dead"], "BCC": [blind + "-dead"]}
    fill(channel, source, "a", headers=headers)
    reject_next(channel, source)
    first, second = arrival(channel, copied), arrival(channel, blind)
    for dead in (first, second):
        assert dead.method.routing_key == source
        assert dead.properties.headers["CC"] == [copied + "-dead"]
        assert "BCC" not in dead.properties.headers
        assert dead.properties.headers["x-death"][0]["routing-keys"] == [source, copied + "-dead"]


def test_with_a_key_of_its_own_it_goes_there_only_and_loses_cc(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    copied = queue_with()
    channel.bind(queue, "amq.direct", queue + "-dead")
    channel.bind(copied, "amq.direct", copied + "-dead")
    source = queue_with(
        {"x-dead-letter-exchange": "amq.direct", "x-dead-letter-routing-key": queue + "-dead"}
    )
    fill(channel, source, "a", headers={"CC": [copied + "-dead"]})
    reject_next(channel, source)
    headers = arrival(channel, queue).properties.headers
    assert "CC" not in headers
    assert headers["x-death"][0]["routing-keys"] == [source, copied + "-dead"]
    assert channel.count(copied) == 0


def test_a_message_that_expires_back_into_its_own_queue_is_dropped(
    channel: Channel, queue_with: Queue
) -> None:
    queue = queue_with({"x-dead-letter-exchange": "", "x-message-ttl": 50})
    fill(channel, queue, "a")
    wait_ready(channel, queue, 0)
    assert channel.get(queue) is None


def test_a_message_that_makes_room_into_its_own_queue_is_dropped(
    channel: Channel, queue_with: Queue
) -> None:
    queue = queue_with({"x-dead-letter-exchange": "", "x-max-length": 1})
    fill(channel, queue, "abc")
    assert drain(channel, queue) == "c"


@against_the_clock
def test_a_message_that_expires_in_a_circle_is_dropped(
    channel: Channel, queue: str, queue_with: Queue, name: Callable[[str], str]
) -> None:
    first, last = name("first"), name("last")
    second = queue_with(to(last, **{"x-message-ttl": 20}))
    channel.declare(first, arguments=to(second, **{"x-message-ttl": 20}))
    channel.declare(last, arguments=to(first, **{"x-max-length": 0}))
    fill(channel, first, "a")
    fill(channel, queue, "w", expiration="150")
    wait_ready(channel, queue, 0)  # by now it would have been round three times
    for _ in range(3):
        assert [channel.count(each) for each in (first, second, last)] == [0, 0, 0]


def test_a_message_that_is_rejected_into_its_own_queue_comes_back(
    channel: Channel, queue_with: Queue
) -> None:
    queue = queue_with({"x-dead-letter-exchange": ""})
    fill(channel, queue, "a")
    for _ in range(3):
        wait_ready(channel, queue, 1)
        reject_next(channel, queue)
    death = arrival(channel, queue).properties.headers["x-death"]
    assert [(event["reason"], event["count"]) for event in death] == [("rejected", 3)]


def test_a_circle_with_a_reject_in_it_goes_round(
    channel: Channel, queue_with: Queue, name: Callable[[str], str]
) -> None:
    work = name("work")
    retry = queue_with(to(work, **{"x-message-ttl": 30}))
    channel.declare(work, arguments=to(retry))
    fill(channel, work, "a")
    for _ in range(3):
        wait_ready(channel, work, 1)
        reject_next(channel, work)
    death = arrival(channel, work).properties.headers["x-death"]
    events = [(event["queue"], event["reason"], event["count"]) for event in death]
    assert events == [(retry, "expired", 3), (work, "rejected", 3)]
