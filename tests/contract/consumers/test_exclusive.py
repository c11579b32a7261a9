"""Exclusive consumers: one alone on the queue, and how another takes over."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.consumers.steps import drain, fill, try_consume, wait_consumers, word
from tests.support.eventually import eventually
from tests.support.wire import Channel, Closed, Connection


@pytest.mark.parametrize(
    ("first", "second"),
    [(True, False), (False, True), (True, True)],
    ids=["other while exclusive", "exclusive while others", "exclusive while exclusive"],
)
def test_a_second_consumer_is_refused(
    channel: Channel,
    queue: str,
    connect: Callable[..., Connection],
    first: bool,
    second: bool,
) -> None:
    channel.consume(queue, exclusive=first)

    refusal = connect().channel().refused(spec.Basic.Consume(queue=queue, exclusive=second))

    assert (refusal.scope, refusal.code) == ("channel", 403)
    assert refusal.text == f"ACCESS_REFUSED - queue '{queue}' in vhost '/' in exclusive use"
    assert (refusal.class_id, refusal.method_id) == (60, 20)


def test_the_channel_that_holds_the_queue_is_refused_a_second_consumer_too(
    channel: Channel, queue: str
) -> None:
    channel.consume(queue, "one", exclusive=True)
    refusal = channel.refused(spec.Basic.Consume(queue=queue, consumer_tag="two"))
    assert (refusal.scope, refusal.code) == ("channel", 403)
    assert refusal.text == f"ACCESS_REFUSED - queue '{queue}' in vhost '/' in exclusive use"


def test_a_refused_consumer_leaves_the_holder_alone(channel: Channel, queue: str) -> None:
    channel.consume(queue, "one", exclusive=True)
    channel.connection.channel().refused(spec.Basic.Consume(queue=queue))
    fill(channel, queue, "a")
    assert channel.delivery().body == b"a"
    assert channel.declare(queue, passive=True).consumer_count == 1


def test_a_tag_whose_consume_was_refused_was_not_taken(channel: Channel, queue: str) -> None:
    holder = channel.connection.channel()
    holder.consume(queue, "one", exclusive=True)
    channel.refused(spec.Basic.Consume(queue=queue, consumer_tag="two"))
    holder.cancel("one")
    assert channel.connection.channel().consume(queue, "two") == "two"


def test_cancel_frees_the_queue_for_others(channel: Channel, queue: str) -> None:
    channel.consume(queue, "one", exclusive=True)
    channel.cancel("one")
    channel.consume(queue, "two")
    channel.consume(queue, "three")
    assert channel.declare(queue, passive=True).consumer_count == 2


def test_unacked_messages_of_a_cancelled_holder_do_not_keep_the_queue(
    channel: Channel, queue: str
) -> None:
    channel.consume(queue, "one", exclusive=True)
    fill(channel, queue, "a")
    channel.delivery()
    channel.cancel("one")
    assert channel.consume(queue, "two", exclusive=True) == "two"


def test_closing_the_channel_frees_the_queue(channel: Channel, queue: str) -> None:
    holder = channel.connection.channel()
    holder.consume(queue, exclusive=True)
    holder.close()
    wait_consumers(channel, queue, 0)
    channel.consume(queue, "next", exclusive=True)


def test_an_exclusive_consumer_does_not_stop_basic_get(channel: Channel, queue: str) -> None:
    channel.qos(1)
    channel.consume(queue, exclusive=True)
    fill(channel, queue, "ab")
    assert channel.delivery().body == b"a"
    assert word(drain(channel.connection.channel(), queue)) == "b"


def test_an_exclusive_consumer_is_refused_on_a_single_active_consumer_queue(
    channel: Channel, name: Callable[[str], str]
) -> None:
    arguments = {"x-single-active-consumer": True}
    queue = channel.declare(name("sac"), arguments=arguments).queue
    refusal = channel.refused(spec.Basic.Consume(queue=queue, exclusive=True))
    assert (refusal.scope, refusal.code) == ("channel", 403)
    assert refusal.text == f"ACCESS_REFUSED - queue '{queue}' in vhost '/' in exclusive use"
    assert (refusal.class_id, refusal.method_id) == (60, 20)


def test_a_quorum_queue_does_not_enforce_the_exclusive_flag(
    channel: Channel, name: Callable[[str], str]
) -> None:
    arguments = {"x-queue-type": "quorum"}
    queue = channel.declare(name("quorum"), durable=True, arguments=arguments).queue
    channel.consume(queue, "one", exclusive=True)
    assert channel.consume(queue, "two", exclusive=True) == "two"
    assert channel.consume(queue, "three") == "three"


def test_a_standby_takes_over_from_a_holder_that_crashed_and_misses_nothing(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    first, standby = connect(), connect()
    worker = first.channel()
    worker.qos(2)
    worker.consume(queue, exclusive=True)
    fill(channel, queue, "abcdef")
    worker.ack(worker.delivery().tag)
    assert word(worker.deliveries(2)) == "bc"
    assert isinstance(try_consume(standby.channel(), queue, exclusive=True), Closed)

    first.drop()

    taker = standby.channel()

    def taken_over() -> bool:
        nonlocal taker
        if isinstance(try_consume(taker, queue, exclusive=True), Closed):
            taker = standby.channel()
            return False
        return True

    eventually(taken_over)
    seen = taker.deliveries(5)
    assert word(seen) == "bcdef"
    assert [message.method.redelivered for message in seen] == [True, True, False, False, False]
    refusal = connect().channel().refused(spec.Basic.Consume(queue=queue, exclusive=True))
    assert refusal.code == 403, "the first comes back and is the standby now"
