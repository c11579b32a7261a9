"""queue.declare: names, counts, passive, no-wait, and the queue a channel declared last."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import amqp_object, spec

from tests.contract.queues.steps import (
    BIND,
    CONSUME,
    DECLARE,
    DELETE,
    GET,
    PURGE,
    UNBIND,
    drain,
    exists,
    fill,
    no_queue,
    take,
    words,
)
from tests.support.wire import Channel, Connection


def test_a_new_queue_is_empty_and_has_no_consumers(
    channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("queue")
    answer = channel.declare(queue)
    assert (answer.queue, answer.message_count, answer.consumer_count) == (queue, 0, 0)


def test_declaring_again_counts_ready_messages_and_not_those_that_wait_for_an_ack(
    channel: Channel, queue: str
) -> None:
    fill(channel, queue, "abc")
    take(channel, queue)
    assert channel.declare(queue).message_count == 2


def test_declaring_again_counts_consumers(channel: Channel, queue: str) -> None:
    channel.consume(queue)
    channel.connection.channel().consume(queue)
    assert channel.declare(queue).consumer_count == 2


def test_declaring_again_leaves_the_messages_there(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abc")
    channel.declare(queue)
    assert drain(channel, queue) == "abc"


def test_a_queue_is_there_for_other_connections(
    queue: str, connect: Callable[..., Connection]
) -> None:
    assert connect().channel().declare(queue, passive=True).queue == queue


@pytest.mark.parametrize("kind", ["blank", "amq", "AMQ.x", "nul\0", "ñandú", "a/b#c*d.e"])
def test_names_may_hold_nearly_anything(channel: Channel, kind: str) -> None:
    queue = " " if kind == "blank" else kind
    assert channel.declare(queue, exclusive=True).queue == queue
    channel.publish(queue, b"a")
    assert drain(channel, queue) == "a"


def test_a_name_may_be_255_bytes_long(channel: Channel, name: Callable[[str], str]) -> None:
    queue = name("long").ljust(255, "x")
    assert channel.declare(queue, exclusive=True).queue == queue
    channel.publish(queue, b"a")
    assert drain(channel, queue) == "a"


def test_names_that_differ_in_case_are_different_queues(
    channel: Channel, name: Callable[[str], str]
) -> None:
    queue = name("queue")
    channel.declare(queue)
    refusal = channel.refused(spec.Queue.Declare(queue=queue.upper(), passive=True))
    assert refusal.code == 404


def test_line_ends_are_taken_out_of_a_name(channel: Channel, name: Callable[[str], str]) -> None:
    queue = name("queue")
    assert channel.declare(f"\r{queue[:3]}\n{queue[3:]}\r\n").queue == queue
    assert channel.declare(f"{queue}\n", passive=True).queue == queue


@pytest.mark.parametrize("queue", ["amq.", "amq.mine", "amq.gen-mine", "amq\n.mine"])
def test_the_prefix_amq_is_reserved(channel: Channel, queue: str) -> None:
    shown = queue.replace("\n", "")
    text = f"ACCESS_REFUSED - queue name '{shown}' contains reserved prefix 'amq.*'"
    refusal = channel.refused(spec.Queue.Declare(queue=queue))
    assert words(refusal) == ("channel", 403, text, DECLARE)


@pytest.mark.parametrize("queue", ["no-such-queue", "amq.no-such-queue", ""])
def test_a_passive_declare_of_no_queue_is_refused(channel: Channel, queue: str) -> None:
    refusal = channel.refused(spec.Queue.Declare(queue=queue, passive=True))
    assert words(refusal) == ("channel", 404, no_queue(queue), DECLARE)


def test_a_passive_declare_does_not_mean_the_last_queue_by_an_empty_name(
    channel: Channel, queue: str
) -> None:
    refusal = channel.refused(spec.Queue.Declare(queue="", passive=True))
    assert words(refusal) == ("channel", 404, no_queue(""), DECLARE)


def test_a_passive_declare_ignores_how_the_queue_was_declared(channel: Channel, queue: str) -> None:
    answer = channel.declare(
        queue,
        passive=True,
        durable=True,
        exclusive=True,
        auto_delete=True,
        arguments={"x-max-length": 5, "x-expires": 0, "x-queue-type": "no such type"},
    )
    assert answer.queue == queue


def test_a_text_that_does_not_fit_is_cut(channel: Channel) -> None:
    refusal = channel.refused(spec.Queue.Declare(queue="x" * 255, passive=True))
    assert refusal.text == ("NOT_FOUND - no queue '" + "x" * 255)[:252] + "..."


def test_no_wait_means_no_answer(channel: Channel, name: Callable[[str], str]) -> None:
    queue = name("queue")
    channel.send(spec.Queue.Declare(queue=queue, nowait=True))
    assert channel.count(queue) == 0
    assert not channel.inbox


def test_a_declare_with_no_wait_can_be_refused(channel: Channel) -> None:
    refusal = channel.refused(spec.Queue.Declare(queue="none", passive=True, nowait=True))
    assert words(refusal) == ("channel", 404, no_queue("none"), DECLARE)


LAST_QUEUE_USERS = [
    (spec.Queue.Bind(queue="", exchange="amq.direct", routing_key="key"), BIND),
    (spec.Queue.Bind(queue="", exchange="amq.direct", routing_key=""), BIND),
    (spec.Queue.Unbind(queue="", exchange="amq.direct", routing_key="key"), UNBIND),
    (spec.Queue.Purge(queue=""), PURGE),
    (spec.Queue.Delete(queue=""), DELETE),
    (spec.Basic.Get(queue=""), GET),
    (spec.Basic.Consume(queue=""), CONSUME),
]


@pytest.mark.parametrize(("method", "ids"), LAST_QUEUE_USERS, ids=repr)
def test_an_empty_name_on_a_channel_that_declared_nothing_is_refused(
    channel: Channel, method: amqp_object.Method, ids: tuple[int, int]
) -> None:
    text = "NOT_FOUND - no previously declared queue"
    assert words(channel.refused(method)) == ("channel", 404, text, ids)


def test_an_empty_name_means_the_queue_this_channel_declared_last(
    channel: Channel, queue: str
) -> None:
    fill(channel, queue, "abc")
    assert take(channel, "").body == b"a"
    assert channel.call(spec.Queue.Purge(queue="")).message_count == 2
    channel.consume("")
    channel.publish(queue, b"d")
    assert channel.delivery().body == b"d"


def test_bindings_and_deletion_take_an_empty_name_too(channel: Channel, queue: str) -> None:
    channel.bind("", "amq.direct", queue + "-key")
    channel.publish(queue + "-key", b"a", exchange="amq.direct")
    assert drain(channel, queue) == "a"
    channel.call(spec.Queue.Unbind(queue="", exchange="amq.direct", routing_key=queue + "-key"))
    channel.publish(queue + "-key", b"b", exchange="amq.direct")
    assert drain(channel, queue) == ""
    channel.call(spec.Queue.Delete(queue=""))
    assert not exists(channel, queue)


def test_what_another_channel_declared_is_not_this_channels_last_queue(
    channel: Channel, queue: str
) -> None:
    refusal = channel.connection.channel().refused(spec.Basic.Get(queue=""))
    assert refusal.text == "NOT_FOUND - no previously declared queue"


def test_with_neither_queue_nor_key_a_bind_uses_the_last_queues_name_for_both(
    channel: Channel, queue: str
) -> None:
    channel.bind("", "amq.direct", "")
    channel.publish(queue, b"a", exchange="amq.direct")
    assert drain(channel, queue) == "a"


def test_a_passive_declare_makes_its_queue_the_last(
    channel: Channel, queue: str, name: Callable[[str], str]
) -> None:
    fill(channel, queue, "a")
    channel.declare(name("other"))
    channel.declare(queue, passive=True)
    assert drain(channel, "") == "a"


def test_a_declare_with_no_wait_makes_its_queue_the_last(
    channel: Channel, queue: str, name: Callable[[str], str]
) -> None:
    other = name("other")
    channel.send(spec.Queue.Declare(queue=other, nowait=True))
    channel.publish(other, b"a")
    assert drain(channel, "") == "a"


def test_the_last_queue_stays_the_last_after_it_was_deleted(channel: Channel, queue: str) -> None:
    channel.call(spec.Queue.Delete(queue=""))
    refusal = channel.refused(spec.Basic.Get(queue=""))
    assert words(refusal) == ("channel", 404, no_queue(queue), GET)
