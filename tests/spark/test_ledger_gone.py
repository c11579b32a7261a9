"""A ledger that is lost while a task drains is not made again, and nothing is acknowledged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.drains import Task, publish
from tests.support.eventually import eventually
from tests.support.wire import Channel
from warren.errors import LedgerGone

pytestmark = pytest.mark.parametrize("broker", ["warren"], indirect=True)


def deleted(ledger: Path) -> None:
    shutil.rmtree(ledger)


def unmounted(ledger: Path) -> None:
    shutil.rmtree(ledger)
    ledger.mkdir()


@pytest.mark.parametrize("lose", [deleted, unmounted])
def test_a_ledger_that_is_lost_before_a_segment_fails_the_task_and_all_stays_in_the_queue(
    task: Task,
    channel: Channel,
    name: Callable[..., str],
    tmp_path: Path,
    lose: Callable[[Path], None],
) -> None:
    queue = name("drained")
    channel.declare(queue, durable=True)
    publish(channel, queue, range(10))

    def probe(point: str, _: str) -> None:
        if point == "before segment":
            lose(tmp_path / "ledger")

    with pytest.raises(LedgerGone):
        task.run(queue, 0, 10, probe=probe)

    eventually(lambda: channel.count(queue) == 10)
    assert not (tmp_path / "ledger" / "ledger.json").exists()
