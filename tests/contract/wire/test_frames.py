"""Content in frames: cut, put together, interleaved."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from pika import spec

from tests.contract.wire.raw import BODY, HEADER, METHOD, body, header, method, publish, raw
from tests.support.wire import Channel, Connection

Connect = Callable[..., Connection]
Name = Callable[[str], str]

ONE_FRAME = 131072 - 8


def frames_of(channel: Channel, queue: str) -> list[tuple[int, int]]:
    """Get a message and say in what frames it came: (type, payload size) of each."""
    channel.send(spec.Basic.Get(queue=queue, no_ack=True))
    wire = channel.connection.wire
    _, _, _ = wire.read_raw()
    kind, _, payload = wire.read_raw()
    assert kind == HEADER
    left = int.from_bytes(payload[4:12], "big")
    frames = []
    while left:
        kind, _, payload = wire.read_raw()
        frames.append((kind, len(payload)))
        left -= len(payload)
    return frames


@pytest.mark.parametrize(
    "size",
    [0, 1, ONE_FRAME - 1, ONE_FRAME, ONE_FRAME + 1, 2 * ONE_FRAME, 2**20, 16 * 2**20],
)
def test_a_body_of_any_size_comes_back_whole(channel: Channel, name: Name, size: int) -> None:
    channel.declare(queue := name("sizes"))
    data = random.Random(size).randbytes(size)
    channel.publish(queue, data)
    message = channel.get(queue)
    assert message is not None
    assert message.body == data


@pytest.mark.parametrize("redelivered", [False, True])
def test_bodies_of_all_sizes_reach_a_consumer_on_another_channel(
    channel: Channel, name: Name, redelivered: bool
) -> None:
    channel.declare(queue := name("elsewhere"))
    bodies = [bytes([size % 251]) * size for size in (1, 0, ONE_FRAME, 7, ONE_FRAME + 1, 300, 0)]
    for data in bodies:
        channel.publish(queue, data, type="order")
    if redelivered:
        first = channel.connection.channel()
        first.consume(queue)
        first.deliveries(len(bodies))
        first.close()
    other = channel.connection.channel(channel.number + 513)  # both octets of the number differ

    other.consume(queue)

    came = other.deliveries(len(bodies))
    assert [message.body for message in came] == bodies
    assert {message.properties.type for message in came} == {"order"}


@pytest.mark.parametrize(
    ("size", "frames"),
    [
        (0, []),
        (ONE_FRAME, [(BODY, ONE_FRAME)]),
        (ONE_FRAME + 1, [(BODY, ONE_FRAME), (BODY, 1)]),
        (2 * ONE_FRAME, [(BODY, ONE_FRAME), (BODY, ONE_FRAME)]),
    ],
)
def test_a_body_is_cut_only_where_a_frame_is_full(
    channel: Channel, name: Name, size: int, frames: list[tuple[int, int]]
) -> None:
    channel.declare(queue := name("cut"))
    channel.publish(queue, b"x" * size)
    assert frames_of(channel, queue) == frames


def test_a_body_sent_in_crumbs_is_delivered_in_full_frames(channel: Channel, name: Name) -> None:
    channel.declare(queue := name("crumbs"))
    crumbs = b"".join(body(bytes([at])) for at in range(200))
    channel.connection.wire.send(publish(queue) + header(200) + crumbs)
    assert frames_of(channel, queue) == [(BODY, 200)]


def test_empty_body_frames_add_nothing(channel: Channel, name: Name) -> None:
    channel.declare(queue := name("empty"))
    data = publish(queue) + header(6) + body(b"") + body(b"abc") + body(b"") + body(b"def")
    channel.connection.wire.send(data)
    message = channel.get(queue)
    assert message is not None
    assert message.body == b"abcdef"


def test_a_heartbeat_may_come_between_header_and_body(channel: Channel, name: Name) -> None:
    channel.declare(queue := name("beat"))
    channel.connection.wire.send(publish(queue) + header(3) + raw(8, 0) + body(b"abc"))
    message = channel.get(queue)
    assert message is not None
    assert message.body == b"abc"


def test_contents_of_two_channels_may_interleave(connect: Connect, name: Name) -> None:
    connection = connect()
    first, second = connection.channel(1), connection.channel(2)
    first.declare(queue := name("interleaved"))
    connection.wire.send(
        publish(queue, channel=1)
        + publish(queue, channel=2)
        + header(6, channel=1)
        + header(6, channel=2)
        + body(b"one", channel=1)
        + body(b"two", channel=2)
        + body(b"ONE", channel=1)
        + body(b"TWO", channel=2)
    )
    first.sync()
    second.sync()
    messages = [first.get(queue), first.get(queue)]
    assert {message.body for message in messages if message} == {b"oneONE", b"twoTWO"}


def test_frames_may_be_cut_anywhere_on_the_way(channel: Channel, name: Name) -> None:
    channel.declare(queue := name("pieces"))
    data = publish(queue) + header(3) + body(b"abc")
    for cut in range(1, len(data)):
        channel.connection.wire.send(data[:cut])
        channel.connection.wire.send(data[cut:])
    channel.sync()
    assert channel.count(queue) == len(data) - 1


def test_delivery_header_and_body_of_a_message_come_in_one_run(
    channel: Channel, name: Name
) -> None:
    channel.declare(queue := name("run"))
    channel.call(spec.Basic.Consume(queue=queue, consumer_tag="c", no_ack=True))
    for size in (3, 0, ONE_FRAME + 3):
        channel.publish(queue, b"x" * size)
    kinds = [channel.connection.wire.read_raw()[0] for _ in range(9)]
    assert kinds == [METHOD, HEADER, BODY, METHOD, HEADER, METHOD, HEADER, BODY, BODY]


def test_requests_sent_at_once_are_answered_in_order(channel: Channel, name: Name) -> None:
    queues = [name(f"pipelined{at}") for at in range(20)]
    channel.connection.wire.send(
        b"".join(method(spec.Queue.Declare(queue=queue)) for queue in queues)
    )
    assert [channel.expect(spec.Queue.DeclareOk).queue for _ in queues] == queues
