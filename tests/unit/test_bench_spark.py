from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from bench import pages
from bench.spark_report import Bar, Line, Report
from bench.timed_ledger import TimedLedger
from warren.client.blocking_reader import Deliveries
from warren.spark.deliveries import to_batch
from warren.spark.ledger.files import LocalFiles
from warren.spark.ledger.segment import Segment


def test_a_line_fails_on_the_broker_that_misses_the_bar() -> None:
    line = Line("share", "ratio", {"warren": 0.9, "rabbitmq": 0.6}, Bar(at_least=0.7))
    assert line.met is False
    assert line.cells() == ("share", "0.90", "0.60", "≥ 0.70", "FAIL: RabbitMQ")


def test_a_bar_for_one_broker_judges_that_one_only() -> None:
    bar = Bar(at_least=60_000, on=["warren"])
    line = Line("to Parquet", "rate", {"warren": 70_000.0, "rabbitmq": 30_000.0}, bar)
    assert line.met is True
    assert line.cells()[3:] == ("≥ 60,000 /s on warren", "pass")


def test_a_time_must_not_be_longer_than_its_bar() -> None:
    values = {"warren": 0.5, "rabbitmq": 1.5}
    assert Line("p50", "time", values, Bar(at_most=1.0)).met is False
    assert Line("p50", "time", values, Bar(at_most=2.0)).met is True


def test_nothing_is_judged_that_was_not_measured_or_has_no_bar() -> None:
    only = Bar(at_least=3.0, on=["rabbitmq"])
    assert Line("times pika", "ratio", {"warren": 9.0}, only).cells()[1:] == (
        "9.00",
        "-",
        "≥ 3.00 on RabbitMQ",
        "",
    )
    assert Line("raw", "rate", {"warren": 1.0}).met is None


@pytest.mark.parametrize(("reached", "exit_code"), [(0.8, 0), (0.6, 1)])
def test_the_program_fails_if_a_bar_is_missed(reached: float, exit_code: int) -> None:
    lines = [
        Line("raw", "rate", {"warren": 1.0}),
        Line("share", "ratio", {"warren": reached}, Bar(at_least=0.7)),
    ]

    assert Report("source").end(lines, keep=False) == exit_code


def test_all_that_a_ledger_does_is_counted(tmp_path: Path) -> None:
    ledger = TimedLedger(LocalFiles(str(tmp_path / "ledger")))
    ledger.create()
    taken = []

    def took() -> None:
        taken.append(ledger.took_s)

    segment = Segment("q", 0, 5, to_batch(Deliveries(), "q", 0, 0))
    for step in (
        lambda: ledger.write(segment),
        lambda: ledger.write_together([Segment("q", 5, 6, to_batch(Deliveries(), "q", 5, 0))]),
        lambda: ledger.settle("q", 0),
        ledger.shelves,
        lambda: ledger.read("q", 0),
        ledger.require_there,
        ledger.sync,
    ):
        took()
        step()
    took()

    assert all(before < after for before, after in pairwise(taken))


def test_the_versions_of_the_brokers_are_kept_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.pages.RESULTS", tmp_path)
    report = Report("source")
    report.versions |= {"warren": "", "rabbitmq": "3.10.8"}

    report.end([Line("share", "ratio", {"warren": 0.8})], keep=True)

    (path,) = pages.newest("source")
    assert pages.load(path)["versions"] == {"rabbitmq": "3.10.8"}
    assert "; RabbitMQ 3.10.8; commit" in pages.spark_markdown(path)


def test_a_page_shows_rates_that_have_a_goal_and_the_one_of_a_drain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.pages.RESULTS", tmp_path)
    lines = [
        Line("200 B: raw socket", "rate", {"warren": 9.0}),
        Line("200 B: queues to Parquet", "rate", {"warren": 5.0}, Bar(at_least=1)),
        Line("200 B: drain without Spark", "rate", {"warren": 7.0}),
    ]
    Report("source").end(lines, keep=True)

    shown = pages.spark_markdown(*pages.newest("source"))

    assert "raw socket" not in shown
    assert "| 200 B: queues to Parquet | 5 /s |" in shown
    assert "| 200 B: a drain, queues to ledger and Arrow, without Spark | 7 /s |" in shown
