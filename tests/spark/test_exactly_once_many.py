"""A task that reads many queues at once: what becomes of one does not touch the others."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.spark.drains import Task, publish
from tests.spark.test_exactly_once_steps import POINTS, empty
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.proxy import Proxy
from tests.support.wire import Channel
from warren.client.blocking_reader import Tap
from warren.errors import LedgerUnusable, QueueBusy
from warren.spark.drain import drain as drain_module
from warren.spark.drain import parts
from warren.spark.drain.drain import Drain
from warren.spark.drain.job import Range
from warren.spark.drain.parts import overflow

#: Steps that each queue of a task comes to.
OF_A_QUEUE = [point for point in POINTS if point != "before connecting"]


@pytest.fixture
def many(channel: Channel, name: Callable[..., str]) -> list[Range]:
    """Queues of five messages each, as one task reads them."""
    queues = [name(f"drained{index}") for index in range(12)]
    for index, queue in enumerate(queues):
        channel.declare(queue, durable=True)
        publish(channel, queue, range(100 * index, 100 * index + 5), delivery_mode=2)
    return [Range(queue, 0, 5) for queue in queues]


def rows(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def by_queue(batches: list[pa.RecordBatch]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in rows(batches):
        found.setdefault(row["queue"], []).append(int(row["body"]))
    return found


def expected(many: list[Range]) -> dict[str, list[int]]:
    return {
        each.queue: list(range(100 * index, 100 * index + 5)) for index, each in enumerate(many)
    }


@pytest.mark.parametrize("point", OF_A_QUEUE)
def test_a_task_of_many_queues_that_dies_on_its_way_through_them_loses_and_doubles_nothing(
    task: Task, channel: Channel, many: list[Range], point: str
) -> None:
    task.crash_many(many, point, nth=7)

    assert by_queue(task.batches(many)) == expected(many)

    for each in many:
        empty(channel, each.queue)
        assert task.in_doubt(each.queue) == []


def test_a_disk_that_fails_between_two_names_of_a_file_loses_and_doubles_nothing(
    task: Task, channel: Channel, many: list[Range], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, made = os.link, []

    def link(path: Path, name: Path) -> None:
        if name.suffix == ".arrow":
            made.append(name)
            if len(made) == 5:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, name)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(LedgerUnusable, match="No space left"):
        task.batches(many)
    monkeypatch.undo()
    assert len(made) == 5
    held = [each.queue for each in many if task.in_doubt(each.queue)]
    assert len(held) == 4

    assert by_queue(task.batches(many)) == expected(many)

    for each in many:
        empty(channel, each.queue)
        assert task.in_doubt(each.queue) == []


@pytest.mark.parametrize("point", OF_A_QUEUE)
def test_a_task_that_is_tried_again_hands_out_the_same_rows_in_the_same_order(
    broker: TestBroker, tmp_path: Path, channel: Channel, many: list[Range], point: str
) -> None:
    # Several segments a queue: they are ready in another order than they lie in the ledger.
    task = Task(broker.url, tmp_path / "ledger", prefetch="2")
    task.crash_many(many, point, nth=20)
    first = Drain(task.options, task.ledger)

    came = [(row["queue"], row["offset"]) for row in rows(first.rows(many))]
    again = [
        (row["queue"], row["offset"]) for row in rows(Drain(task.options, task.ledger).rows(many))
    ]

    assert len(came) == 60
    assert again == came
    assert came[:24] == [(each.queue, offset) for each in many for offset in (0, 1)]


def test_rows_are_handed_out_though_the_connection_breaks_while_spark_has_others(
    broker: TestBroker, channel: Channel, name: Callable[..., str], tmp_path: Path
) -> None:
    queues = [name(f"long{index}") for index in range(4)]
    for queue in queues:
        channel.declare(queue, durable=True)
        for number in range(600):
            channel.publish(queue, b"%4d" % number + b" " * 4000, delivery_mode=2)
    channel.sync()
    found: dict[str, list[int]] = {queue: [] for queue in queues}
    with Proxy(broker.host, broker.port) as proxy:
        task = Task(proxy.url, tmp_path / "ledger", prefetch="300")
        ranges = [Range(queue, 0, 600) for queue in queues]
        for number, batch in enumerate(Drain(task.options, task.ledger).rows(ranges)):
            for row in batch.to_pylist():
                found[row["queue"]].append(int(row["body"]))
            if number == 0:
                assert proxy.cut() == 1
                eventually(lambda: channel.declare(queues[0], passive=True).consumer_count == 0)

    assert found == {queue: list(range(600)) for queue in queues}
    for queue in queues:
        empty(channel, queue)
        assert task.in_doubt(queue) == []


def test_a_queue_that_somebody_else_holds_does_not_hold_up_the_others(
    broker: TestBroker,
    tmp_path: Path,
    channel: Channel,
    many: list[Range],
    name: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = Task(broker.url, tmp_path / "ledger", drainTimeoutMs="300")
    monkeypatch.setattr(parts, "_TOGETHER_S", 3600.0)
    held = name("held")
    channel.declare(held, durable=True, arguments={"x-single-active-consumer": True})
    publish(channel, held, range(3))
    holder = channel.connection.channel()
    holder.consume(held)
    holder.deliveries(3)
    steps: list[tuple[str, str]] = []

    with suppress(QueueBusy):  # or it finds nothing there, which depends on when it looks
        task.batches(
            [*many, Range(held, 0, 3, "single active")],
            busy_s=0.2,
            probe=lambda *step: steps.append(step),
        )

    others = [index for index, (point, queue) in enumerate(steps) if point == "after ack"]
    done = {steps[index][1] for index in others} - {held}
    assert done == {each.queue for each in many}
    waited = [index for index, step in enumerate(steps) if step == ("before segment", held)]
    assert all(index > others[len(many) - 1] for index in waited)
    holder.close()
    assert task.run(held, 3, 9, mode="single active") == [0, 1, 2]


def test_what_is_cleared_up_has_been_synced_before(
    task: Task, channel: Channel, many: list[Range], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who died may have done so before the folder was synced, and a power cut may follow.
    task.crash_many(many, "after segment")
    told: list[str] = []
    sync, settle = task.ledger.files.sync, Tap.settle

    def synced() -> None:
        told.append("synced")
        sync()

    def acknowledged(tap: Tap, indices: Sequence[int]) -> None:
        told.append("acknowledged")
        settle(tap, indices)

    monkeypatch.setattr(task.ledger.files, "sync", synced)
    monkeypatch.setattr(Tap, "settle", acknowledged)

    task.batches(many)

    assert told == ["synced", *["acknowledged"] * len(many)]


def test_heavy_messages_of_many_queues_are_not_held_all_at_once(
    task: Task, channel: Channel, name: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    most, size = 1 << 20, 50_000
    monkeypatch.setattr(drain_module, "_MOST_BYTES", most)
    queues = [name(f"heavy{index}") for index in range(6)]
    for queue in queues:
        channel.declare(queue, durable=True)
        for number in range(40):
            channel.publish(queue, b"%d" % number + b" " * size, delivery_mode=2)
    channel.sync()
    held: list[int] = []

    def weigh(jobs: list[Any], most_bytes: int) -> None:
        overflow(jobs, most_bytes)
        held.append(sum(job.tap.took.body_bytes for job in jobs if job.tap and job.taking))

    monkeypatch.setattr(drain_module, "overflow", weigh)

    found = by_queue(task.batches([Range(queue, 0, 40) for queue in queues]))

    assert found == {queue: list(range(40)) for queue in queues}
    for queue in queues:
        empty(channel, queue)
        assert task.in_doubt(queue) == []
    assert max(held) < 3 * most  # of 12 MB; what one read brings comes on top
