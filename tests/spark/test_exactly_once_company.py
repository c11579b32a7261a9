"""A task that is not alone: another attempt at its range, a queue that is deleted."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from pika import spec

from tests.spark.drains import Task, numbers, publish, tell_clearing
from tests.support.brokers import TestBroker
from tests.support.wire import Channel
from warren.client.blocking import BlockingConnection
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range

POINTS = ["before segment", "after segment", "after ack", "before settled"]


@pytest.fixture
def queue(channel: Channel, name: Callable[..., str]) -> str:
    queue = name("drained")
    channel.declare(queue, durable=True)
    return queue


@pytest.mark.parametrize("point", ["after segment", "before ack", "after ack", "before settled"])
def test_an_attempt_that_comes_second_doubles_nothing(
    task: Task, channel: Channel, queue: str, point: str
) -> None:
    publish(channel, queue, range(10))

    def connect() -> BlockingConnection:
        # This one has looked into the ledger; the other writes, and dies.
        if not task.ledger.shelves().of(queue).starts:
            task.crash(queue, 0, 5, point)
        return BlockingConnection.open(task.options.endpoints)

    assert task.run(queue, 0, 10, connect=connect) == list(range(10))
    publish(channel, queue, range(10, 12))
    assert task.run(queue, 10, 20) == [10, 11]
    assert channel.count(queue) == 0
    assert task.in_doubt(queue) == []


@pytest.mark.parametrize("end", [1, 8])
@pytest.mark.parametrize("mode", ["exclusive", "single active"])
def test_what_another_attempt_has_cleared_up_takes_no_equal_message_with_it(
    broker: TestBroker,
    tmp_path: Path,
    channel: Channel,
    name: Callable[..., str],
    mode: str,
    end: int,
) -> None:
    queue = name("equal")
    alone = {"x-single-active-consumer": True} if mode == "single active" else None
    channel.declare(queue, durable=True, arguments=alone)
    task = Task(broker.url, tmp_path / "ledger", drainTimeoutMs="500")
    publish(channel, queue, [5])
    task.crash(queue, 0, 1, "before ack", mode=mode)
    publish(channel, queue, [5])  # another message, which looks just so
    holds_it, has_read_the_doubt = Event(), Event()

    def slowly(at: str, _: str) -> None:
        if at == "before clearing":
            holds_it.set()
            assert has_read_the_doubt.wait(20)

    def late() -> BlockingConnection:
        has_read_the_doubt.set()
        return BlockingConnection.open(task.options.endpoints)

    wanted = [Range(queue, 0, end, mode)]
    with ThreadPoolExecutor() as pool:
        drain = tell_clearing(Drain(task.options, task.ledger, probe=slowly))
        first = pool.submit(lambda: numbers(drain.rows(wanted)))
        assert holds_it.wait(20)
        second = pool.submit(task.batches, wanted, connect=late)
        found = first.result(50), numbers(second.result(50))

    rest = [5] * channel.count(queue)
    assert found == (([5], [5]) if end == 1 else ([5, 5], [5, 5]))
    assert rest == ([5] if end == 1 else [])
    assert task.run(queue, end, end + 2, mode=mode) == rest
    assert task.in_doubt(queue) == []


def test_what_is_in_doubt_is_kept_when_spark_has_committed_it(
    broker: TestBroker, tmp_path: Path, channel: Channel, name: Callable[..., str]
) -> None:
    queue = name("alone")
    channel.declare(queue, durable=True, arguments={"x-single-active-consumer": True})
    task = Task(broker.url, tmp_path / "ledger", drainTimeoutMs="300")
    publish(channel, queue, range(5))
    sleeping = BlockingConnection.open(task.options.endpoints)
    sleeping.close = sleeping.abandon = lambda: None  # type: ignore[method-assign]
    task.crash(queue, 0, 5, "after segment", mode="single active", connect=lambda: sleeping)

    # Nothing comes: a dead task may hold what is missing, and these ranges are through.
    assert task.run(queue, 0, 5, mode="single active") == list(range(5))
    assert task.run(queue, 5, 9, mode="single active") == []
    assert task.run(queue, 9, 12, mode="single active") == []
    task.ledger.prune({queue: 12}, older_than=time.time() + 60)
    assert task.in_doubt(queue) == [0]
    BlockingConnection.abandon(sleeping)
    publish(channel, queue, range(5, 8))

    taken = task.run(queue, 12, 20, mode="single active")

    assert taken + task.run(queue, 20, 30, mode="single active") == [5, 6, 7]
    assert task.in_doubt(queue) == []


@pytest.mark.parametrize("point", POINTS)
def test_a_queue_that_is_deleted_while_it_is_drained_gives_what_was_written_down(
    task: Task, channel: Channel, queue: str, point: str
) -> None:
    publish(channel, queue, range(5))

    def delete(at: str, _: str) -> None:
        if at == point:
            channel.call(spec.Queue.Delete(queue=queue))

    assert task.run(queue, 0, 10, probe=delete) == list(range(5))
    assert task.run(queue, 10, 20) == []
    assert task.in_doubt(queue) == []


def test_a_range_that_is_read_again_is_not_read_whole_before_its_first_row(
    task: Task, channel: Channel, queue: str
) -> None:
    publish(channel, queue, range(10))
    assert task.run(queue, 0, 5) + task.run(queue, 5, 10) == list(range(10))
    read = []
    whole = task.ledger.read
    task.ledger.read = lambda name, start: read.append(start) or whole(name, start)  # type: ignore[method-assign, func-returns-value]

    chain = task.ledger.chain(queue, 0, 10)
    next(chain)

    assert read == [0]
