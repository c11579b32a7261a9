"""A message that is given back returns to the place it was taken from."""

from __future__ import annotations

from itertools import permutations

import pytest
from pika import spec

from tests.contract.consumers.steps import drain, fill, held, take, wait_ready, word
from tests.support.wire import Channel


@pytest.mark.parametrize("order", list(permutations((1, 2, 3))), ids=str)
def test_the_order_of_nacks_does_not_matter(
    channel: Channel, queue: str, order: tuple[int, ...]
) -> None:
    fill(channel, queue, "abcd")
    take(channel, queue, 3)
    for tag in order:
        channel.nack(tag)
    assert word(drain(channel, queue)) == "abcd"


def test_a_message_returns_before_those_that_were_behind_it(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abc")
    take(channel, queue, 1)
    channel.reject(1)
    assert word(drain(channel, queue)) == "abc"


def test_a_message_returns_behind_those_that_were_before_it(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abcdef")
    take(channel, queue, 5)
    channel.nack(1)
    channel.nack(4)
    channel.nack(2)
    assert word(drain(channel, queue)) == "abdf"


def test_messages_published_meanwhile_stay_behind(channel: Channel, queue: str) -> None:
    fill(channel, queue, "ab")
    take(channel, queue, 2)
    fill(channel, queue, "cd")
    channel.nack(2)
    fill(channel, queue, "e")
    channel.nack(1)
    assert word(drain(channel, queue)) == "abcde"


def test_a_message_taken_a_second_time_returns_to_the_same_place(
    channel: Channel, queue: str
) -> None:
    fill(channel, queue, "abc")
    take(channel, queue, 2)
    channel.nack(2)
    channel.nack(1)
    assert word(take(channel, queue, 3)) == "abc"
    for tag in (4, 5, 3):
        channel.nack(tag)
    assert word(drain(channel, queue)) == "abc"


def test_messages_of_several_channels_return_to_one_order(channel: Channel, queue: str) -> None:
    holders = [channel.connection.channel() for _ in range(3)]
    fill(channel, queue, "abcdefg")
    for turn in range(6):
        take(holders[turn % 3], queue, 1)

    for holder in (holders[1], holders[2], holders[0]):
        holder.close()

    wait_ready(channel, queue, 7)
    assert word(drain(channel, queue)) == "abcdefg"


def test_what_is_given_back_after_a_purge_is_not_purged(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abcd")
    take(channel, queue, 2)
    assert channel.call(spec.Queue.Purge(queue=queue)).message_count == 2
    fill(channel, queue, "e")
    channel.nack(0, multiple=True)
    assert word(drain(channel, queue)) == "abe"


def test_a_consumer_gets_what_it_gave_back_before_newer_messages(
    channel: Channel, queue: str
) -> None:
    channel.qos(3)
    channel.consume(queue)
    fill(channel, queue, "abcdef")
    assert held(channel, 3) == "abc"
    channel.nack(2)
    assert held(channel, 1) == "b"
    channel.nack(3)
    assert held(channel, 1) == "c"
    channel.ack(1)
    assert held(channel, 1) == "d"


def test_a_consumer_gets_a_block_it_gave_back_in_order(channel: Channel, queue: str) -> None:
    channel.qos(4)
    channel.consume(queue)
    fill(channel, queue, "abcdef")
    assert held(channel, 4) == "abcd"
    channel.nack(0, multiple=True)
    assert held(channel, 4) == "abcd"


def test_a_thousand_messages_given_back_keep_their_order(channel: Channel, queue: str) -> None:
    letters = "".join(chr(0x100 + number) for number in range(1000))
    fill(channel, queue, letters)
    taken = take(channel, queue, 900)
    for message in [*taken[::2], *reversed(taken[1::2])]:
        channel.nack(message.tag)
    assert word(drain(channel, queue)) == letters
