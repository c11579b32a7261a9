"""The work of the speed scene's processes: publish, consume and ping as fast as one client can.

Messages are encoded by one ``struct`` each, so that it is the broker that is measured.
Every body starts with the message's number, and the consumer checks every number.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from struct import Struct
from typing import Any

from warren.amqp import frames, methods
from warren.amqp.content import encode_content, encode_header
from warren.amqp.properties import Properties, encode_properties
from warren.cli.scenes.link import CHANNEL, Link

BODY_BYTES = 200
_WINDOW = 4_000  # unconfirmed messages in flight, at most
_BATCH = 200  # messages a send
_PREFETCH = 4_000
_TELL_EVERY_S = 0.05
_NUMBER = Struct(">Q")

_HEADER = encode_header(BODY_BYTES, encode_properties(Properties(delivery_mode=1)))
#: Header and body frames of a message; the number stands at the start of the body.
_CONTENT = encode_content(CHANNEL, _HEADER, bytes(BODY_BYTES), frames.FRAME_MAX_DEFAULT)
_BODY_AT = len(_CONTENT) - BODY_BYTES - 1


def tell(kind: str, **facts: Any) -> None:
    """Tell the demo."""
    sys.stdout.write(json.dumps({"kind": kind, **facts}) + "\n")
    sys.stdout.flush()


def publish(url: str, queue: str, count: str, most_s: str) -> None:
    """Publish ``count`` messages with confirms, or as many as go in ``most_s`` seconds."""
    wanted, sent = int(count), 0
    with Link(url) as link:
        link.confirms()
        started = told = time.monotonic()
        for batch, messages in _batches(queue, wanted):
            link.wait_confirmed(but=_WINDOW - messages)
            link.send_encoded(batch, messages)
            sent += messages
            now = time.monotonic()
            if now - started > float(most_s):
                break
            if now - told > _TELL_EVERY_S:
                told = now
                tell("so far", count=sent, seconds=now - started)
        link.wait_confirmed()
        seconds = time.monotonic() - started
        tell("finished", count=sent, seconds=seconds, nacked=link.nacked)


def _batches(queue: str, count: int) -> Iterator[tuple[bytes, int]]:
    method = methods.BasicPublish(routing_key=queue).encode()
    head = frames.encode_frame(frames.METHOD, CHANNEL, method) + _CONTENT[:_BODY_AT]
    tail = _CONTENT[_BODY_AT + 8 :]
    pack = Struct(f">{len(head)}sQ{len(tail)}s").pack
    for first in range(0, count, _BATCH):
        numbers = range(first, min(first + _BATCH, count))
        yield b"".join([pack(head, number, tail) for number in numbers]), len(numbers)


def consume(url: str, queue: str, count: str) -> None:
    """Consume ``count`` messages, each with an ack of its own, and check their order."""
    wanted, seen, astray = int(count), 0, 0
    with Link(url) as link:
        started = told = time.monotonic()
        link.consume(queue, prefetch=_PREFETCH)
        while seen < wanted:
            deliveries = link.come()
            for delivery in deliveries:
                astray += _NUMBER.unpack_from(delivery.body)[0] != seen
                seen += 1
            link.ack(*deliveries)
            if not deliveries:
                raise TimeoutError(f"only {seen} of {wanted} messages came")
            now = time.monotonic()
            if now - told > _TELL_EVERY_S:
                told = now
                tell("so far", count=seen, seconds=now - started)
        link.call(methods.BasicQos(), methods.BasicQosOk)  # answered when every ack is done
        tell("finished", count=seen, seconds=time.monotonic() - started, astray=astray)


def ping(url: str, queue: str, count: str) -> None:
    """Send one message at a time there and back."""
    took_s = []
    with Link(url) as link:
        link.consume(queue, no_ack=True)
        for number in range(int(count)):
            started = time.perf_counter()
            link.publish("", queue, b"%d" % number)
            answer = link.next()
            took_s.append(time.perf_counter() - started)
            if answer is None or int(answer.body) != number:
                raise ConnectionError(f"ping {number} did not come back")
    took_s.sort()
    half, most = took_s[len(took_s) // 2], took_s[len(took_s) * 99 // 100]
    tell("finished", count=len(took_s), p50_ms=half * 1000, p99_ms=most * 1000)
