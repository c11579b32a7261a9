"""basic.ack: one, many, all, and tags nobody gave out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.consumers.steps import drain, fill, take, wait_ready, word
from tests.support.wire import Channel, Closed


def unknown_tag(refusal: Closed, tag: int, method_id: int = 80) -> bool:
    """The channel was closed because of this delivery tag."""
    assert (refusal.scope, refusal.code) == ("channel", 406)
    assert refusal.text == f"PRECONDITION_FAILED - unknown delivery tag {tag}"
    assert (refusal.class_id, refusal.method_id) == (60, method_id)
    return True


def left_after(channel: Channel, queue: str, holder: Channel, count: int) -> str:
    """What comes back to the queue, as a word, when the holder's channel is closed."""
    holder.close()
    wait_ready(channel, queue, count)
    return word(drain(channel, queue))


def test_an_acked_message_never_comes_back(channel: Channel, queue: str) -> None:
    holder = channel.connection.channel()
    fill(channel, queue, "abc")
    take(holder, queue, 3)
    holder.ack(2)
    assert left_after(channel, queue, holder, 2) == "ac"


def test_acks_may_come_in_any_order(channel: Channel, queue: str) -> None:
    holder = channel.connection.channel()
    fill(channel, queue, "abcdef")
    take(holder, queue, 6)
    for tag in (5, 1, 4, 2):
        holder.ack(tag)
    assert left_after(channel, queue, holder, 2) == "cf"


def test_multiple_acks_everything_up_to_the_tag(channel: Channel, queue: str) -> None:
    holder = channel.connection.channel()
    fill(channel, queue, "abcde")
    take(holder, queue, 5)
    holder.ack(3, multiple=True)
    assert left_after(channel, queue, holder, 2) == "de"


def test_multiple_passes_over_tags_that_are_acked_already(channel: Channel, queue: str) -> None:
    holder = channel.connection.channel()
    fill(channel, queue, "abcde")
    take(holder, queue, 5)
    holder.ack(2)
    holder.ack(4, multiple=True)
    assert left_after(channel, queue, holder, 1) == "e"


def test_multiple_with_tag_zero_acks_all(channel: Channel, queue: str) -> None:
    holder = channel.connection.channel()
    fill(channel, queue, "abc")
    take(holder, queue, 3)
    holder.ack(0, multiple=True)
    assert holder.refused(spec.Basic.Ack(3)).code == 406
    assert channel.get(queue) is None


def test_multiple_with_tag_zero_and_nothing_unacked_is_fine(channel: Channel) -> None:
    channel.ack(0, multiple=True)
    channel.ack(0, multiple=True)
    channel.sync()


def test_multiple_reaches_over_all_queues_of_the_channel(
    channel: Channel, queue: str, name: Callable[[str], str]
) -> None:
    holder = channel.connection.channel()
    second = channel.declare(name("second")).queue
    fill(channel, queue, "ab")
    fill(channel, second, "cd")
    for source in (queue, second, queue, second):
        take(holder, source, 1)

    holder.ack(3, multiple=True)
    holder.close()

    wait_ready(channel, second, 1)
    assert word(drain(channel, second)) == "d"
    assert drain(channel, queue) == []


@pytest.mark.parametrize("multiple", [False, True])
@pytest.mark.parametrize("tag", [1, 7, 2**63])
def test_a_tag_that_was_never_given_out_closes_the_channel(
    channel: Channel, tag: int, multiple: bool
) -> None:
    assert unknown_tag(channel.refused(spec.Basic.Ack(tag, multiple)), tag)


def test_tag_zero_alone_is_unknown(channel: Channel, queue: str) -> None:
    fill(channel, queue, "a")
    take(channel, queue, 1)
    assert unknown_tag(channel.refused(spec.Basic.Ack(0)), 0)


@pytest.mark.parametrize("multiple", [False, True])
def test_acking_twice_closes_the_channel(channel: Channel, queue: str, multiple: bool) -> None:
    fill(channel, queue, "ab")
    take(channel, queue, 2)
    channel.ack(2)
    assert unknown_tag(channel.refused(spec.Basic.Ack(2, multiple)), 2)


def test_a_tag_of_another_channel_is_unknown(channel: Channel, queue: str) -> None:
    other = channel.connection.channel()
    fill(channel, queue, "a")
    take(channel, queue, 1)

    assert unknown_tag(other.refused(spec.Basic.Ack(1)), 1)

    channel.ack(1)
    channel.sync()


def test_a_tag_survives_neither_reject_nor_recover(channel: Channel, queue: str) -> None:
    fill(channel, queue, "ab")
    take(channel, queue, 1)
    channel.reject(1)
    take(channel, queue, 1)
    channel.call(spec.Basic.Recover(requeue=True))
    assert unknown_tag(channel.refused(spec.Basic.Ack(2)), 2)


def test_an_unknown_tag_gives_the_rest_back_and_keeps_what_was_acked(
    channel: Channel, queue: str
) -> None:
    holder = channel.connection.channel()
    fill(channel, queue, "abcd")
    take(holder, queue, 3)
    holder.ack(2)

    assert unknown_tag(holder.refused(spec.Basic.Ack(99, True)), 99)

    wait_ready(channel, queue, 3)
    assert word(drain(channel, queue)) == "acd"


def test_an_unknown_tag_leaves_other_channels_open(channel: Channel, queue: str) -> None:
    holder = channel.connection.channel()
    holder.refused(spec.Basic.Ack(1))
    fill(channel, queue, "a")
    assert word(drain(channel, queue)) == "a"


def test_tags_go_on_counting_after_acks(channel: Channel, queue: str) -> None:
    fill(channel, queue, "abc")
    for tag in (1, 2, 3):
        assert [message.tag for message in take(channel, queue, 1)] == [tag]
        channel.ack(tag)


def test_tags_start_anew_when_a_channel_number_is_opened_again(
    channel: Channel, queue: str
) -> None:
    holder = channel.connection.channel()
    fill(channel, queue, "a")
    take(holder, queue, 1)
    holder.close()
    wait_ready(channel, queue, 1)

    again = channel.connection.channel(holder.number)

    assert unknown_tag(again.refused(spec.Basic.Ack(1)), 1)
