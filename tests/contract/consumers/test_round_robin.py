"""Consumers of equal priority take turns."""

from __future__ import annotations

from collections.abc import Callable

from tests.contract.consumers.steps import QUIET_S, delivered, fill, held, word
from tests.support.wire import Channel, Connection


def test_consumers_of_one_channel_take_turns_in_the_order_they_came(
    channel: Channel, queue: str
) -> None:
    for tag in ("one", "two", "three"):
        channel.consume(queue, tag)
    fill(channel, queue, "abcdefg")
    assert delivered(channel, 7) == {"one": "adg", "two": "be", "three": "cf"}


def test_consumers_of_several_connections_take_turns(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    workers = [connect().channel() for _ in range(3)]
    for worker in workers:
        worker.consume(queue)
    fill(channel, queue, "abcdefghi")
    assert [word(worker.deliveries(3)) for worker in workers] == ["adg", "beh", "cfi"]


def test_the_turn_goes_on_where_it_stopped(channel: Channel, queue: str) -> None:
    channel.consume(queue, "one")
    channel.consume(queue, "two")
    for letter in "abc":
        fill(channel, queue, letter)
        channel.ack(channel.delivery().tag)
    fill(channel, queue, "d")
    assert delivered(channel, 1) == {"two": "d"}


def test_a_first_consumer_takes_what_is_waiting_the_next_shares_what_comes(
    channel: Channel, queue: str
) -> None:
    fill(channel, queue, "abcd")
    channel.consume(queue, "one")
    channel.consume(queue, "two")
    assert delivered(channel, 4) == {"one": "abcd"}


def test_a_full_consumer_is_passed_over(channel: Channel, queue: str) -> None:
    channel.qos(1)
    channel.consume(queue, "small")
    channel.qos(3)
    channel.consume(queue, "large")
    fill(channel, queue, "abcdef")
    assert delivered(channel, 4) == {"small": "a", "large": "bcd"}


def test_whoever_has_room_first_gets_the_next_message(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    slow, quick = (connect().channel() for _ in range(2))
    for worker in (slow, quick):
        worker.qos(1)
        worker.consume(queue)
    fill(channel, queue, "abcdef")
    assert slow.delivery().body == b"a"

    for letter in "bcde":
        message = quick.delivery()
        assert word([message]) == letter
        quick.ack(message.tag)

    assert held(quick, 1) == "f"
    assert slow.quiet(QUIET_S)


def test_consumers_that_are_all_full_take_turns_again_once_they_have_room(
    channel: Channel, queue: str
) -> None:
    channel.qos(1)
    for tag in ("one", "two", "three"):
        channel.consume(queue, tag)
    fill(channel, queue, "abc")
    assert delivered(channel, 3) == {"one": "a", "two": "b", "three": "c"}
    channel.ack(0, multiple=True)
    channel.sync()
    fill(channel, queue, "def")
    shares = delivered(channel, 3)
    assert sorted(shares) == ["one", "three", "two"]
    assert sorted(shares.values()) == ["d", "e", "f"]


def test_a_consumer_that_leaves_gives_up_its_turn(channel: Channel, queue: str) -> None:
    for tag in ("one", "two", "three"):
        channel.consume(queue, tag)
    fill(channel, queue, "a")
    assert channel.delivery().method.consumer_tag == "one"
    channel.cancel("two")
    fill(channel, queue, "bcd")
    assert delivered(channel, 3) == {"three": "bd", "one": "c"}


def test_every_queue_has_turns_of_its_own(
    channel: Channel, queue: str, name: Callable[[str], str]
) -> None:
    second = channel.declare(name("second")).queue
    for source in (queue, second):
        channel.consume(source, f"one of {source}")
        channel.consume(source, f"two of {source}")
    fill(channel, queue, "a")
    fill(channel, second, "b")
    assert delivered(channel, 2) == {f"one of {queue}": "a", f"one of {second}": "b"}
