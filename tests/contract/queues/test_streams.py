"""Stream queues over AMQP: declared, published to, read from any offset, never emptied."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from pika import amqp_object, spec

from tests.contract.queues.steps import CONSUME, DECLARE, GET, PURGE, QUIET_S, STREAM, word, words
from tests.support.wire import Channel, Closed, Message
from tests.support.wire_frames import Field


@pytest.fixture
def stream(channel: Channel, queue_with: Callable[..., str]) -> str:
    """A stream that holds a, b, c, d and e, each in a chunk of its own."""
    queue = queue_with(STREAM, durable=True)
    append(channel, queue, "abcde")
    return queue


def append(channel: Channel, queue: str, letters: Iterable[str]) -> None:
    publisher = channel.connection.channel()
    publisher.confirm()
    for letter in letters:  # what is published together may share a chunk
        publisher.publish(queue, letter.encode())
        publisher.expect(spec.Basic.Ack)
    publisher.close()


def reader(channel: Channel, queue: str, offset: Any = None, prefetch: int = 10) -> Channel:
    """A channel that consumes the stream from an offset."""
    consumer = channel.connection.channel()
    consumer.qos(prefetch)
    arguments = None if offset is None else {"x-stream-offset": offset}
    consumer.consume(queue, "reader", arguments=arguments)
    return consumer


def offsets(messages: list[Message]) -> list[int]:
    return [message.properties.headers["x-stream-offset"] for message in messages]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({}, "non-durable"),
        ({"durable": True, "exclusive": True}, "exclusive-owner"),
        ({"durable": True, "auto_delete": True}, "auto-delete"),
    ],
)
def test_it_must_be_durable_and_for_all_and_for_good(
    channel: Channel, name: Callable[[str], str], options: dict[str, bool], what: str
) -> None:
    queue = name("queue")
    refusal = channel.refused(spec.Queue.Declare(queue=queue, arguments=STREAM, **options))
    text = f"PRECONDITION_FAILED - invalid property '{what}' for queue '{queue}' in vhost '/'"
    assert words(refusal) == ("channel", 406, text, DECLARE)


@pytest.mark.parametrize(
    "arguments",
    [
        {"x-max-length-bytes": 5_000_000},
        {"x-max-age": "1Y"},
        {"x-max-age": "6M"},
        {"x-max-age": "7D"},
        {"x-max-age": "12h"},
        {"x-max-age": "30m"},
        {"x-max-age": "90s"},
        {"x-stream-max-segment-size-bytes": 1_000_000},
        {"x-initial-cluster-size": 1},
        {"x-queue-leader-locator": "client-local"},
        {"x-ha-policy": "all"},
    ],
    ids=str,
)
def test_accepted(
    channel: Channel, queue_with: Callable[..., str], arguments: dict[str, Any]
) -> None:
    queue = queue_with({**STREAM, **arguments}, durable=True)
    redeclared = channel.declare(queue, durable=True, arguments={**STREAM, **arguments})
    assert redeclared.queue == queue


@pytest.mark.parametrize(
    ("offset", "wanted"),
    [
        ("first", "abcde"),
        ("last", "e"),
        ("next", ""),
        (None, ""),
        (0, "abcde"),
        (2, "cde"),
        (Field("l", 4), "e"),
        (Field("T", 1_500_000_000), "abcde"),  # in 2017
        ("1h", "abcde"),
    ],
    ids=str,
)
def test_reading_starts_at_the_offset(
    channel: Channel, stream: str, offset: Any, wanted: str
) -> None:
    consumer = reader(channel, stream, offset)
    append(channel, stream, "f")
    messages = consumer.deliveries(len(wanted) + 1)
    assert word(messages) == wanted + "f"
    assert offsets(messages) == list(range(5 - len(wanted), 6))
    assert consumer.quiet(QUIET_S)


def test_an_offset_that_is_not_there_yet_is_waited_for(channel: Channel, stream: str) -> None:
    consumer = reader(channel, stream, 7)
    append(channel, stream, "fghi")
    messages = consumer.deliveries(2)
    assert (word(messages), offsets(messages)) == ("hi", [7, 8])


def test_a_time_to_come_starts_with_what_comes_next(channel: Channel, stream: str) -> None:
    consumer = reader(channel, stream, Field("T", int(time.time()) + 1000))
    append(channel, stream, "f")
    assert consumer.delivery().body == b"f"


def test_reading_and_acking_takes_nothing_away(channel: Channel, stream: str) -> None:
    first = reader(channel, stream, "first")
    first.ack(first.deliveries(5)[-1].tag, multiple=True)
    first.close()
    assert word(reader(channel, stream, "first").deliveries(5)) == "abcde"


def test_every_reader_gets_everything(channel: Channel, stream: str) -> None:
    readers = [reader(channel, stream, "first") for _ in range(3)]
    assert [word(each.deliveries(5)) for each in readers] == ["abcde"] * 3


def test_acks_make_room_in_the_prefetch(channel: Channel, stream: str) -> None:
    consumer = reader(channel, stream, "first", prefetch=2)
    held = consumer.deliveries(2)
    assert word(held) == "ab"
    assert consumer.quiet(QUIET_S)
    consumer.ack(held[1].tag, multiple=True)
    assert word(consumer.deliveries(2)) == "cd"


def test_large_messages_come_as_fast_as_they_are_read(channel: Channel, stream: str) -> None:
    large = [letter * (1 << 20) for letter in "fghij"]  # more than is written at once
    append(channel, stream, large)
    consumer = reader(channel, stream, "first")
    bodies = [message.body.decode() for message in consumer.deliveries(10)]
    assert bodies == [*"abcde", *large]


def test_nothing_is_marked_as_redelivered(channel: Channel, stream: str) -> None:
    reader(channel, stream, "first").deliveries(5)
    again = reader(channel, stream, "first").deliveries(5)
    assert not any(message.method.redelivered for message in again)


def test_properties_headers_and_origin_are_delivered(
    channel: Channel, stream: str, name: Callable[[str], str]
) -> None:
    channel.bind(stream, "amq.direct", stream + "-key")
    properties = {"content_type": "text/plain", "message_id": "m", "type": "t", "delivery_mode": 2}
    consumer = reader(channel, stream, "next")
    channel.publish(
        stream + "-key", b"f", exchange="amq.direct", headers={"mine": "yes"}, **properties
    )
    message = consumer.delivery()
    assert (message.method.exchange, message.method.routing_key) == ("amq.direct", stream + "-key")
    assert {key: getattr(message.properties, key) for key in properties} == properties
    assert message.properties.headers == {"mine": "yes", "x-stream-offset": 5}


def test_readers_are_told_when_the_stream_is_deleted(channel: Channel, stream: str) -> None:
    consumer = reader(channel, stream)
    channel.call(spec.Queue.Delete(queue=stream))
    assert consumer.expect(spec.Basic.Cancel).consumer_tag == "reader"


def test_conditions_of_deletion_are_ignored(channel: Channel, stream: str) -> None:
    reader(channel, stream)
    channel.call(spec.Queue.Delete(queue=stream, if_unused=True, if_empty=True))
    assert channel.refused(spec.Queue.Declare(queue=stream, passive=True)).code == 404


def test_a_reader_can_be_cancelled(channel: Channel, stream: str) -> None:
    consumer = reader(channel, stream)
    consumer.cancel("reader")
    append(channel, stream, "f")
    assert consumer.quiet(QUIET_S)


@pytest.mark.parametrize("global_qos", [None, True], ids=["none", "global only"])
def test_a_prefetch_of_its_own_is_needed(
    channel: Channel, stream: str, global_qos: bool | None
) -> None:
    if global_qos:
        channel.qos(10, global_qos=True)
    refusal = channel.refused(spec.Basic.Consume(queue=stream))
    text = (
        f"PRECONDITION_FAILED - consumer prefetch count is not set for"
        f" 'queue '{stream}' in vhost '/''"
    )
    assert words(refusal) == ("channel", 406, text, CONSUME)


@pytest.mark.parametrize(
    ("method", "ids", "what"),
    [
        (spec.Basic.Get(), GET, "basic.get"),
        (spec.Queue.Purge(), PURGE, "queue.purge"),
        (spec.Basic.Consume(no_ack=True), CONSUME, "automatic acknowledgement"),
    ],
    ids=["get", "purge", "no ack"],
)
def test_not_implemented(
    channel: Channel, stream: str, method: amqp_object.Method, ids: tuple[int, int], what: str
) -> None:
    method.queue = stream
    channel.qos(10)
    refusal = channel.refused(method)
    text = f"NOT_IMPLEMENTED - {what} not supported by stream queues queue '{stream}' in vhost '/'"
    assert words(refusal) == ("connection", 540, text, ids)


@pytest.mark.parametrize(
    ("refuse", "ids"),
    [(Channel.nack, (60, 120)), (Channel.reject, (60, 90))],
    ids=["nack", "reject"],
)
@pytest.mark.parametrize("requeue", [False, True])
def test_a_message_can_not_be_refused(
    channel: Channel,
    stream: str,
    refuse: Callable[..., None],
    ids: tuple[int, int],
    requeue: bool,
) -> None:
    consumer = reader(channel, stream, "first")
    refuse(consumer, consumer.delivery().tag, requeue=requeue)
    text = (
        "NOT_IMPLEMENTED - basic.nack and basic.reject not supported by stream queues"
        f" queue '{stream}' in vhost '/'"
    )
    assert words(channel.connection.expect_closed()) == ("connection", 540, text, ids)


@pytest.mark.parametrize("argument", ["x-priority", "x-cancel-on-ha-failover"])
def test_consumer_arguments_of_other_queue_types_are_refused(
    channel: Channel, stream: str, argument: str
) -> None:
    channel.qos(10)
    refusal = channel.refused(spec.Basic.Consume(queue=stream, arguments={argument: 1}))
    text = (
        f"PRECONDITION_FAILED - invalid arg '{argument}' for queue '{stream}' in vhost '/'"
        " of queue type rabbit_stream_queue"
    )
    assert words(refusal) == ("channel", 406, text, CONSUME)


def test_exclusive_readers_are_not_enforced(channel: Channel, stream: str) -> None:
    channel.qos(10)
    options = {"exclusive": True, "arguments": {"x-stream-offset": "first"}}
    channel.consume(stream, "a", **options)
    channel.consume(stream, "b", **options)
    assert {m.method.consumer_tag for m in channel.deliveries(10)} == {"a", "b"}


def test_an_offset_without_sense_is_refused(channel: Channel, stream: str) -> None:
    with pytest.raises(Closed):
        reader(channel, stream, "sometime")
