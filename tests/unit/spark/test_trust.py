"""Queues whose messages were compared with the ledger, and those that are looked after no more."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from warren.client.blocking_reader import Deliveries
from warren.spark.deliveries import to_batch
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.segment import Segment
from warren.spark.trust import Trust


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    found = Ledger.at(str(tmp_path))
    found.create()
    return found


def write(ledger: Ledger, start: int, end: int, rows: int) -> None:
    took = Deliveries()
    for _ in range(rows):
        took.routes.append(b"\0\1q")
        took.properties.append(b"\0\0")
        took.bodies.append(b"x")
    ledger.write(Segment("q", start, end, to_batch(took, "q", start, 0)))
    ledger.settle("q", start)


def suspected(end: int) -> Trust:
    """What thinks of queue q when its first batch, up to there, has begun."""
    trust = Trust()
    trust.plan({}, {"q": end}, [])
    assert trust.suspects(["q"], {"q": end}) == {"q"}
    assert trust.waits
    return trust


def test_a_queue_is_trusted_when_messages_of_it_were_compared(ledger: Ledger) -> None:
    trust = suspected(5)
    write(ledger, 0, 5, rows=2)

    trust.see(ledger)

    assert not trust.waits
    assert trust.suspects(["q"], {"q": 9}) == set()


def test_one_that_had_nothing_is_not_but_nobody_goes_on_looking(ledger: Ledger) -> None:
    trust = suspected(5)
    write(ledger, 0, 3, rows=0)
    trust.see(ledger)
    assert trust.waits  # for the rest of its range

    write(ledger, 3, 5, rows=0)
    trust.see(ledger)

    assert not trust.waits
    trust.plan({"q": 5}, {"q": 9}, [])
    assert trust.suspects(["q"], {"q": 9}) == {"q"}
    assert trust.waits
