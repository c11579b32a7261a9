"""Celery's native delayed delivery: a ladder of quorum queues, one a bit of the delay.

A task for later is published with its delay in binary in front of its routing key
("0.0.1.0.1.tasks" is 5 steps). On each level it waits in the level's queue if its bit is 1 and
expires to the level below, or goes there at once if its bit is 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from pika import spec

from tests.contract.queues.steps import arrival, fill, wait_ready
from tests.support.wire import Channel

LEVELS = 28  # Celery's


def declare_ladder(channel: Channel, prefix: str, levels: int, step_ms: int) -> None:
    """What kombu declares for Celery, level by level from the top, with these exact arguments."""
    names = [f"{prefix}_celery_delayed_{level}" for level in range(levels)]
    delivery = f"{prefix}_celery_delayed_delivery"
    waits = "1.#"
    for level in reversed(range(levels)):
        channel.declare_exchange(names[level], "topic", durable=True)
        channel.declare(
            names[level], durable=True, arguments=level_arguments(prefix, level, step_ms)
        )
        channel.bind(names[level], names[level], waits)
        waits = "*." + waits
    channel.declare_exchange(delivery, "topic", durable=True)
    passes = "0.#"
    for level in reversed(range(levels)):
        below = names[level - 1] if level else delivery
        channel.call(spec.Exchange.Bind(destination=below, source=names[level], routing_key=passes))
        passes = "*." + passes


def level_arguments(prefix: str, level: int, step_ms: int) -> dict[str, Any]:
    below = f"celery_delayed_{level - 1}" if level else "celery_delayed_delivery"
    return {
        "x-queue-type": "quorum",
        "x-overflow": "reject-publish",
        "x-message-ttl": 2**level * step_ms,
        "x-dead-letter-exchange": f"{prefix}_{below}",
        "x-dead-letter-strategy": "at-least-once",
    }


def delayed_key(steps: int, levels: int, key: str) -> str:
    return ".".join(f"{steps:0{levels}b}") + f".{key}"


@pytest.fixture
def ladder(channel: Channel, name: Callable[[str], str]) -> Any:
    """Declares a ladder and returns its prefix; the ladder is deleted after the test."""
    made: list[tuple[str, int]] = []

    def declare(levels: int, step_ms: int) -> str:
        prefix = name("delay")
        made.append((prefix, levels))
        declare_ladder(channel, prefix, levels, step_ms)
        return prefix

    yield declare
    for prefix, levels in made:
        for level in range(levels):
            channel.call(spec.Queue.Delete(queue=f"{prefix}_celery_delayed_{level}"))
            channel.call(spec.Exchange.Delete(exchange=f"{prefix}_celery_delayed_{level}"))
        channel.call(spec.Exchange.Delete(exchange=f"{prefix}_celery_delayed_delivery"))


def test_the_whole_ladder_can_be_declared_and_declared_again(
    channel: Channel, ladder: Callable[..., str]
) -> None:
    prefix = ladder(LEVELS, step_ms=1000)
    declare_ladder(channel, prefix, LEVELS, step_ms=1000)
    assert level_arguments(prefix, LEVELS - 1, 1000)["x-message-ttl"] == 134_217_728_000

    top, low = f"{prefix}_celery_delayed_{LEVELS - 1}", f"{prefix}_celery_delayed_3"
    publish = {"exchange": top, "mandatory": True, "delivery_mode": 2}
    channel.confirm()
    channel.publish(delayed_key(2**27 + 5, LEVELS, "tasks"), b"a", **publish)
    channel.publish(delayed_key(9, LEVELS, "tasks"), b"b", **publish)
    assert channel.wait_confirms(2) == {1: "ack", 2: "ack"}
    wait_ready(channel, top, 1)
    wait_ready(channel, low, 1)


def test_a_message_waits_as_long_as_its_bits_say(
    channel: Channel, queue: str, ladder: Callable[..., str]
) -> None:
    levels, step_ms = 5, 40
    prefix = ladder(levels, step_ms)
    channel.bind(queue, f"{prefix}_celery_delayed_delivery", "#.tasks")
    channel.consume(queue, no_ack=True)
    publisher = channel.connection.channel()
    start = time.monotonic()
    delays = {b"k": 11, b"e": 5, b"b": 2, b"0": 0}
    for body, steps in delays.items():
        publisher.publish(
            delayed_key(steps, levels, "tasks"), body, exchange=f"{prefix}_celery_delayed_4"
        )
    for body in (b"0", b"b", b"e", b"k"):
        message = channel.delivery()
        assert message.body == body
        assert time.monotonic() - start >= delays[body] * step_ms / 1000
        assert message.method.routing_key == delayed_key(delays[body], levels, "tasks")


def test_a_message_tells_where_it_waited(
    channel: Channel, queue: str, ladder: Callable[..., str]
) -> None:
    prefix = ladder(3, step_ms=20)
    channel.bind(queue, f"{prefix}_celery_delayed_delivery", "#.tasks")
    channel.publish("1.0.1.tasks", b"a", exchange=f"{prefix}_celery_delayed_2")
    dead = arrival(channel, queue)
    assert dead.method.exchange == f"{prefix}_celery_delayed_delivery"
    told = [(d["queue"], d["exchange"], d["reason"]) for d in dead.properties.headers["x-death"]]
    one, two = f"{prefix}_celery_delayed_0", f"{prefix}_celery_delayed_2"
    below_two = f"{prefix}_celery_delayed_1"
    assert told == [(one, below_two, "expired"), (two, two, "expired")]


def test_a_message_falls_through_dozens_of_quorum_queues(
    channel: Channel, queue: str, queue_with: Callable[..., str]
) -> None:
    below, chain = queue, []
    for _ in range(24):
        arguments = {
            "x-queue-type": "quorum",
            "x-message-ttl": 10,
            "x-overflow": "reject-publish",
            "x-dead-letter-strategy": "at-least-once",
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": below,
        }
        below = queue_with(arguments, durable=True)
        chain.append(below)
    fill(channel, below, "a", delivery_mode=2)
    death = arrival(channel, queue).properties.headers["x-death"]
    assert {event["queue"] for event in death} == set(chain)
    assert len(death) == 24
