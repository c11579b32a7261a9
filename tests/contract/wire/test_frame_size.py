"""Frames that the broker sends keep to what the receiver has agreed to."""

from __future__ import annotations

from pika import frame, spec

from tests.support.wire import Channel


def test_a_payload_as_large_as_a_frame_is_cut_for_the_next_receiver(channel: Channel) -> None:
    queue = channel.declare(exclusive=True).queue
    most = channel.connection.frame_max
    channel.connection.wire.send(
        frame.Method(channel.number, spec.Basic.Publish(routing_key=queue)).marshal()
        + frame.Header(channel.number, most, spec.BasicProperties()).marshal()
        + frame.Body(channel.number, bytes(most)).marshal()
    )
    channel.send(spec.Basic.Get(queue=queue, no_ack=True))
    sizes = []
    while sum(sizes) < most:
        value = channel.connection.wire.read()
        if isinstance(value, frame.Body):
            sizes.append(len(value.fragment))
    assert max(sizes) <= most - 8
