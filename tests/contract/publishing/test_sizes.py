"""The largest message: 128 MiB, and not an octet more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.wire import Channel, Connection

LARGEST = 128 << 20

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def publish(channel: Channel, queue: str, body: bytes) -> None:
    channel.connection.wire.sock.settimeout(120)  # for all of it
    channel.publish(queue, body)


def test_a_message_of_128_mib_comes_back_whole(connect: Callable[..., Connection]) -> None:
    channel = connect().channel()
    queue = channel.declare(exclusive=True).queue
    body = bytes(range(256)) * (LARGEST // 256)
    channel.consume(queue, no_ack=True)
    publish(channel, queue, body)

    assert channel.delivery(timeout_s=120).body == body


def test_one_octet_more_is_refused(connect: Callable[..., Connection]) -> None:
    channel = connect().channel()
    queue = channel.declare(exclusive=True).queue
    publish(channel, queue, bytes(LARGEST + 1))

    closed = channel.expect_closed(timeout_s=120)
    assert (closed.code, closed.class_id, closed.method_id) == (406, 60, 40)
    assert closed.text == (
        "PRECONDITION_FAILED - message size 134217729 is larger than configured max size 134217728"
    )
