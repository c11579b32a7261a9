"""How often a task looks whether what its ranges begin with was forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from warren import clock
from warren.client.blocking_reader import Deliveries
from warren.spark.deliveries import to_batch
from warren.spark.drain.job import Job, Range
from warren.spark.drain.looks import Looks
from warren.spark.ledger.files import LocalFiles
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.segment import Segment


class Folder(LocalFiles):
    lists = 0

    def names(self) -> list[str]:
        self.lists += 1
        return super().names()


def test_one_list_of_the_ledger_counts_for_all_queues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Folder(str(tmp_path))
    ledger = Ledger(folder)
    at = 0.0
    monkeypatch.setattr(clock, "moment", lambda: (at, at))
    jobs = [Job(Range(f"q{number}", 0, 1000), 0, "exclusive") for number in range(30)]
    looks = Looks(ledger, retention_s=3600.0)
    looks.looked(jobs, ledger.shelves(), (at, at))

    for turn in range(600):  # a minute, in which each queue has its turn every second
        at += 0.1
        made = [(job, written(ledger, job)) for job in jobs[turn % 10 :: 10]]
        looks.require_not_overtaken(made, jobs)
        for job, segment in made:
            job.at = segment.end

    assert folder.lists <= 7


def written(ledger: Ledger, job: Job) -> Segment:
    rows: Any = to_batch(Deliveries(), job.queue, job.at, 0)
    segment = Segment(job.queue, job.at, job.at + 1, rows, 0.0)
    assert ledger.write(segment)
    return segment
