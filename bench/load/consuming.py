"""Consuming with acks: every message is acked by a frame of its own, in step with what came.

Deliveries of one queue with equal messages all have the size of the first, so they are counted
by bytes; the delivery tag of one message a read proves that the count has not slipped.
"""

from __future__ import annotations

import struct
import time

from bench.load import frames
from bench.load.clock import Stopwatch, Took
from bench.load.link import RECEIVE_BYTES, Link, LoadError, received, unexpected

PREFETCH = 1_000
CONSUMER_TAG = "bench"
TAG_AT = 12 + len(CONSUMER_TAG)  # where the delivery tag is within a delivery
_TAG = struct.Struct(">Q")
_ACK_BYTES = frames.ACK.size


class Consumer:
    """Consumes on a link's channel, prefetch 1,000."""

    def __init__(self, link: Link) -> None:
        link.call(frames.qos(PREFETCH), (60, 11))
        self._link = link
        self._next_tag = 1

    def drain(self, queue: str, count: int) -> Took:
        """Consume and ack ``count`` equal messages: all that the queue has.

        The clock stops when the broker has answered a call sent after the last ack.
        """
        link = self._link
        acks = memoryview(frames.acks(self._next_tag, count))
        watch = Stopwatch()
        link.call(frames.consume(queue, CONSUMER_TAG), (60, 21))
        self._take(count, acks)
        left = link.ready(queue)
        took = watch.stop()
        if left:
            raise LoadError(f"{left} messages left of {count}")
        link.call(frames.cancel(CONSUMER_TAG), (60, 31))
        self._next_tag += count
        return took

    def _take(self, count: int, acks: memoryview) -> None:
        link, first_tag = self._link, self._next_tag
        buffer = bytearray(RECEIVE_BYTES)
        send, receive = link.sock.sendall, link.sock.recv_into
        size = len(link.read_message())
        total, acked = size + len(link.receive_rest()), 0
        while True:
            upto = total // size
            if upto > acked:
                send(acks[acked * _ACK_BYTES : upto * _ACK_BYTES])
                acked = upto
                if acked >= count:
                    break
            got = receive(buffer)
            start = -total % size
            if start + TAG_AT + 8 <= got:
                _check(buffer, start, first_tag + (total + start) // size)
            elif not got:
                raise LoadError("the broker closed the connection")
            total += got
        if total != count * size:
            raise LoadError(f"{total / size} messages came where {count} were due")

    def round_trips(self, queue: str, body: bytes, count: int) -> list[float]:
        """Publish one message, wait until it comes back, and again. Seconds of each.

        The ack of a message travels with the next one: a send of its own would wake the broker
        once more within the time that is measured.
        """
        link = self._link
        message = frames.publish("", queue, body)
        acks = memoryview(frames.acks(self._next_tag, count + 1))
        send, receive, clock = link.sock.sendall, link.sock.recv, time.perf_counter
        link.call(frames.consume(queue, CONSUMER_TAG), (60, 21))
        send(message)
        size = len(link.read_message())
        took, data = [], b""
        for at in range(count):
            both = bytes(acks[at * _ACK_BYTES : (at + 1) * _ACK_BYTES]) + message
            start = clock()
            send(both)
            data = receive(RECEIVE_BYTES)
            while len(data) < size:
                data += received(receive(RECEIVE_BYTES))
            took.append(clock() - start)
        _check(bytearray(data), 0, self._next_tag + count)
        send(acks[count * _ACK_BYTES :])
        link.call(frames.cancel(CONSUMER_TAG), (60, 31))
        self._next_tag += count + 1
        return took


def _check(buffer: bytearray, start: int, tag: int) -> None:
    """The delivery that begins here has this tag, or the count by bytes went wrong."""
    if buffer[start + 7 : start + 11] != b"\0\x3c\0\x3c":
        raise unexpected(bytes(buffer[start:]))
    found = _TAG.unpack_from(buffer, start + TAG_AT)[0]
    if found != tag:
        raise LoadError(f"delivery {found} came where {tag} was due")
