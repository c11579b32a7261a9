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
