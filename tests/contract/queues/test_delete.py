"""queue.delete: counts, if-unused, if-empty, and what goes with the queue."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.queues.steps import DECLARE, DELETE, drain, fill, no_queue, take, words
from tests.support.wire import Channel, Connection


def refused_text(queue: str, why: str) -> str:
    return f"PRECONDITION_FAILED - queue '{queue}' in vhost '/' {why}"


def test_a_deleted_queue_is_gone(channel: Channel, queue: str) -> None:
    channel.call(spec.Queue.Delete(queue=queue))
    refusal = channel.refused(spec.Queue.Declare(queue=queue, passive=True))
    assert words(refusal) == ("channel", 404, no_queue(queue), DECLARE)


def test_the_answer_counts_ready_messages_and_not_those_that_wait_for_an_ack(
    channel: Channel, queue: str
) -> None:
    fill(channel, queue, "abc")
    take(channel, queue)
    assert channel.call(spec.Queue.Delete(queue=queue)).message_count == 2


@pytest.mark.parametrize("options", [{}, {"if_unused": True}, {"if_empty": True}])
def test_deleting_no_queue_is_fine(
    channel: Channel, name: Callable[[str], str], options: dict[str, bool]
) -> None:
    answer = channel.call(spec.Queue.Delete(queue=name("queue"), **options))
    assert answer.message_count == 0


def test_if_empty_spares_a_queue_with_messages(channel: Channel, queue: str) -> None:
    fill(channel, queue, "a")
    refusal = channel.refused(spec.Queue.Delete(queue=queue, if_empty=True))
    assert words(refusal) == ("channel", 406, refused_text(queue, "not empty"), DELETE)
    assert channel.connection.channel().count(queue) == 1


def test_if_empty_does_not_spare_messages_that_wait_for_an_ack(
    channel: Channel, queue: str
) -> None:
    fill(channel, queue, "a")
    take(channel, queue)
    assert channel.call(spec.Queue.Delete(queue=queue, if_empty=True)).message_count == 0


def test_if_unused_spares_a_queue_with_consumers(channel: Channel, queue: str) -> None:
    channel.consume(queue)
    other = channel.connection.channel()
    refusal = other.refused(spec.Queue.Delete(queue=queue, if_unused=True))
    assert words(refusal) == ("channel", 406, refused_text(queue, "in use"), DELETE)
    channel.publish(queue, b"a")
    assert channel.delivery().body == b"a"


def test_if_empty_is_judged_before_if_unused(channel: Channel, queue: str) -> None:
    channel.qos(1)
    fill(channel, queue, "ab")
    channel.consume(queue)
    channel.delivery()
    refusal = channel.refused(spec.Queue.Delete(queue=queue, if_unused=True, if_empty=True))
    assert words(refusal) == ("channel", 406, refused_text(queue, "not empty"), DELETE)


def test_if_unused_and_if_empty_delete_what_is_unused_and_empty(
    channel: Channel, queue: str
) -> None:
    tag = channel.consume(queue)
    channel.cancel(tag)
    channel.call(spec.Queue.Delete(queue=queue, if_unused=True, if_empty=True))
    assert channel.refused(spec.Queue.Declare(queue=queue, passive=True)).code == 404


def test_consumers_are_told(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    channel.consume(queue, "mine")
    connect().channel().call(spec.Queue.Delete(queue=queue))
    notice = channel.expect(spec.Basic.Cancel)
    assert (notice.consumer_tag, notice.nowait) == ("mine", True)


def test_a_late_ack_of_a_message_of_a_deleted_queue_is_no_error(
    channel: Channel, queue: str
) -> None:
    fill(channel, queue, "a")
    message = take(channel, queue)
    channel.call(spec.Queue.Delete(queue=queue))
    channel.ack(message.tag)
    channel.sync()


def test_bindings_go_with_the_queue(channel: Channel, queue: str) -> None:
    channel.bind(queue, "amq.direct", queue)
    channel.call(spec.Queue.Delete(queue=queue))
    channel.declare(queue)
    channel.publish(queue, b"a", exchange="amq.direct", mandatory=True)
    returned = channel.expect(spec.Basic.Return)
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")


def test_a_queue_declared_anew_is_empty_and_may_differ(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abc")
    channel.call(spec.Queue.Delete(queue=queue))
    answer = channel.declare(queue, durable=True, arguments={"x-max-length": 1})
    assert answer.message_count == 0


def test_no_wait_means_no_answer(channel: Channel, queue: str) -> None:
    channel.send(spec.Queue.Delete(queue=queue, nowait=True))
    refusal = channel.refused(spec.Queue.Declare(queue=queue, passive=True))
    assert refusal.code == 404
    assert not channel.inbox


def test_line_ends_are_taken_out_of_the_name(channel: Channel, queue: str) -> None:
    channel.call(spec.Queue.Delete(queue=f"{queue}\r\n"))
    assert channel.refused(spec.Queue.Declare(queue=queue, passive=True)).code == 404


def test_messages_of_a_deleted_queue_are_not_dead_lettered(
    channel: Channel, queue: str, queue_with: Callable[..., str]
) -> None:
    doomed = queue_with({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue})
    fill(channel, doomed, "abc")
    channel.call(spec.Queue.Delete(queue=doomed))
    fill(channel, queue, "z")
    assert drain(channel, queue) == "z"
