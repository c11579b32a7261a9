"""x-expires: a queue that nobody uses goes by itself.

A second queue, the witness, is declared later with the same time to live and left alone: when
it has gone, that time has passed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pika import spec

from tests.contract.queues.steps import DECLARE, exists, fill, no_queue, take, wait_gone, words
from tests.support.clock_race import against_the_clock
from tests.support.eventually import eventually
from tests.support.wire import Channel

Queue = Callable[..., str]
EXPIRES = {"x-expires": 300}


def test_an_unused_queue_goes_with_its_messages(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-expires": 50})
    fill(channel, queue, "a")
    wait_gone(channel, queue)
    refusal = channel.refused(spec.Queue.Declare(queue=queue, passive=True))
    assert words(refusal) == ("channel", 404, no_queue(queue), DECLARE)


def test_publishing_is_no_use(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with(EXPIRES)
    eventually(lambda: not exists(channel, queue))


@pytest.mark.parametrize(
    "use",
    [
        lambda channel, queue: channel.declare(queue, arguments=EXPIRES),
        lambda channel, queue: channel.declare(queue, passive=True),
        lambda channel, queue: channel.get(queue),
    ],
    ids=["declare", "passive declare", "get"],
)
@against_the_clock
def test_using_it_starts_its_time_anew(
    channel: Channel, queue_with: Queue, use: Callable[[Channel, str], Any]
) -> None:
    queue, witness = queue_with(EXPIRES), queue_with(EXPIRES)

    def use_and_look() -> bool:
        use(channel, queue)
        return not exists(channel, witness)

    eventually(use_and_look)
    assert exists(channel, queue)


@against_the_clock
def test_it_stays_while_it_has_a_consumer(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with(EXPIRES)
    tag = channel.consume(queue, no_ack=True)
    wait_gone(channel, queue_with(EXPIRES))
    assert exists(channel, queue)
    channel.cancel(tag)
    wait_gone(channel, queue)


@against_the_clock
def test_a_message_that_waits_for_an_ack_does_not_keep_it(
    channel: Channel, queue_with: Queue
) -> None:
    queue = queue_with(EXPIRES)
    fill(channel, queue, "a")
    message = take(channel, queue)
    wait_gone(channel, queue)
    channel.ack(message.tag)
    channel.sync()


def test_its_messages_are_not_dead_lettered(
    channel: Channel, queue: str, queue_with: Queue
) -> None:
    dead_letter = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
    expiring = queue_with({"x-expires": 50, **dead_letter})
    fill(channel, expiring, "a")
    wait_gone(channel, expiring)
    assert channel.count(queue) == 0


def test_declared_again_it_is_a_new_queue(channel: Channel, queue_with: Queue) -> None:
    queue = queue_with({"x-expires": 50})
    fill(channel, queue, "a")
    wait_gone(channel, queue)
    assert channel.declare(queue).message_count == 0
