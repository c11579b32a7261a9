"""Publisher confirms."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.support.wire import Channel, Connection


@pytest.fixture
def queue(channel: Channel, name: Callable) -> str:
    return channel.declare(name("queue")).queue


def _rejecting(channel: Channel, queue: str, length: int, overflow: str = "reject-publish") -> str:
    arguments = {"x-max-length": length, "x-overflow": overflow}
    return channel.declare(queue, arguments=arguments).queue


def test_every_message_is_acked_by_its_number_on_the_channel(channel: Channel, queue: str) -> None:
    channel.confirm()
    for number in range(1, 6):
        channel.publish(queue, b"hello")
        ack = channel.expect(spec.Basic.Ack)
        assert (ack.delivery_tag, ack.multiple) == (number, False)
    assert channel.drain(queue) == [b"hello"] * 5


def test_without_confirm_select_nothing_is_acked(channel: Channel, queue: str) -> None:
    channel.publish(queue, b"hello")
    assert channel.drain(queue) == [b"hello"]
    assert channel.quiet(0.1)


def test_counting_begins_with_confirm_select(channel: Channel, queue: str) -> None:
    channel.publish(queue, b"before")
    channel.publish(queue, b"before")
    channel.confirm()
    channel.publish(queue, b"after")
    assert channel.expect(spec.Basic.Ack).delivery_tag == 1


def test_selecting_again_goes_on_counting(channel: Channel, queue: str) -> None:
    channel.confirm()
    channel.publish(queue, b"one")
    assert channel.expect(spec.Basic.Ack).delivery_tag == 1
    channel.confirm()
    channel.publish(queue, b"two")
    assert channel.expect(spec.Basic.Ack).delivery_tag == 2


def test_a_no_wait_select_has_no_answer_and_works(channel: Channel, queue: str) -> None:
    channel.send(spec.Confirm.Select(nowait=True))
    channel.publish(queue, b"hello")
    assert channel.expect(spec.Confirm.SelectOk, spec.Basic.Ack).NAME == "Basic.Ack"


def test_each_channel_counts_for_itself(connect: Callable[..., Connection], queue: str) -> None:
    connection = connect()
    first, second, plain = (connection.channel() for _ in range(3))
    first.confirm()
    second.confirm()
    for channel in (first, first, second, plain):
        channel.publish(queue, b"hello")
    assert first.wait_confirms(2) == {1: "ack", 2: "ack"}
    assert second.wait_confirms(1) == {1: "ack"}
    assert plain.quiet(0.1)


@pytest.mark.parametrize(
    ("exchange", "key"), [("", "no-such-queue"), ("amq.direct", "nowhere"), ("amq.headers", "")]
)
def test_an_unroutable_message_is_acked(channel: Channel, exchange: str, key: str) -> None:
    channel.confirm()
    channel.publish(key, b"hello", exchange=exchange)
    assert channel.expect(spec.Basic.Ack, spec.Basic.Nack).NAME == "Basic.Ack"


def test_under_load_acks_are_gathered(channel: Channel, queue: str) -> None:
    channel.confirm()
    count = 2000
    for _ in range(count):
        channel.publish(queue, b"x")
    settled, acks = set(), []
    while len(settled) < count:
        ack = channel.expect(spec.Basic.Ack)
        acks.append(ack)
        if not ack.multiple:
            settled.add(ack.delivery_tag)
        else:
            settled.update(range(1, ack.delivery_tag + 1))
    assert any(ack.multiple for ack in acks)
    assert len(acks) < count
    assert settled == set(range(1, count + 1))
    assert channel.quiet(0.1)


def test_every_message_is_settled_once(channel: Channel, queue: str) -> None:
    channel.confirm()
    for number in range(300):
        channel.publish("nowhere" if number % 7 == 0 else queue, b"x")
    settled: list[int] = []
    while len(settled) < 300:
        ack = channel.expect(spec.Basic.Ack)
        if not ack.multiple:
            settled.append(ack.delivery_tag)
        else:
            new = set(range(1, ack.delivery_tag + 1)) - set(settled)
            assert ack.delivery_tag in new, "acked twice"
            settled.extend(new)
    assert sorted(settled) == list(range(1, 301))


def test_an_acked_message_is_in_its_queue(
    channel: Channel, connect: Callable[..., Connection], queue: str
) -> None:
    channel.confirm()
    channel.publish(queue, b"hello")
    channel.expect(spec.Basic.Ack)
    assert connect().channel().drain(queue) == [b"hello"]


@pytest.mark.parametrize("type", ["classic", "quorum"])
def test_persistent_messages_in_durable_queues_are_acked(
    channel: Channel, name: Callable, type: str
) -> None:
    queue = channel.declare(name(type), durable=True, arguments={"x-queue-type": type}).queue
    channel.confirm()
    for _ in range(50):
        channel.publish(queue, b"hello", delivery_mode=2)
    assert set(channel.wait_confirms(50).values()) == {"ack"}


def test_the_ack_waits_for_no_consumer(channel: Channel, queue: str) -> None:
    channel.confirm()
    channel.consume(queue)
    channel.publish(queue, b"hello")
    assert channel.delivery().body == b"hello"
    assert channel.expect(spec.Basic.Ack).delivery_tag == 1


def test_a_message_for_many_queues_is_acked_once(channel: Channel, name: Callable) -> None:
    exchange = name("fanout")
    channel.declare_exchange(exchange, "fanout")
    for _ in range(5):
        channel.bind(channel.declare(name("queue")).queue, exchange)
    channel.confirm()
    channel.publish("", b"hello", exchange=exchange)
    assert channel.wait_confirms(1) == {1: "ack"}
    assert channel.quiet(0.1)


# -- nacks -----------------------------------------------------------------------------------
@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
def test_a_full_queue_nacks(channel: Channel, name: Callable, overflow: str) -> None:
    queue = _rejecting(channel, name("queue"), 2, overflow)
    channel.confirm()
    for number in range(1, 6):
        channel.publish(queue, str(number).encode())
        settled = channel.expect(spec.Basic.Ack, spec.Basic.Nack)
        # A lone nack says multiple where a lone ack does not; nothing else is open, so it may.
        expected = ("Basic.Ack", False) if number <= 2 else ("Basic.Nack", True)
        assert (settled.NAME, settled.multiple) == expected
        assert settled.delivery_tag == number
    assert channel.drain(queue) == [b"1", b"2"]


def test_a_queue_of_length_zero_nacks_everything(channel: Channel, name: Callable) -> None:
    queue = _rejecting(channel, name("queue"), 0)
    channel.confirm()
    for _ in range(3):
        channel.publish(queue, b"hello")
    assert channel.wait_confirms(3) == {1: "nack", 2: "nack", 3: "nack"}
    assert channel.drain(queue) == []


def test_a_full_queue_acks_again_once_there_is_room(channel: Channel, name: Callable) -> None:
    queue = _rejecting(channel, name("queue"), 1)
    channel.confirm()
    words = []
    for body in (b"in", b"refused"):
        channel.publish(queue, body)
        words.append(channel.expect(spec.Basic.Ack, spec.Basic.Nack).NAME)
    assert channel.drain(queue) == [b"in"]
    channel.publish(queue, b"in again")
    words.append(channel.expect(spec.Basic.Ack, spec.Basic.Nack).NAME)
    assert words == ["Basic.Ack", "Basic.Nack", "Basic.Ack"]


def test_without_confirms_a_refused_message_is_dropped_in_silence(
    channel: Channel, name: Callable
) -> None:
    queue = _rejecting(channel, name("queue"), 0)
    channel.publish(queue, b"hello")
    assert channel.drain(queue) == []
    assert channel.quiet(0.1)


def test_one_refusing_queue_makes_a_nack_and_the_others_keep_their_copies(
    channel: Channel, name: Callable, queue: str
) -> None:
    exchange = name("fanout")
    channel.declare_exchange(exchange, "fanout")
    channel.bind(queue, exchange)
    channel.bind(_rejecting(channel, name("full"), 0), exchange)
    channel.confirm()
    channel.publish("", b"hello", exchange=exchange)
    assert channel.wait_confirms(1) == {1: "nack"}
    assert channel.drain(queue) == [b"hello"]
    assert channel.quiet(0.1)


def test_acks_and_nacks_go_side_by_side(channel: Channel, name: Callable, queue: str) -> None:
    full = _rejecting(channel, name("full"), 0)
    channel.confirm()
    for number in range(1, 41):
        channel.publish(full if number % 2 else queue, b"hello")
    settled = channel.wait_confirms(40)
    assert settled == {number: "nack" if number % 2 else "ack" for number in range(1, 41)}


def test_a_queue_that_drops_its_head_acks(channel: Channel, name: Callable) -> None:
    queue = channel.declare(name("queue"), arguments={"x-max-length": 1}).queue
    channel.confirm()
    for _ in range(5):
        channel.publish(queue, b"hello")
    assert set(channel.wait_confirms(5).values()) == {"ack"}


def test_a_message_that_expires_at_once_is_acked(channel: Channel, queue: str) -> None:
    channel.confirm()
    channel.publish(queue, b"hello", expiration="0")
    assert channel.wait_confirms(1) == {1: "ack"}


# -- modes do not mix ------------------------------------------------------------------------
def test_a_transactional_channel_can_not_confirm(channel: Channel) -> None:
    channel.call(spec.Tx.Select())
    text = "PRECONDITION_FAILED - cannot switch from tx to confirm mode"
    assert channel.refused(spec.Confirm.Select()).args == ("channel", 406, text, 85, 10)


def test_a_confirming_channel_can_not_become_transactional(channel: Channel) -> None:
    channel.confirm()
    text = "PRECONDITION_FAILED - cannot switch from confirm to tx mode"
    assert channel.refused(spec.Tx.Select()).args == ("channel", 406, text, 90, 10)


def test_a_new_channel_of_the_same_number_does_not_confirm(
    connect: Callable[..., Connection], queue: str
) -> None:
    connection = connect()
    channel = connection.channel(1)
    channel.confirm()
    channel.close()
    again = connection.channel(1)
    again.publish(queue, b"hello")
    assert again.drain(queue) == [b"hello"]
    assert again.quiet(0.1)


def test_a_refused_message_is_not_acked(channel: Channel, name: Callable) -> None:
    channel.confirm()
    channel.publish("key", b"hello", exchange=name("missing"))
    assert channel.expect_closed().code == 404
    assert not channel.inbox
