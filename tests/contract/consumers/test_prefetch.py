"""basic.qos: how many unacked deliveries a consumer and a channel may have."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.consumers.steps import QUIET_S, delivered, fill, held, take, word
from tests.support.wire import Channel


def test_a_prefetch_size_is_not_implemented(channel: Channel) -> None:
    refusal = channel.refused(spec.Basic.Qos(prefetch_size=100))
    assert (refusal.scope, refusal.code) == ("connection", 540)
    assert refusal.text == "NOT_IMPLEMENTED - prefetch_size!=0 (100)"
    assert (refusal.class_id, refusal.method_id) == (60, 10)


class TestEachConsumer:
    """global=false: a window for each consumer that starts afterwards."""

    def test_no_more_than_the_prefetch_is_unacked(self, channel: Channel, queue: str) -> None:
        channel.qos(2)
        channel.consume(queue)
        fill(channel, queue, "abcd")
        assert held(channel, 2) == "ab"

        channel.ack(1)

        assert held(channel, 1) == "c"

    def test_zero_means_no_limit(self, channel: Channel, queue: str) -> None:
        channel.qos(1)
        channel.qos(0)
        channel.consume(queue)
        fill(channel, queue, "x" * 300)
        assert len(channel.deliveries(300)) == 300

    def test_the_largest_prefetch_is_taken(self, channel: Channel, queue: str) -> None:
        channel.qos(65535)
        channel.consume(queue)
        fill(channel, queue, "ab")
        assert held(channel, 2) == "ab"

    def test_each_consumer_has_a_window_of_its_own(self, channel: Channel, queue: str) -> None:
        channel.qos(2)
        channel.consume(queue, "one")
        channel.consume(queue, "two")
        fill(channel, queue, "abcdef")
        assert delivered(channel, 4) == {"one": "ac", "two": "bd"}

    def test_a_new_value_counts_for_new_consumers_only(self, channel: Channel, queue: str) -> None:
        channel.qos(1)
        channel.consume(queue, "before")
        channel.qos(3)
        channel.consume(queue, "after")
        fill(channel, queue, "abcdefgh")
        assert delivered(channel, 4) == {"before": "a", "after": "bcd"}

    def test_a_consumer_from_before_any_prefetch_stays_unlimited(
        self, channel: Channel, queue: str
    ) -> None:
        channel.consume(queue)
        channel.qos(1)
        fill(channel, queue, "abcde")
        assert held(channel, 5) == "abcde"

    def test_it_belongs_to_the_channel_it_was_set_on(self, channel: Channel, queue: str) -> None:
        channel.qos(1)
        other = channel.connection.channel()
        other.consume(queue)
        fill(channel, queue, "abcde")
        assert held(other, 5) == "abcde"

    @pytest.mark.parametrize("settle", ["ack", "nack", "reject"])
    def test_any_settlement_makes_room(self, channel: Channel, queue: str, settle: str) -> None:
        channel.qos(1)
        channel.consume(queue)
        fill(channel, queue, "ab")
        options = {} if settle == "ack" else {"requeue": False}
        getattr(channel, settle)(channel.delivery().tag, **options)
        assert held(channel, 1) == "b"

    def test_multiple_makes_room_for_as_many(self, channel: Channel, queue: str) -> None:
        channel.qos(3)
        channel.consume(queue)
        fill(channel, queue, "abcdefgh")
        assert held(channel, 3) == "abc"
        channel.ack(2, multiple=True)
        assert held(channel, 2) == "de"
        channel.ack(0, multiple=True)
        assert held(channel, 3) == "fgh"

    def test_a_message_given_back_makes_room_for_itself_first(
        self, channel: Channel, queue: str
    ) -> None:
        channel.qos(2)
        channel.consume(queue)
        fill(channel, queue, "abcd")
        assert held(channel, 2) == "ab"
        channel.nack(1)
        assert held(channel, 1) == "a"

    def test_basic_get_is_not_limited_and_uses_up_nothing(
        self, channel: Channel, queue: str
    ) -> None:
        channel.qos(1)
        fill(channel, queue, "abcd")
        assert word(take(channel, queue, 2)) == "ab"
        channel.consume(queue)
        assert held(channel, 1) == "c"
        assert word(take(channel, queue, 1)) == "d"

    def test_acking_a_get_makes_no_room_for_a_consumer(self, channel: Channel, queue: str) -> None:
        channel.qos(1)
        fill(channel, queue, "abc")
        (got,) = take(channel, queue, 1)
        channel.consume(queue)
        assert held(channel, 1) == "b"
        channel.ack(got.tag)
        assert channel.quiet(QUIET_S)

    def test_a_cancelled_consumers_window_does_not_bind_the_next(
        self, channel: Channel, queue: str
    ) -> None:
        channel.qos(2)
        channel.consume(queue, "one")
        fill(channel, queue, "abcde")
        assert held(channel, 2) == "ab"
        channel.cancel("one")
        channel.consume(queue, "two")
        assert held(channel, 2) == "cd"


class TestWholeChannel:
    """global=true: one window for all consumers of the channel, old and new."""

    def test_consumers_share_the_window(
        self, channel: Channel, queue: str, name: Callable[[str], str]
    ) -> None:
        second = channel.declare(name("second")).queue
        channel.qos(3, global_qos=True)
        channel.consume(queue, "one")
        channel.consume(second, "two")
        fill(channel, queue, "ab")
        fill(channel, second, "cd")
        assert held(channel, 3) == "abc"

        channel.ack(1)

        assert delivered(channel, 1) == {"two": "d"}

    def test_it_counts_for_consumers_from_before(self, channel: Channel, queue: str) -> None:
        channel.consume(queue)
        channel.qos(2, global_qos=True)
        fill(channel, queue, "abcd")
        assert held(channel, 2) == "ab"

    def test_what_is_unacked_already_counts(self, channel: Channel, queue: str) -> None:
        channel.consume(queue)
        fill(channel, queue, "abc")
        assert held(channel, 3) == "abc"
        channel.qos(2, global_qos=True)
        fill(channel, queue, "de")
        assert channel.quiet(QUIET_S)

        channel.ack(1)
        assert channel.quiet(QUIET_S), "two are unacked: full"
        channel.ack(2)
        assert held(channel, 1) == "d"

    def test_raising_it_lets_more_through_at_once(self, channel: Channel, queue: str) -> None:
        channel.qos(1, global_qos=True)
        channel.consume(queue)
        fill(channel, queue, "abcde")
        assert held(channel, 1) == "a"
        channel.qos(3, global_qos=True)
        assert held(channel, 2) == "bc"

    def test_lowering_it_takes_nothing_back(self, channel: Channel, queue: str) -> None:
        channel.qos(3, global_qos=True)
        channel.consume(queue)
        fill(channel, queue, "abcde")
        assert held(channel, 3) == "abc"
        channel.qos(1, global_qos=True)
        channel.ack(2, multiple=True)
        assert channel.quiet(QUIET_S), "one is unacked: full"
        channel.ack(3)
        assert held(channel, 1) == "d"

    def test_zero_lifts_it(self, channel: Channel, queue: str) -> None:
        channel.qos(1, global_qos=True)
        channel.consume(queue)
        fill(channel, queue, "abcd")
        assert held(channel, 1) == "a"
        channel.qos(0, global_qos=True)
        assert held(channel, 3) == "bcd"

    def test_unacked_deliveries_of_a_cancelled_consumer_still_count(
        self, channel: Channel, queue: str
    ) -> None:
        channel.qos(2, global_qos=True)
        channel.consume(queue, "one")
        fill(channel, queue, "abc")
        assert held(channel, 2) == "ab"
        channel.cancel("one")
        channel.consume(queue, "two")
        assert channel.quiet(QUIET_S)
        channel.ack(1)
        assert held(channel, 1) == "c"

    def test_another_channel_has_its_own(self, channel: Channel, queue: str) -> None:
        channel.qos(1, global_qos=True)
        channel.consume(queue, "one")
        other = channel.connection.channel()
        other.consume(queue, "two")
        fill(channel, queue, "abcd")
        assert word(channel.deliveries(1)) == "a"
        assert held(other, 3) == "bcd"

    def test_basic_get_does_not_use_it_up(self, channel: Channel, queue: str) -> None:
        channel.qos(1, global_qos=True)
        fill(channel, queue, "abcd")
        assert word(take(channel, queue, 2)) == "ab"
        channel.consume(queue)
        assert held(channel, 1) == "c"

    def test_recover_makes_room(self, channel: Channel, queue: str) -> None:
        channel.qos(2, global_qos=True)
        channel.consume(queue)
        fill(channel, queue, "ab")
        assert held(channel, 2) == "ab"
        channel.call(spec.Basic.Recover(requeue=True))
        assert held(channel, 2) == "ab"

    def test_no_ack_deliveries_use_nothing_up(self, channel: Channel, queue: str) -> None:
        channel.qos(1, global_qos=True)
        channel.consume(queue, no_ack=True)
        fill(channel, queue, "abcde")
        assert held(channel, 5) == "abcde"

    def test_a_full_channel_holds_back_its_no_ack_consumers_too(
        self, channel: Channel, queue: str, name: Callable[[str], str]
    ) -> None:
        quick = channel.declare(name("quick")).queue
        channel.qos(1, global_qos=True)
        channel.consume(queue)
        channel.consume(quick, no_ack=True)
        fill(channel, queue, "a")
        assert held(channel, 1) == "a"
        fill(channel, quick, "b")
        assert channel.quiet(QUIET_S)
        channel.ack(1)
        assert held(channel, 1) == "b"

    def test_a_quorum_queue_cannot_be_consumed_under_it(
        self, channel: Channel, name: Callable[[str], str]
    ) -> None:
        arguments = {"x-queue-type": "quorum"}
        queue = channel.declare(name("quorum"), durable=True, arguments=arguments).queue
        channel.qos(1, global_qos=True)
        refusal = channel.refused(spec.Basic.Consume(queue=queue))
        assert (refusal.scope, refusal.code) == ("connection", 540)
        assert refusal.text == (
            f"NOT_IMPLEMENTED - queue '{queue}' in vhost '/' does not support global qos"
        )
        assert (refusal.class_id, refusal.method_id) == (60, 20)


class TestBoth:
    """The two windows together."""

    def test_both_hold(self, channel: Channel, queue: str) -> None:
        channel.qos(2)
        channel.qos(3, global_qos=True)
        channel.consume(queue, "one")
        channel.consume(queue, "two")
        fill(channel, queue, "abcdef")
        assert delivered(channel, 3) == {"one": "ac", "two": "b"}

    def test_the_smaller_window_of_the_consumer_holds(self, channel: Channel, queue: str) -> None:
        channel.qos(1)
        channel.qos(5, global_qos=True)
        channel.consume(queue)
        fill(channel, queue, "abc")
        assert held(channel, 1) == "a"

    def test_setting_the_consumers_window_lifts_the_channels(
        self, channel: Channel, queue: str
    ) -> None:
        channel.qos(1, global_qos=True)
        channel.consume(queue)
        fill(channel, queue, "abcd")
        assert held(channel, 1) == "a"
        channel.qos(2)
        assert held(channel, 3) == "bcd"

    def test_a_consumer_keeps_its_own_window_when_the_channels_is_lifted(
        self, channel: Channel, queue: str
    ) -> None:
        channel.qos(2)
        channel.qos(1, global_qos=True)
        channel.consume(queue)
        fill(channel, queue, "abcd")
        assert held(channel, 1) == "a"
        channel.qos(0, global_qos=True)
        assert held(channel, 1) == "b"
