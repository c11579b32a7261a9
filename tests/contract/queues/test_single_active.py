"""x-single-active-consumer: one consumer works, the others wait their turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pika import spec

from tests.contract.queues.steps import CONSUME, GET, QUIET_S, QUORUM, fill, wait_gone, word, words
from tests.support.wire import Channel, Connection

SINGLE = {"x-single-active-consumer": True}
Connect = Callable[..., Connection]


@pytest.fixture(params=["classic", "quorum"])
def single(request: pytest.FixtureRequest, queue_with: Callable[..., str]) -> str:
    """A queue with a single active consumer, of either type."""
    return queue_with({"x-queue-type": request.param, **SINGLE}, durable=True)


@pytest.fixture
def classic(queue_with: Callable[..., str]) -> str:
    return queue_with(SINGLE)


def consumers(channel: Channel, queue: str, *tags: str, **options: Any) -> list[Channel]:
    """Consumers in this order, each on a channel of its own."""
    channels = []
    for tag in tags:
        channels.append(channel.connection.channel())
        channels[-1].consume(queue, tag, **options)
    return channels


def test_the_first_consumer_gets_all(channel: Channel, single: str) -> None:
    first, second, third = consumers(channel, single, "a", "b", "c")
    fill(channel, single, "abcd")
    assert word(first.deliveries(4)) == "abcd"
    assert second.quiet(QUIET_S)
    assert not third.inbox


def test_the_others_wait_also_when_the_first_is_full(channel: Channel, single: str) -> None:
    first = channel.connection.channel()
    first.qos(1)
    first.consume(single)
    (second,) = consumers(channel, single, "b")
    fill(channel, single, "abc")
    held = first.delivery()
    assert second.quiet(QUIET_S)
    first.ack(held.tag)
    assert first.delivery().body == b"b"


def test_when_it_is_cancelled_the_next_takes_over(channel: Channel, single: str) -> None:
    first, second, third = consumers(channel, single, "a", "b", "c")
    first.cancel("a")
    fill(channel, single, "abc")
    assert word(second.deliveries(3)) == "abc"
    assert third.quiet(QUIET_S)
    assert not first.inbox


def test_each_takes_over_in_the_order_they_came(channel: Channel, single: str) -> None:
    channels = dict(zip("abcd", consumers(channel, single, *"abcd", no_ack=True), strict=True))
    channels["c"].cancel("c")  # one that waits may leave
    channels["c"].consume(single, "c", no_ack=True)  # and stand at the end
    for tag in "abdc":
        fill(channel, single, tag * 2)
        assert word(channels[tag].deliveries(2)) == tag * 2
        channels[tag].cancel(tag)


def test_what_the_cancelled_one_holds_stays_its_own(channel: Channel, single: str) -> None:
    first, second = consumers(channel, single, "a", "b")
    fill(channel, single, "ab")
    held = first.deliveries(2)
    first.cancel("a")
    assert second.quiet(QUIET_S)
    first.ack(held[0].tag)
    first.nack(held[1].tag)
    redelivered = second.delivery()
    assert (redelivered.body, redelivered.method.redelivered) == (b"b", True)


def test_when_its_channel_closes_the_next_goes_on_in_order(channel: Channel, single: str) -> None:
    first, second, third = consumers(channel, single, "a", "b", "c")
    fill(channel, single, "abc")
    first.deliveries(3)
    first.close()
    taken = second.deliveries(3)
    assert word(taken) == "abc"
    assert all(message.method.redelivered for message in taken)
    assert third.quiet(QUIET_S)


def test_when_its_connection_is_cut_the_next_goes_on_in_order(
    channel: Channel, single: str, connect: Connect
) -> None:
    worker = connect().channel()
    worker.qos(1)
    worker.consume(single)
    (second,) = consumers(channel, single, "b")
    fill(channel, single, "abc")
    worker.delivery()
    worker.connection.drop()
    taken = second.deliveries(3)
    assert [(m.body, m.method.redelivered) for m in taken] == [
        (b"a", True),
        (b"b", False),
        (b"c", False),
    ]


def test_one_that_comes_back_waits(channel: Channel, single: str) -> None:
    first, second = consumers(channel, single, "a", "b")
    first.cancel("a")
    first.consume(single, "a")
    fill(channel, single, "ab")
    assert word(second.deliveries(2)) == "ab"
    assert first.quiet(QUIET_S)


def test_consumers_may_share_a_channel(channel: Channel, single: str) -> None:
    channel.consume(single, "a")
    channel.consume(single, "b")
    fill(channel, single, "ab")
    assert {m.method.consumer_tag for m in channel.deliveries(2)} == {"a"}
    channel.cancel("a")
    fill(channel, single, "c")
    assert channel.delivery().method.consumer_tag == "b"


def test_all_are_told_when_the_queue_is_deleted(channel: Channel, single: str) -> None:
    first, second = consumers(channel, single, "a", "b")
    channel.call(spec.Queue.Delete(queue=single))
    assert first.expect(spec.Basic.Cancel).consumer_tag == "a"
    assert second.expect(spec.Basic.Cancel).consumer_tag == "b"


def test_an_exclusive_consumer_is_refused(channel: Channel, classic: str) -> None:
    refusal = channel.refused(spec.Basic.Consume(queue=classic, exclusive=True))
    text = f"ACCESS_REFUSED - queue '{classic}' in vhost '/' in exclusive use"
    assert words(refusal) == ("channel", 403, text, CONSUME)


def test_a_quorum_queue_takes_an_exclusive_consumer_as_any_other(
    channel: Channel, queue_with: Callable[..., str]
) -> None:
    queue = queue_with({**QUORUM, **SINGLE}, durable=True)
    channel.consume(queue, exclusive=True)
    (second,) = consumers(channel, queue, "b", exclusive=True)
    fill(channel, queue, "a")
    assert channel.delivery().body == b"a"
    assert second.quiet(QUIET_S)


def test_all_consumers_of_a_classic_queue_are_counted(channel: Channel, classic: str) -> None:
    consumers(channel, classic, "a", "b", "c")
    assert channel.declare(classic, passive=True).consumer_count == 3


def test_only_the_active_consumer_of_a_quorum_queue_is_counted(
    channel: Channel, queue_with: Callable[..., str]
) -> None:
    queue = queue_with({**QUORUM, **SINGLE}, durable=True)
    consumers(channel, queue, "a", "b", "c")
    assert channel.declare(queue, passive=True).consumer_count == 1


def test_on_a_classic_queue_the_highest_priority_is_next_but_pushes_nobody_out(
    channel: Channel, classic: str
) -> None:
    first, second = consumers(channel, classic, "a", "b")
    (third,) = consumers(channel, classic, "c", arguments={"x-priority": 10})
    fill(channel, classic, "a")
    assert first.delivery().body == b"a"
    first.cancel("a")
    fill(channel, classic, "b")
    assert third.delivery().body == b"b"
    assert not second.inbox


def test_get_works_on_a_classic_queue(channel: Channel, classic: str) -> None:
    fill(channel, classic, "a")
    message = channel.get(classic)
    assert message is not None
    assert message.body == b"a"


def test_get_is_refused_on_a_quorum_queue(channel: Channel, queue_with: Callable[..., str]) -> None:
    queue = queue_with({**QUORUM, **SINGLE}, durable=True)
    text = (
        f"RESOURCE_LOCKED - cannot obtain access to locked queue '{queue}' in vhost '/'."
        " basic.get operations are not supported by quorum queues with single active consumer"
    )
    assert words(channel.refused(spec.Basic.Get(queue=queue))) == ("channel", 405, text, GET)


def test_false_is_an_ordinary_queue(channel: Channel, queue_with: Callable[..., str]) -> None:
    queue = queue_with({"x-single-active-consumer": False})
    first, second = consumers(channel, queue, "a", "b")
    fill(channel, queue, "ab")
    assert (first.delivery().body, second.delivery().body) == (b"a", b"b")


def test_an_auto_delete_queue_goes_with_the_last_consumer_active_or_not(
    channel: Channel, queue_with: Callable[..., str]
) -> None:
    queue = queue_with(SINGLE, auto_delete=True)
    first, second = consumers(channel, queue, "a", "b")
    first.cancel("a")
    fill(channel, queue, "a")
    assert second.delivery().body == b"a"
    second.cancel("b")
    wait_gone(channel, queue)
