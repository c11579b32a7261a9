from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from warren.client.blocking_reader import Deliveries
from warren.spark.deliveries import to_batch
from warren.spark.driver import Driver
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.segment import Segment
from warren.spark.options import SourceOptions


def write_down(ledger: Ledger, *starts: int) -> None:
    for start in starts:
        ledger.write(Segment("q", start, start + 5, to_batch(Deliveries(), "q", start, 0)))
        ledger.settle("q", start)


def test_with_no_retention_every_commit_forgets_what_is_behind_it(tmp_path: Path) -> None:
    ledger = Ledger.at(str(tmp_path))
    identity = ledger.create()
    given = {"queues": "q", "ledger": str(tmp_path), "ledgerRetention": "0s"}
    driver = Driver(SourceOptions.parse(given))
    write_down(ledger, 0, 5, 10)

    for end, left in ((5, [5, 10]), (10, [10])):
        driver.commit({"ledger": identity, "queues": {"q": end}})
        assert ledger.shelves().of("q").starts == left


def test_segments_are_kept_as_long_as_retention_says(tmp_path: Path) -> None:
    ledger = Ledger.at(str(tmp_path))
    identity = ledger.create()
    given = {"queues": "q", "ledger": str(tmp_path), "ledgerRetention": "1h"}
    write_down(ledger, 0, 5)

    Driver(SourceOptions.parse(given)).commit({"ledger": identity, "queues": {"q": 10}})

    assert ledger.shelves().of("q").starts == [0, 5]
