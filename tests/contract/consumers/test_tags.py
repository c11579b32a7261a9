"""Consumer tags: whose they are, how far they reach, and what reusing one costs."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.consumers.steps import delete, fill
from tests.support.wire import Channel, Connection

SERVER_MADE = r"amq\.ctag-[A-Za-z0-9_-]{22}"


def test_an_empty_tag_is_replaced_by_one_the_server_makes(channel: Channel, queue: str) -> None:
    tags = {channel.consume(queue) for _ in range(5)}

    assert len(tags) == 5
    assert all(re.fullmatch(SERVER_MADE, tag) for tag in tags), tags


@pytest.mark.parametrize("tag", ["worker 1", "amq.ctag-mine", "größe/€", "t" * 255])
def test_a_tag_the_client_chose_is_kept(channel: Channel, queue: str, tag: str) -> None:
    assert channel.consume(queue, tag) == tag
    fill(channel, queue, "a")
    assert channel.delivery().method.consumer_tag == tag


def test_reusing_a_tag_closes_the_connection(channel: Channel, queue: str) -> None:
    channel.consume(queue, "worker")

    refusal = channel.refused(spec.Basic.Consume(queue=queue, consumer_tag="worker"))

    assert (refusal.scope, refusal.code) == ("connection", 530)
    assert refusal.text == "NOT_ALLOWED - attempt to reuse consumer tag 'worker'"
    assert (refusal.class_id, refusal.method_id) == (60, 20)
    assert channel.connection.wire.closed_within()


def test_a_reused_tag_is_noticed_before_a_missing_queue(channel: Channel, queue: str) -> None:
    channel.consume(queue, "worker")
    refusal = channel.refused(spec.Basic.Consume(queue="no-such", consumer_tag="worker"))
    assert refusal.code == 530


def test_reusing_a_tag_the_server_made_closes_the_connection(channel: Channel, queue: str) -> None:
    tag = channel.consume(queue)
    refusal = channel.refused(spec.Basic.Consume(queue=queue, consumer_tag=tag))
    assert (refusal.scope, refusal.code) == ("connection", 530)
    assert refusal.text == f"NOT_ALLOWED - attempt to reuse consumer tag '{tag}'"


def test_a_reused_tag_is_refused_without_waiting_for_an_answer_too(
    channel: Channel, queue: str
) -> None:
    channel.send(spec.Basic.Consume(queue=queue, consumer_tag="worker", nowait=True))
    refusal = channel.refused(spec.Basic.Consume(queue=queue, consumer_tag="worker", nowait=True))
    assert (refusal.scope, refusal.code) == ("connection", 530)


def test_a_tag_belongs_to_its_channel(channel: Channel, queue: str) -> None:
    other = channel.connection.channel()
    assert channel.consume(queue, "worker") == other.consume(queue, "worker") == "worker"
    assert channel.declare(queue, passive=True).consumer_count == 2

    channel.cancel("worker")

    fill(channel, queue, "ab")
    assert [message.body for message in other.deliveries(2)] == [b"a", b"b"]


def test_a_tag_is_free_again_after_cancel(channel: Channel, queue: str) -> None:
    channel.consume(queue, "worker")
    channel.cancel("worker")
    assert channel.consume(queue, "worker") == "worker"


def test_a_tag_is_free_again_after_its_queue_is_deleted(
    channel: Channel, queue: str, name: Callable[[str], str]
) -> None:
    channel.consume(queue, "worker")
    delete(channel, queue)
    channel.expect(spec.Basic.Cancel)

    assert channel.consume(channel.declare(name("next")).queue, "worker") == "worker"


def test_other_connections_keep_working_when_one_reuses_a_tag(
    channel: Channel, queue: str, connect: Callable[..., Connection]
) -> None:
    other = connect().channel()
    other.consume(queue, "worker")
    channel.consume(queue, "worker")
    channel.refused(spec.Basic.Consume(queue=queue, consumer_tag="worker"))

    fill(other, queue, "a")
    assert other.delivery().body == b"a"
