"""queue.purge: what it throws away and what it counts."""

from __future__ import annotations

from collections.abc import Callable

from pika import spec

from tests.contract.queues.steps import PURGE, drain, fill, no_queue, take, wait_ready, words
from tests.support.wire import Channel


def test_a_purge_empties_the_queue_and_says_how_many_there_were(
    channel: Channel, queue: str
) -> None:
    fill(channel, queue, "abc")
    assert channel.call(spec.Queue.Purge(queue=queue)).message_count == 3
    assert channel.count(queue) == 0


def test_purging_an_empty_queue_purges_nothing(channel: Channel, queue: str) -> None:
    assert channel.call(spec.Queue.Purge(queue=queue)).message_count == 0


def test_messages_that_wait_for_an_ack_are_neither_purged_nor_counted(
    channel: Channel, queue: str
) -> None:
    fill(channel, queue, "abc")
    message = take(channel, queue)
    assert channel.call(spec.Queue.Purge(queue=queue)).message_count == 2
    channel.nack(message.tag)
    wait_ready(channel, queue, 1)
    assert drain(channel, queue) == "a"


def test_consumers_stay_and_get_what_comes_next(channel: Channel, queue: str) -> None:
    channel.qos(1)
    fill(channel, queue, "ab")
    channel.consume(queue)
    held = channel.delivery()
    channel.call(spec.Queue.Purge(queue=queue))
    channel.ack(held.tag)
    fill(channel, queue, "c")
    assert channel.delivery().body == b"c"


def test_a_priority_queue_is_purged_of_every_priority(
    channel: Channel, queue_with: Callable[..., str]
) -> None:
    queue = queue_with({"x-max-priority": 2})
    for priority in (0, 1, 2):
        fill(channel, queue, "a", priority=priority)
    assert channel.call(spec.Queue.Purge(queue=queue)).message_count == 3


def test_purging_no_queue_is_refused(channel: Channel) -> None:
    refusal = channel.refused(spec.Queue.Purge(queue="none"))
    assert words(refusal) == ("channel", 404, no_queue("none"), PURGE)


def test_purged_messages_are_not_dead_lettered(
    channel: Channel, queue: str, queue_with: Callable[..., str]
) -> None:
    purged = queue_with({"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue})
    fill(channel, purged, "abc")
    channel.call(spec.Queue.Purge(queue=purged))
    fill(channel, queue, "z")
    assert drain(channel, queue) == "z"


def test_no_wait_means_no_answer(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abc")
    channel.send(spec.Queue.Purge(queue=queue, nowait=True))
    assert channel.count(queue) == 0
    assert not channel.inbox
