"""Quorum queues as one node has them: durable, with a delivery count and limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pika import spec

from tests.contract.queues.steps import (
    CONSUME,
    DECLARE,
    DELETE,
    QUIET_S,
    QUORUM,
    arrival,
    drain,
    fill,
    reject_next,
    take,
    wait_ready,
    word,
    words,
)
from tests.support.wire import Channel, Connection, Message

Queue = Callable[..., str]
Connect = Callable[..., Connection]


@pytest.fixture
def quorum(queue_with: Queue) -> Queue:
    """Declares a quorum queue with these arguments besides."""

    def declare(**arguments: Any) -> str:
        named = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
        return queue_with({**QUORUM, **named}, durable=True)

    return declare


def load(channel: Channel, queue: str, letters: str, **properties: Any) -> None:
    fill(channel, queue, letters, **properties)
    wait_ready(channel, queue, len(letters))


def delivery_count(message: Message) -> int | None:
    return (message.properties.headers or {}).get("x-delivery-count")


# -- declaration ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({}, "non-durable"),
        ({"exclusive": True}, "exclusive-owner"),
        ({"durable": True, "exclusive": True}, "exclusive-owner"),
        ({"durable": True, "auto_delete": True}, "auto-delete"),
        ({"auto_delete": True, "exclusive": True}, "auto-delete"),
    ],
)
def test_it_must_be_durable_and_for_all_and_for_good(
    channel: Channel, name: Callable[[str], str], options: dict[str, bool], what: str
) -> None:
    queue = name("queue")
    refusal = channel.refused(spec.Queue.Declare(queue=queue, arguments=QUORUM, **options))
    text = f"PRECONDITION_FAILED - invalid property '{what}' for queue '{queue}' in vhost '/'"
    assert words(refusal) == ("channel", 406, text, DECLARE)


@pytest.mark.parametrize(
    "arguments",
    [
        {"delivery_limit": 0},
        {"delivery_limit": -1},
        {"quorum_initial_group_size": 3},
        {"max_in_memory_length": 0},
        {"queue_leader_locator": "client-local"},
        {"queue_leader_locator": "balanced"},
        {"dead_letter_strategy": "at-most-once"},
        {"dead_letter_strategy": "at-least-once"},
        {"overflow": "reject-publish-dlx"},
        {"message_ttl": 100},
        {"expires": 60000},
        {"max_length": 1},
        {"max_length_bytes": 1},
        {"single_active_consumer": True},
        {"ha_policy": "all"},
    ],
    ids=str,
)
def test_accepted(channel: Channel, quorum: Queue, arguments: dict[str, Any]) -> None:
    assert channel.count(quorum(**arguments)) == 0


# -- deletion and purging ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "flag"),
    [
        ({"if_unused": True}, "if-unused"),
        ({"if_empty": True}, "if-empty"),
        ({"if_unused": True, "if_empty": True}, "if-unused"),
    ],
)
def test_conditional_deletion_is_not_implemented(
    channel: Channel, quorum: Queue, options: dict[str, bool], flag: str
) -> None:
    queue = quorum()
    refusal = channel.refused(spec.Queue.Delete(queue=queue, **options))
    text = (
        f"NOT_IMPLEMENTED - cannot delete queue '{queue}' in vhost '/'. queue.delete operations"
        f" with {flag} flag set are not supported by quorum queues"
    )
    assert words(refusal) == ("connection", 540, text, DELETE)


def test_deleting_it_counts_ready_messages_and_tells_consumers(
    channel: Channel, quorum: Queue
) -> None:
    queue = quorum()
    load(channel, queue, "abc")
    take(channel, queue)
    consumer = channel.connection.channel()
    consumer.qos(1)
    consumer.consume(queue, "mine")
    consumer.delivery()
    assert channel.call(spec.Queue.Delete(queue=queue)).message_count == 1
    assert consumer.expect(spec.Basic.Cancel).consumer_tag == "mine"


def test_purging_it_spares_messages_that_wait_for_an_ack(channel: Channel, quorum: Queue) -> None:
    queue = quorum()
    load(channel, queue, "abc")
    message = take(channel, queue)
    assert channel.call(spec.Queue.Purge(queue=queue)).message_count == 2
    channel.nack(message.tag)
    wait_ready(channel, queue, 1)
    assert drain(channel, queue) == "a"


# -- consuming -----------------------------------------------------------------------------------


def test_exclusive_consumers_are_not_enforced(channel: Channel, quorum: Queue) -> None:
    queue = quorum()
    channel.consume(queue, "a", exclusive=True)
    channel.consume(queue, "b", exclusive=True)
    channel.consume(queue, "c")
    fill(channel, queue, "abc")
    assert {m.method.consumer_tag for m in channel.deliveries(3)} == {"a", "b", "c"}


def test_consuming_under_a_global_prefetch_is_not_implemented(
    channel: Channel, quorum: Queue
) -> None:
    queue = quorum()
    channel.qos(5, global_qos=True)
    refusal = channel.refused(spec.Basic.Consume(queue=queue))
    text = f"NOT_IMPLEMENTED - queue '{queue}' in vhost '/' does not support global qos"
    assert words(refusal) == ("connection", 540, text, CONSUME)


def test_a_global_prefetch_is_no_matter_to_get_nor_to_one_who_consumes_already(
    channel: Channel, quorum: Queue
) -> None:
    queue = quorum()
    channel.consume(queue)
    channel.qos(1, global_qos=True)
    fill(channel, queue, "ab")
    assert word(channel.deliveries(2)) == "ab"
    assert channel.get(queue) is None


@pytest.mark.parametrize("argument", ["x-cancel-on-ha-failover", "x-stream-offset"])
def test_consumer_arguments_of_other_queue_types_are_refused(
    channel: Channel, quorum: Queue, argument: str
) -> None:
    queue = quorum()
    refusal = channel.refused(spec.Basic.Consume(queue=queue, arguments={argument: "any"}))
    text = (
        f"PRECONDITION_FAILED - invalid arg '{argument}' for queue '{queue}' in vhost '/'"
        " of queue type rabbit_quorum_queue"
    )
    assert words(refusal) == ("channel", 406, text, CONSUME)


def test_prefetch_is_kept(channel: Channel, quorum: Queue) -> None:
    queue = quorum()
    channel.qos(2)
    channel.consume(queue)
    fill(channel, queue, "abc")
    held = channel.deliveries(2)
    assert channel.quiet(QUIET_S)
    channel.ack(held[0].tag)
    assert channel.delivery().body == b"c"


def test_what_needs_no_ack_is_gone(channel: Channel, quorum: Queue) -> None:
    queue = quorum()
    channel.consume(queue, no_ack=True)
    fill(channel, queue, "a")
    assert channel.delivery().body == b"a"
    wait_ready(channel, queue, 0)
    channel.close()
    assert channel.connection.channel().get(queue) is None


# -- giving back ---------------------------------------------------------------------------------


def test_the_delivery_count_is_told_from_the_second_delivery_on(
    channel: Channel, quorum: Queue
) -> None:
    queue = quorum()
    channel.consume(queue)
    fill(channel, queue, "a", headers={"mine": 1})
    seen = []
    for _ in range(3):
        message = channel.delivery()
        seen.append((message.method.redelivered, message.properties.headers))
        channel.nack(message.tag)
    assert seen == [
        (False, {"mine": 1}),
        (True, {"mine": 1, "x-delivery-count": 1}),
        (True, {"mine": 1, "x-delivery-count": 2}),
    ]


def test_get_tells_the_delivery_count_from_the_first_on(channel: Channel, quorum: Queue) -> None:
    queue = quorum()
    load(channel, queue, "a")
    seen = []
    for _ in range(3):
        message = take(channel, queue)
        seen.append((message.method.redelivered, message.properties.headers))
        channel.nack(message.tag)
        wait_ready(channel, queue, 1)
    assert seen == [
        (False, {"x-delivery-count": 0}),
        (True, {"x-delivery-count": 1}),
        (True, {"x-delivery-count": 2}),
    ]


@pytest.mark.parametrize(
    "give_back",
    [
        lambda channel, tag: channel.nack(tag),
        lambda channel, tag: channel.reject(tag),
        lambda channel, tag: channel.call(spec.Basic.Recover(requeue=True)),
    ],
    ids=["nack", "reject", "recover"],
)
def test_without_a_delivery_limit_a_requeued_message_goes_to_the_end(
    channel: Channel, quorum: Queue, give_back: Callable[[Channel, int], Any]
) -> None:
    queue = quorum()
    load(channel, queue, "abc")
    give_back(channel, take(channel, queue).tag)
    wait_ready(channel, queue, 3)
    assert drain(channel, queue) == "bca"


def test_with_a_delivery_limit_requeued_messages_go_to_the_front(
    channel: Channel, quorum: Queue
) -> None:
    queue = quorum(delivery_limit=5)
    load(channel, queue, "abcd")
    take(channel, queue)
    channel.nack(take(channel, queue).tag, multiple=True)
    wait_ready(channel, queue, 4)
    assert drain(channel, queue) == "abcd"


def test_with_a_delivery_limit_the_first_given_back_comes_first(
    channel: Channel, quorum: Queue
) -> None:
    queue = quorum(delivery_limit=5)
    load(channel, queue, "abcd")
    first, second = take(channel, queue), take(channel, queue)
    channel.nack(second.tag)
    wait_ready(channel, queue, 3)
    channel.nack(first.tag)
    wait_ready(channel, queue, 4)
    assert drain(channel, queue) == "bacd"


@pytest.mark.parametrize("how", ["channel closed", "connection cut"])
def test_what_a_dead_consumer_held_goes_to_the_front_in_order(
    channel: Channel, quorum: Queue, connect: Connect, how: str
) -> None:
    queue = quorum()
    load(channel, queue, "abcd")
    worker = connect().channel()
    worker.qos(2)
    worker.consume(queue)
    worker.deliveries(2)
    if how == "channel closed":
        worker.close()
    else:
        worker.connection.drop()
    wait_ready(channel, queue, 4)
    left = [take(channel, queue) for _ in range(4)]
    assert word(left) == "abcd"
    assert [m.method.redelivered for m in left] == [True, True, False, False]
    assert [delivery_count(m) for m in left] == [1, 1, 0, 0]


# -- the delivery limit --------------------------------------------------------------------------


def test_a_message_given_back_more_often_than_the_limit_is_dropped(
    channel: Channel, quorum: Queue
) -> None:
    queue = quorum(delivery_limit=2)
    channel.consume(queue)
    fill(channel, queue, "a")
    for _ in range(3):
        channel.nack(channel.delivery().tag)
    assert channel.quiet(QUIET_S)
    assert channel.count(queue) == 0


def test_a_limit_of_zero_allows_one_delivery(channel: Channel, quorum: Queue) -> None:
    queue = quorum(delivery_limit=0)
    channel.consume(queue)
    fill(channel, queue, "a")
    channel.nack(channel.delivery().tag)
    assert channel.quiet(QUIET_S)


def test_deaths_of_consumers_count_too(channel: Channel, quorum: Queue) -> None:
    queue = quorum(delivery_limit=1)
    load(channel, queue, "a")
    for _ in range(2):
        worker = channel.connection.channel()
        assert arrival_unacked(worker, queue).body == b"a"
        worker.close()
    wait_ready(channel, queue, 0)
    assert channel.get(queue) is None


def arrival_unacked(channel: Channel, queue: str) -> Message:
    wait_ready(channel, queue, 1)
    return take(channel, queue)


def test_past_the_limit_it_is_dead_lettered_with_its_own_reason(
    channel: Channel, queue: str, quorum: Queue
) -> None:
    source = quorum(delivery_limit=1, dead_letter_exchange="", dead_letter_routing_key=queue)
    channel.consume(source)
    fill(channel, source, "a")
    for _ in range(2):
        channel.nack(channel.delivery().tag)
    headers = arrival(channel, queue).properties.headers
    (event,) = headers["x-death"]
    assert (event["reason"], event["queue"], event["count"]) == ("delivery_limit", source, 1)
    assert headers["x-first-death-reason"] == "delivery_limit"
    assert "x-delivery-count" not in headers


# -- expiry, limits, dead letters ----------------------------------------------------------------


@pytest.mark.parametrize(("ttl", "expiration"), [({"message_ttl": 50}, None), ({}, "50")])
def test_messages_expire(
    channel: Channel, quorum: Queue, ttl: dict[str, int], expiration: str | None
) -> None:
    queue = quorum(**ttl)
    fill(channel, queue, "a", expiration=expiration)
    wait_ready(channel, queue, 0)
    assert channel.get(queue) is None


def test_they_expire_at_the_head_only(channel: Channel, queue: str, quorum: Queue) -> None:
    blocked = quorum()
    load(channel, blocked, "a")
    fill(channel, blocked, "b", expiration="50")
    fill(channel, queue, "w", expiration="50")
    wait_ready(channel, queue, 0)
    assert channel.count(blocked) == 2
    assert drain(channel, blocked) == "a"


@pytest.mark.parametrize("strategy", ["at-most-once", "at-least-once"])
def test_expired_and_rejected_messages_are_dead_lettered(
    channel: Channel, queue: str, quorum: Queue, strategy: str
) -> None:
    source = quorum(
        dead_letter_exchange="",
        dead_letter_routing_key=queue,
        dead_letter_strategy=strategy,
        overflow="reject-publish",
    )
    fill(channel, source, "a", expiration="50")
    expired = arrival(channel, queue).properties
    load(channel, source, "b", expiration="60000")
    reject_next(channel, source)
    rejected = arrival(channel, queue).properties
    for dead, reason, expiration in ((expired, "expired", "50"), (rejected, "rejected", "60000")):
        (event,) = dead.headers["x-death"]
        assert (event["reason"], event["queue"], event["count"]) == (reason, source, 1)
        assert event["original-expiration"] == expiration
        assert dead.expiration is None
        assert dead.headers["x-first-death-reason"] == reason


def test_the_oldest_make_room_and_are_dead_lettered(
    channel: Channel, queue: str, quorum: Queue
) -> None:
    source = quorum(max_length=2, dead_letter_exchange="", dead_letter_routing_key=queue)
    fill(channel, source, "abcd")
    wait_ready(channel, queue, 2)
    assert arrival(channel, queue).properties.headers["x-first-death-reason"] == "maxlen"
    assert (drain(channel, queue), drain(channel, source)) == ("b", "cd")


def test_a_full_queue_that_rejects_publishes_nacks_sooner_or_later(
    channel: Channel, quorum: Queue
) -> None:
    queue = quorum(max_length=1, overflow="reject-publish")
    channel.confirm()
    settled = []
    for _ in range(50):  # one by one: the queue tells its publishers after the fact
        channel.publish(queue, b"a")
        settled.append(channel.expect(spec.Basic.Ack, spec.Basic.Nack).NAME)
        if settled[-1] == "Basic.Nack":
            break
    assert settled[0] == "Basic.Ack"
    assert settled[-1] == "Basic.Nack"
