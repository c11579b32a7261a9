"""Where a queue begins that a query did not know before, if the ledger does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.drains import Task, publish
from tests.support.brokers import TestBroker
from tests.support.wire import Channel
from warren.spark.drain.job import Range
from warren.spark.driver import Driver, QueuePartition


@pytest.mark.parametrize("now_only", [False, True])
@pytest.mark.parametrize("pruned", [0, 5])
def test_a_queue_whose_first_batch_is_not_in_the_checkpoint_is_read_from_the_ledger(
    broker: TestBroker,
    channel: Channel,
    name: Callable[..., str],
    tmp_path: Path,
    pruned: int,
    now_only: bool,
) -> None:
    old, new = name("old"), name("new")
    for queue in (old, new):
        channel.declare(queue)
    task = Task(broker.url, tmp_path, queues=f"{old},{new}", ledger=str(tmp_path))
    ledger = task.ledger.create()
    publish(channel, new, range(10))
    assert task.run(new, 0, 5) + task.run(new, 5, 10) == [*range(10)]
    task.ledger.prune({new: pruned}, older_than=float("inf"))
    publish(channel, new, range(10, 13))
    driver = Driver(task.options)
    if now_only:
        driver.only_what_is_there_now()
    try:
        # Spark's last word, from before the queue was there: what came after is lost.
        known = {"ledger": ledger, "queues": {old: 0}}
        first = driver.latest(known, None, None)
        (partition,) = driver.partitions(known, first)
        second = driver.latest(first, None, None)
    finally:
        driver.close()

    assert isinstance(partition, QueuePartition)
    assert [(each.start, each.end) for each in partition.ranges] == [(pruned, 10)]
    assert task.run(new, pruned, 10) == [*range(pruned, 10)]
    assert second["queues"] == {old: 0, new: 13}
    assert task.batches([Range(new, 10, 13)])[0].num_rows == 3


def test_a_queue_is_suspected_until_it_was_read_over_the_same_connection(
    broker: TestBroker, channel: Channel, name: Callable[..., str], tmp_path: Path
) -> None:
    queues = sorted([name("one"), name("two")])
    for queue in queues:
        channel.declare(queue)
        publish(channel, queue, range(2))
    task = Task(broker.url, tmp_path, queues=",".join(queues), ledger=str(tmp_path))
    driver = Driver(task.options)

    def suspected(first: dict[str, int], end: dict[str, int]) -> dict[str, bool]:
        offsets = [{"ledger": ledger, "queues": each} for each in (first, end)]
        planned = driver.partitions(*offsets)
        return {each.queue: each.suspicious for task in planned for each in task.ranges}  # type: ignore[attr-defined]

    one, two = queues
    ledger = task.ledger.create()
    try:
        assert suspected({one: 0, two: 0}, {one: 1, two: 0}) == {one: True}
        assert suspected({one: 1, two: 0}, {one: 2, two: 1}) == {one: False, two: True}
        driver.close()  # as by a broker that went away
        assert suspected({one: 2, two: 1}, {one: 3, two: 2}) == {one: True, two: True}
    finally:
        driver.close()
