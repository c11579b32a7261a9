"""A segment that is damaged stops the drain that needs it, before anything is taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.drains import Task, publish
from tests.support.eventually import eventually
from tests.support.wire import Channel
from warren.errors import LedgerDamaged

pytestmark = pytest.mark.parametrize("broker", ["warren"], indirect=True)


@pytest.fixture
def queue(channel: Channel, name: Callable[..., str]) -> str:
    queue = name("drained")
    channel.declare(queue, durable=True)
    publish(channel, queue, range(10))
    return queue


def damage(folder: Path) -> str:
    """Turn one octet of the only segment; its name."""
    (segment,) = folder.glob("*.arrow")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0xFF
    segment.write_bytes(data)
    return segment.name


def test_a_damaged_segment_that_is_read_again_stops_the_drain_and_is_named(
    task: Task, channel: Channel, queue: str, tmp_path: Path
) -> None:
    assert task.run(queue, 0, 5) == [0, 1, 2, 3, 4]
    name = damage(tmp_path / "ledger")

    with pytest.raises(LedgerDamaged) as told:
        task.run(queue, 0, 5)

    assert told.value.file == name
    assert name in str(told.value)
    eventually(lambda: channel.count(queue) == 5)


def test_a_damaged_segment_in_doubt_stops_the_drain_and_is_named(
    task: Task, channel: Channel, queue: str, tmp_path: Path
) -> None:
    task.crash(queue, 0, 5, "after segment")
    name = damage(tmp_path / "ledger")

    with pytest.raises(LedgerDamaged) as told:
        task.run(queue, 5, 10)

    assert told.value.file == name
    eventually(lambda: channel.count(queue) == 10)


def test_the_last_segment_that_is_gone_stops_the_drain_until_its_mark_is_gone_too(
    task: Task, channel: Channel, queue: str, tmp_path: Path
) -> None:
    """Its messages were acknowledged, and their offsets would be given to others."""
    task.run(queue, 0, 10)
    (segment,) = (tmp_path / "ledger").glob("*.arrow")
    segment.unlink()
    publish(channel, queue, range(100, 110))

    with pytest.raises(LedgerDamaged, match="it is missing") as told:
        task.run(queue, 0, 10)

    assert told.value.file == segment.name
    eventually(lambda: channel.count(queue) == 10)

    segment.with_suffix(".settled").unlink()  # as one does who gives up its rows
    assert task.run(queue, 0, 10) == list(range(100, 110))


def test_who_gives_up_a_damaged_segment_is_told_its_mark(
    task: Task, queue: str, tmp_path: Path
) -> None:
    task.run(queue, 0, 5)
    name = damage(tmp_path / "ledger")

    with pytest.raises(LedgerDamaged, match=name.replace(".arrow", ".settled")):
        task.run(queue, 0, 5)
