"""Transactions: publishes and acks that happen at commit, or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import spec

from tests.support.eventually import eventually
from tests.support.wire import Channel, Connection


@pytest.fixture
def queue(channel: Channel, name: Callable) -> str:
    return channel.declare(name("queue")).queue


@pytest.fixture
def tx(channel: Channel) -> Channel:
    """A transactional channel, on the connection of ``channel``."""
    tx = channel.connection.channel()
    tx.call(spec.Tx.Select())
    return tx


def _commit(tx: Channel) -> None:
    tx.call(spec.Tx.Commit())


def _rollback(tx: Channel) -> None:
    tx.call(spec.Tx.Rollback())


# -- publishing ------------------------------------------------------------------------------
def test_published_messages_appear_at_commit(channel: Channel, tx: Channel, queue: str) -> None:
    for body in (b"one", b"two", b"three"):
        tx.publish(queue, body)
    tx.sync()
    assert channel.drain(queue) == []
    _commit(tx)
    assert channel.drain(queue) == [b"one", b"two", b"three"]


def test_a_rollback_forgets_published_messages(channel: Channel, tx: Channel, queue: str) -> None:
    tx.publish(queue, b"forgotten")
    _rollback(tx)
    tx.publish(queue, b"kept")
    _commit(tx)
    assert channel.drain(queue) == [b"kept"]


def test_a_new_transaction_begins_with_each_commit(
    channel: Channel, tx: Channel, queue: str
) -> None:
    tx.publish(queue, b"one")
    _commit(tx)
    tx.publish(queue, b"two")
    tx.sync()
    assert channel.drain(queue) == [b"one"]
    _commit(tx)
    assert channel.drain(queue) == [b"two"]


def test_a_channel_closed_before_commit_publishes_nothing(
    channel: Channel, tx: Channel, queue: str
) -> None:
    tx.publish(queue, b"lost")
    tx.close()
    assert channel.drain(queue) == []


def test_a_connection_lost_before_commit_publishes_nothing(
    channel: Channel, connect: Callable[..., Connection], queue: str
) -> None:
    connection = connect()
    tx = connection.channel()
    tx.call(spec.Tx.Select())
    tx.publish(queue, b"lost")
    tx.sync()
    connection.drop()
    channel.publish(queue, b"after")
    assert channel.drain(queue) == [b"after"]


def test_a_commit_covers_several_queues_and_exchanges(
    channel: Channel, tx: Channel, queue: str, name: Callable
) -> None:
    other = channel.declare(name("other")).queue
    exchange = name("fanout")
    channel.declare_exchange(exchange, "fanout")
    channel.bind(queue, exchange)
    channel.bind(other, exchange)
    tx.publish(queue, b"to one")
    tx.publish("", b"to both", exchange=exchange)
    tx.sync()
    assert (channel.drain(queue), channel.drain(other)) == ([], [])
    _commit(tx)
    assert channel.drain(queue) == [b"to one", b"to both"]
    assert channel.drain(other) == [b"to both"]


def test_a_consumer_gets_the_messages_at_commit(channel: Channel, tx: Channel, queue: str) -> None:
    channel.consume(queue, no_ack=True)
    tx.publish(queue, b"hello")
    assert channel.quiet(0.1)
    _commit(tx)
    assert channel.delivery().body == b"hello"


def test_other_channels_are_not_part_of_the_transaction(
    channel: Channel, tx: Channel, queue: str
) -> None:
    tx.publish(queue, b"in")
    channel.publish(queue, b"outside")
    assert channel.drain(queue) == [b"outside"]


def test_where_a_message_goes_is_decided_when_it_is_published(
    channel: Channel, tx: Channel, queue: str, name: Callable
) -> None:
    exchange = name("fanout")
    channel.declare_exchange(exchange, "fanout")
    tx.publish("", b"before the binding", exchange=exchange)
    tx.sync()
    channel.bind(queue, exchange)
    tx.publish("", b"after the binding", exchange=exchange)
    tx.sync()
    channel.unbind(queue, exchange)
    _commit(tx)
    assert channel.drain(queue) == [b"after the binding"]


def test_a_mandatory_message_is_returned_at_commit(tx: Channel) -> None:
    tx.publish("nowhere", b"hello", mandatory=True)
    tx.sync()
    assert tx.quiet(0.1)
    tx.send(spec.Tx.Commit())
    kinds = (spec.Basic.Return, spec.Tx.CommitOk)
    assert tx.expect(*kinds).body == b"hello"
    assert tx.expect(*kinds).NAME == "Tx.CommitOk"


def test_a_rolled_back_mandatory_message_is_not_returned(tx: Channel) -> None:
    tx.publish("nowhere", b"hello", mandatory=True)
    _rollback(tx)
    _commit(tx)
    assert not tx.inbox


def test_a_publish_that_is_refused_closes_the_channel_at_once_and_undoes_the_rest(
    channel: Channel, tx: Channel, queue: str, name: Callable
) -> None:
    missing = name("missing")
    tx.publish(queue, b"undone")
    tx.publish("key", b"refused", exchange=missing)
    text = f"NOT_FOUND - no exchange '{missing}' in vhost '/'"
    assert tx.expect_closed().args == ("channel", 404, text, 60, 40)
    assert channel.drain(queue) == []


def test_no_confirms_are_sent_on_a_transactional_channel(tx: Channel, queue: str) -> None:
    tx.publish(queue, b"hello")
    tx.send(spec.Tx.Commit())
    assert tx.expect(spec.Basic.Ack, spec.Tx.CommitOk).NAME == "Tx.CommitOk"
    assert tx.quiet(0.1)


def test_a_commit_that_a_full_queue_refuses_closes_the_channel(
    channel: Channel, tx: Channel, queue: str, name: Callable
) -> None:
    arguments = {"x-max-length": 0, "x-overflow": "reject-publish"}
    full = channel.declare(name("full"), arguments=arguments).queue
    tx.publish(queue, b"taken")
    tx.publish(full, b"refused")
    text = "PRECONDITION_FAILED - partial tx completion"
    assert tx.refused(spec.Tx.Commit()).args == ("channel", 406, text, 90, 20)
    assert channel.drain(queue) == [b"taken"]  # partial, as it says


def test_persistent_messages_are_committed_too(
    channel: Channel, tx: Channel, name: Callable
) -> None:
    queue = channel.declare(name("durable"), durable=True).queue
    for _ in range(20):
        tx.publish(queue, b"hello", delivery_mode=2)
    _commit(tx)
    assert channel.drain(queue) == [b"hello"] * 20


# -- acks ------------------------------------------------------------------------------------
@pytest.fixture
def filled(channel: Channel, queue: str) -> str:
    """A queue that holds three messages."""
    filling = channel.connection.channel()
    filling.confirm()
    for body in (b"one", b"two", b"three"):
        filling.publish(queue, body)
    filling.wait_confirms(3)
    return queue


def _left(tx: Channel, queue: str) -> list[bytes]:
    """What the queue holds once all that the channel has not settled is back in it."""
    tx.call(spec.Basic.Recover(requeue=True))
    return tx.drain(queue)


def test_an_ack_counts_at_commit(tx: Channel, filled: str) -> None:
    message = tx.get(filled, no_ack=False)
    assert message is not None
    tx.ack(message.tag)
    _commit(tx)
    assert _left(tx, filled) == [b"two", b"three"]


def test_an_ack_without_a_commit_does_not_count(channel: Channel, tx: Channel, filled: str) -> None:
    message = tx.get(filled, no_ack=False)
    assert message is not None
    tx.ack(message.tag)
    tx.close()
    found: list[bytes] = []

    def all_found() -> bool:
        found.extend(channel.drain(filled))
        return len(found) == 3

    eventually(all_found)
    assert b"one" in found


def test_a_rolled_back_ack_leaves_the_message_with_the_channel(
    channel: Channel, tx: Channel, filled: str
) -> None:
    message = tx.get(filled, no_ack=False)
    assert message is not None
    tx.ack(message.tag)
    _rollback(tx)
    assert channel.drain(filled) == [b"two", b"three"]  # the first is not back in the queue
    tx.ack(message.tag)  # nor is it gone
    _commit(tx)
    assert _left(tx, filled) == []


def test_after_a_rollback_recover_gives_the_message_again(tx: Channel, filled: str) -> None:
    message = tx.get(filled, no_ack=False)
    assert message is not None
    tx.ack(message.tag)
    _rollback(tx)
    tx.call(spec.Basic.Recover(requeue=True))
    again = tx.get(filled)
    assert again is not None
    assert (again.body, again.method.redelivered) == (b"one", True)


def test_recover_does_not_give_a_message_again_whose_ack_is_open(tx: Channel, filled: str) -> None:
    message = tx.get(filled, no_ack=False)
    assert message is not None
    tx.ack(message.tag)
    assert _left(tx, filled) == [b"two", b"three"]


@pytest.mark.parametrize("word", ["nack", "reject"])
def test_a_requeue_counts_at_commit(channel: Channel, tx: Channel, filled: str, word: str) -> None:
    message = tx.get(filled, no_ack=False)
    assert message is not None
    getattr(tx, word)(message.tag, requeue=True)
    tx.sync()
    assert channel.drain(filled) == [b"two", b"three"]
    _commit(tx)
    assert tx.drain(filled) == [b"one"]


@pytest.mark.parametrize("word", ["nack", "reject"])
def test_a_rejection_counts_at_commit(tx: Channel, filled: str, word: str) -> None:
    message = tx.get(filled, no_ack=False)
    assert message is not None
    getattr(tx, word)(message.tag, requeue=False)
    _commit(tx)
    assert _left(tx, filled) == [b"two", b"three"]


def test_a_rolled_back_nack_leaves_the_message_with_the_channel(tx: Channel, filled: str) -> None:
    message = tx.get(filled, no_ack=False)
    assert message is not None
    tx.nack(message.tag, requeue=False)
    _rollback(tx)
    _commit(tx)
    assert _left(tx, filled) == [b"one", b"two", b"three"]


def test_a_message_rejected_at_commit_is_dead_lettered(
    channel: Channel, tx: Channel, queue: str, name: Callable
) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
    source = channel.declare(name("source"), arguments=arguments).queue
    channel.publish(source, b"hello")
    message = eventually(lambda: tx.get(source, no_ack=False))
    tx.reject(message.tag, requeue=False)
    tx.sync()
    assert channel.drain(queue) == []
    _commit(tx)
    assert eventually(lambda: channel.drain(queue)) == [b"hello"]


def test_an_ack_of_a_transaction_may_be_multiple(tx: Channel, filled: str) -> None:
    for _ in range(3):
        tx.get(filled, no_ack=False)
    tx.ack(2, multiple=True)
    _commit(tx)
    assert _left(tx, filled) == [b"three"]


def test_publishes_and_acks_are_committed_together(
    channel: Channel, tx: Channel, filled: str, name: Callable
) -> None:
    out = channel.declare(name("out")).queue
    message = tx.get(filled, no_ack=False)
    assert message is not None
    tx.publish(out, b"answer")
    tx.ack(message.tag)
    _commit(tx)
    assert _left(tx, filled) == [b"two", b"three"]
    assert channel.drain(out) == [b"answer"]


@pytest.mark.parametrize("end", [spec.Tx.Commit, spec.Tx.Rollback])
def test_an_unknown_tag_is_refused_at_once(tx: Channel, end: type) -> None:
    tx.ack(7)
    text = "PRECONDITION_FAILED - unknown delivery tag 7"
    assert tx.refused(end()).args == ("channel", 406, text, 60, 80)


def test_a_tag_can_be_acked_once_in_a_transaction(tx: Channel, filled: str) -> None:
    tx.get(filled, no_ack=False)
    tx.ack(1)
    tx.ack(1)
    text = "PRECONDITION_FAILED - unknown delivery tag 1"
    assert tx.expect_closed().args == ("channel", 406, text, 60, 80)


def test_a_prefetch_window_opens_at_commit(channel: Channel, tx: Channel, filled: str) -> None:
    tx.qos(1)
    tx.consume(filled)
    first = tx.delivery()
    tx.ack(first.tag)
    assert tx.quiet(0.1)
    _commit(tx)
    assert tx.delivery().body == b"two"


# -- modes and refusals ----------------------------------------------------------------------
def test_selecting_again_keeps_the_open_transaction(
    channel: Channel, tx: Channel, queue: str
) -> None:
    tx.publish(queue, b"hello")
    assert tx.call(spec.Tx.Select()).NAME == "Tx.SelectOk"
    assert channel.drain(queue) == []
    _commit(tx)
    assert channel.drain(queue) == [b"hello"]


def test_nothing_may_be_committed_or_rolled_back(tx: Channel) -> None:
    _commit(tx)
    _rollback(tx)
    _commit(tx)


@pytest.mark.parametrize(("method", "method_id"), [(spec.Tx.Commit, 20), (spec.Tx.Rollback, 30)])
@pytest.mark.parametrize("confirming", [False, True])
def test_a_channel_that_is_not_transactional_refuses(
    channel: Channel, method: type, method_id: int, confirming: bool
) -> None:
    if confirming:
        channel.confirm()
    text = "PRECONDITION_FAILED - channel is not transactional"
    assert channel.refused(method()).args == ("channel", 406, text, 90, method_id)
