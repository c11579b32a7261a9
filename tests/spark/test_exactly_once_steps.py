"""A task that dies at each step of a drain, one by one, on a real broker: no message is lost, none
is doubled, and the order is kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from tests.spark.drains import Task, numbers, publish
from tests.spark.exactly_once_steps import CLEARING, STEPS
from tests.support.brokers import TestBroker
from tests.support.eventually import eventually
from tests.support.wire import Channel
from warren.errors import LedgerUnusable, QueueBusy, QueueMissing
from warren.spark.drain.job import Range
from warren.spark.ledger.files import LocalFiles

POINTS = [step for step in STEPS if step != "after the last row"]  # that one is Spark's
KINDS: dict[str, dict[str, Any]] = {
    "classic": {},
    "classic-sac": {"x-single-active-consumer": True},
    "quorum": {"x-queue-type": "quorum", "x-single-active-consumer": True},
    "priority": {"x-max-priority": 5},
}


@pytest.fixture
def queue(channel: Channel, name: Callable[..., str]) -> str:
    queue = name("drained")
    channel.declare(queue, durable=True)
    return queue


def empty(channel: Channel, queue: str) -> None:
    """Nothing is in the queue, also after everybody has let go of it."""
    eventually(lambda: channel.declare(queue, passive=True).consumer_count == 0)
    assert channel.count(queue) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("point", POINTS)
def test_a_task_that_dies_at_a_step_loses_and_doubles_nothing(
    task: Task, channel: Channel, name: Callable[..., str], point: str, kind: str
) -> None:
    queue = name("drained")
    channel.declare(queue, durable=True, arguments=KINDS[kind])
    mode = "single active" if "sac" in kind or kind == "quorum" else "exclusive"
    publish(channel, queue, range(10), delivery_mode=2)
    task.crash(queue, 0, 10, point, mode=mode)
    publish(channel, queue, range(10, 15), delivery_mode=2)

    again = task.run(queue, 0, 10, mode=mode)
    rest = task.run(queue, 10, 30, mode=mode)

    assert again + rest == list(range(15))
    empty(channel, queue)
    assert task.in_doubt(queue) == []


@pytest.mark.parametrize(
    ("kind", "forged"),
    [("classic-sac", [7]), ("classic-sac", range(10)), ("quorum", [7]), ("quorum", range(10))],
)
def test_a_count_of_deliveries_that_a_publisher_has_set_changes_no_order(
    task: Task, channel: Channel, name: Callable[..., str], kind: str, forged: Collection[int]
) -> None:
    queue = name("forged")
    channel.declare(queue, durable=True, arguments=KINDS[kind])
    for number in range(10):
        headers = {"x-delivery-count": number} if number in forged else None
        publish(channel, queue, [number], delivery_mode=2, headers=headers)
    task.crash(queue, 0, 5, "before segment", mode="single active")

    # As the driver plans it, which knows the queue's kind.
    wanted = Range(queue, 0, 10, "single active", counts=kind == "quorum")
    assert numbers(task.batches([wanted])) == list(range(10))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("point", CLEARING)
@pytest.mark.parametrize("first", ["after segment", "after ack"])
def test_a_task_that_dies_while_it_clears_up_loses_and_doubles_nothing(
    task: Task, channel: Channel, name: Callable[..., str], first: str, point: str, kind: str
) -> None:
    queue = name("drained")
    channel.declare(queue, durable=True, arguments=KINDS[kind])
    mode = "single active" if "sac" in kind or kind == "quorum" else "exclusive"
    publish(channel, queue, range(10), delivery_mode=2)
    task.crash(queue, 0, 10, first, mode=mode)
    publish(channel, queue, range(10, 15), delivery_mode=2)
    task.crash(queue, 0, 10, point, mode=mode)
    assert task.in_doubt(queue) == [0]

    again = task.run(queue, 0, 10, mode=mode)
    rest = task.run(queue, 10, 30, mode=mode)

    assert again + rest == list(range(15))
    empty(channel, queue)
    assert task.in_doubt(queue) == []


def test_what_a_quorum_queue_took_back_is_read_in_order(
    task: Task, channel: Channel, name: Callable[..., str]
) -> None:
    # It puts what it takes back behind what it took back before: of such messages a task must
    # never take some only and give them back.
    queue = name("drained")
    channel.declare(queue, durable=True, arguments=KINDS["quorum"])
    publish(channel, queue, range(10), delivery_mode=2)
    first = task.run(queue, 0, 10, mode="single active")
    publish(channel, queue, range(10, 40), delivery_mode=2)
    task.crash(queue, 10, 40, "before segment", mode="single active")

    rest = task.run(queue, 10, 40, mode="single active", suspicious=True)

    assert first + rest == list(range(40))


@pytest.mark.parametrize("times", [1, 60])
def test_a_quorum_queue_that_was_put_out_of_order_is_read_in_order(
    task: Task, channel: Channel, name: Callable[..., str], times: int
) -> None:
    queue = name("drained")
    channel.declare(queue, durable=True, arguments=KINDS["quorum"])
    publish(channel, queue, range(40 * times), delivery_mode=2)
    for window in (30, 10, 7):  # each takes a part of what the one before gave back
        task.crash(queue, 0, window * times, "before segment", mode="single active", retried=False)

    first = task.run(queue, 0, 5 * times, mode="single active")  # and leaves the rest in order
    next_few = task.run(queue, 5 * times, 12 * times, mode="single active", retried=False)
    rest = task.run(queue, 12 * times, 40 * times, mode="single active", retried=False)

    assert first + next_few + rest == list(range(40 * times))
    empty(channel, queue)


@pytest.mark.parametrize("point", POINTS)
def test_a_quorum_queue_is_read_in_order_after_who_put_it_in_order_has_died(
    task: Task, channel: Channel, name: Callable[..., str], point: str
) -> None:
    queue = name("drained")
    channel.declare(queue, durable=True, arguments=KINDS["quorum"])
    publish(channel, queue, range(80), delivery_mode=2)
    for window in (60, 20, 14):
        task.crash(queue, 0, window, "before segment", mode="single active", retried=False)
    task.crash(queue, 0, 10, point, mode="single active")

    # Of the range that died, all may be in the ledger; the next one is nobody's second attempt.
    again = task.run(queue, 0, 10, mode="single active")
    rest = task.run(queue, 10, 20, mode="single active", retried=False)
    rest += task.run(queue, 20, 80, mode="single active", retried=False)

    assert again + rest == list(range(80))
    empty(channel, queue)


@pytest.mark.parametrize("point", POINTS)
def test_equal_messages_without_ids_are_counted_right(
    task: Task, channel: Channel, queue: str, point: str
) -> None:
    publish(channel, queue, [7] * 10)
    task.crash(queue, 0, 10, point)
    publish(channel, queue, [7] * 5)

    assert task.run(queue, 0, 10) + task.run(queue, 10, 30) == [7] * 15
    empty(channel, queue)


def test_two_crashes_in_a_row_lose_and_double_nothing(
    task: Task, channel: Channel, queue: str
) -> None:
    publish(channel, queue, range(30))
    task.crash(queue, 0, 10, "after segment")
    task.crash(queue, 0, 20, "after segment")  # the next batch began where the first had ended

    taken = task.run(queue, 0, 20) + task.run(queue, 20, 40)

    assert taken == list(range(30))
    empty(channel, queue)


def test_a_range_is_the_same_however_often_it_is_read(
    task: Task, channel: Channel, queue: str
) -> None:
    publish(channel, queue, range(5))
    first = task.run(queue, 0, 9)
    publish(channel, queue, range(5, 8))

    assert task.run(queue, 0, 9) == first == list(range(5))
    assert task.run(queue, 9, 20) == [5, 6, 7]


def test_a_range_of_which_nothing_was_left_stays_empty(
    task: Task, channel: Channel, queue: str
) -> None:
    assert task.run(queue, 0, 5) == []
    publish(channel, queue, range(3))

    assert task.run(queue, 0, 5) == []
    assert task.run(queue, 5, 8) == [0, 1, 2]


def test_a_large_range_is_taken_in_parts(
    broker: TestBroker, tmp_path: Path, channel: Channel, queue: str
) -> None:
    task = Task(broker.url, tmp_path / "ledger", prefetch="10")
    publish(channel, queue, range(35))

    assert task.run(queue, 0, 35) == list(range(35))
    assert task.ledger.shelves().of(queue).starts == [0, 9, 18, 27]


def test_a_task_that_dies_between_parts_goes_on_where_it_was(
    broker: TestBroker, tmp_path: Path, channel: Channel, queue: str
) -> None:
    task = Task(broker.url, tmp_path / "ledger", prefetch="10")
    publish(channel, queue, range(35))
    task.crash(queue, 0, 35, "before settled")

    assert task.run(queue, 0, 35) == list(range(35))
    empty(channel, queue)


def test_nothing_beyond_the_range_is_touched(task: Task, channel: Channel, queue: str) -> None:
    publish(channel, queue, range(10))
    task.run(queue, 0, 4)

    rest = [channel.get(queue) for _ in range(6)]

    assert [int(message.body) for message in rest if message] == list(range(4, 10))
    assert not any(message.method.redelivered for message in rest if message)


def full(*_: Any, **__: Any) -> None:
    """What a disk without room does."""
    raise OSError(28, "No space left on device")


def test_a_disk_that_refuses_leaves_the_messages_in_the_queue(
    task: Task, channel: Channel, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(channel, queue, range(5))

    with monkeypatch.context() as patched:
        patched.setattr("warren.spark.ledger.files._write", full)
        with pytest.raises(LedgerUnusable, match="No space left on device"):
            task.run(queue, 0, 5)

    assert task.run(queue, 0, 5) == list(range(5))
    assert isinstance(task.ledger.files, LocalFiles)
    assert not [name for name in Path(task.ledger.place).iterdir() if ".tmp" in name.name]


def test_a_file_that_can_not_grow_leaves_the_messages_in_the_queue(
    task: Task, broker: TestBroker, channel: Channel, queue: str
) -> None:
    """The system itself refuses, in the middle of a segment."""
    publish(channel, queue, range(100))
    octets = 1_000
    given = [broker.url, task.ledger.place, queue, str(octets)]

    attempt = subprocess.run(
        [sys.executable, "-m", "tests.spark.full_disk", *given],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert attempt.stdout.startswith("LedgerUnusable"), attempt.stderr
    assert "File too large" in attempt.stdout
    assert all(file.stat().st_size < octets for file in Path(task.ledger.place).iterdir())
    eventually(lambda: channel.count(queue) == 100)
    assert task.run(queue, 0, 100) == list(range(100))


def test_a_disk_that_refuses_the_mark_leaves_the_segment_in_doubt(
    task: Task, channel: Channel, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(channel, queue, range(5))

    with monkeypatch.context() as patched:
        patched.setattr("warren.spark.ledger.files._touch", full)
        with pytest.raises(LedgerUnusable, match="No space left on device"):
            task.run(queue, 0, 5)
    assert task.in_doubt(queue) == [0]
    publish(channel, queue, range(5, 8))

    assert task.run(queue, 0, 5) + task.run(queue, 5, 10) == list(range(8))
    assert task.in_doubt(queue) == []


def test_a_queue_with_another_consumer_is_waited_for_and_then_given_up(
    task: Task, channel: Channel, queue: str
) -> None:
    publish(channel, queue, range(3))
    channel.qos(1)
    tag = channel.consume(queue)
    with pytest.raises(QueueBusy, match=queue):
        task.run(queue, 0, 3, busy_s=0.3)

    channel.cancel(tag)
    channel.nack(1)
    channel.sync()

    assert task.run(queue, 0, 3) == [0, 1, 2]


def test_the_mode_of_a_queue_with_a_single_active_consumer_is_found_out(
    task: Task, channel: Channel, name: Callable[..., str]
) -> None:
    queue = name("drained")
    channel.declare(queue, arguments={"x-single-active-consumer": True})
    publish(channel, queue, range(3))

    assert task.run(queue, 0, 3, mode="exclusive") == [0, 1, 2]


def test_a_missing_queue_is_named(broker: TestBroker, tmp_path: Path) -> None:
    task = Task(broker.url, tmp_path / "ledger", queues="nowhere-to-be-found")

    with pytest.raises(QueueMissing, match="onMissingQueue=wait"):
        task.run("nowhere-to-be-found", 0, 3)


def test_a_queue_of_a_pattern_may_go_as_it_came(
    broker: TestBroker, tmp_path: Path, channel: Channel, name: Callable[..., str]
) -> None:
    queue = name("fleeting")
    task = Task(broker.url, tmp_path / "ledger", queues=f"{queue[:-1]}*")

    assert task.run(queue, 0, 3) == []
    channel.declare(queue)
    publish(channel, queue, range(2))

    assert task.run(queue, 3, 5) == [0, 1]


@pytest.mark.parametrize("stem", ["jobs.tmp-1", ".tmp-jobs"])
def test_a_queue_may_be_called_like_a_file_that_is_not_finished(
    task: Task, channel: Channel, name: Callable[..., str], stem: str
) -> None:
    queue = name(stem)
    channel.declare(queue, durable=True)
    publish(channel, queue, range(5), delivery_mode=2)
    task.crash(queue, 0, 5, "after segment")
    assert task.in_doubt(queue) == [0]

    assert task.run(queue, 0, 5) == list(range(5))
    assert task.run(queue, 5, 15) == []
    empty(channel, queue)


def test_a_missing_queue_can_be_waited_for(
    broker: TestBroker, tmp_path: Path, channel: Channel, name: Callable[..., str]
) -> None:
    task = Task(broker.url, tmp_path / "ledger", onMissingQueue="wait")
    queue = name("late")
    assert task.run(queue, 0, 3) == []

    channel.declare(queue)
    publish(channel, queue, range(2))

    assert task.run(queue, 3, 5) == [0, 1]


def test_many_queues_share_one_connection(
    task: Task, channel: Channel, name: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.spark.drains import numbers
    from warren.client.blocking import BlockingConnection
    from warren.spark.drain.job import Range

    queues = [name("drained") for _ in range(5)]
    for queue in queues:
        channel.declare(queue)
        publish(channel, queue, range(4))
    opened: list[Any] = []
    dial = BlockingConnection._dial
    monkeypatch.setattr(
        BlockingConnection, "_dial", staticmethod(lambda at: opened.append(at) or dial(at))
    )

    batches = task.batches([Range(queue, 0, 4) for queue in queues])

    assert sorted(numbers(batches)) == sorted([*range(4)] * 5)
    assert len(opened) == 1
