"""Kept runs of the proof of exactly once, and the table that is made of them."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from bench import pages, proof
from tests.spark.exactly_once import Verdict
from tests.spark.exactly_once_result import Record, arguments

GIVEN = {"broker": "warren", "cluster": False, "only": "", "queues": 5, "kills": 12, "seed": 7}


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("bench.pages.RESULTS", tmp_path)
    return tmp_path


def keep(kills: dict[str, int], *, lost: int = 0, **given: Any) -> Path:
    record = Record(Namespace(**{**GIVEN, **given}))
    verdict = Verdict(12_345, 12_346, lost, 0, 0, 0, 0, 0, True, Counter(kills), Counter())
    return record.keep(verdict)


def test_each_kind_of_fault_is_counted_by_what_was_done() -> None:
    kills = {"task": 2, "node": 1, "power": 3, "zombie": 1, "oversleep": 1, "freeze": 1, "disk": 2}
    assert proof.done(kills) == (
        "killed: task 2, node 1, both at once 3; stopped for a while: task 2, connections 1; "
        "disk full 2"
    )
    assert proof.done({"executor": 1}) == "killed: executor 1"


def test_no_kind_of_fault_is_left_out() -> None:
    from tests.spark.exactly_once_faults import Faults

    kinds = [name for name, each in vars(Faults).items() if callable(each) and name[0] != "_"]
    for kind in set(kinds) - {"disturb", "one", "another"}:
        assert "1" in proof.done({kind: 1}), kind


def test_the_arguments_make_the_same_choices_again() -> None:
    given = {**GIVEN, "broker": "rabbitmq", "cluster": True, "only": "task", "queues": 3}
    assert " ".join(arguments(Namespace(**given))) == (
        "--broker rabbitmq --cluster --only task --queues 3 --kills 12 --seed 7"
    )
    assert arguments(Namespace(**GIVEN)) == ["--kills", "12", "--seed", "7"]


def test_the_table_has_the_newest_run_of_each_configuration_that_was_kept() -> None:
    page = "a\n<!-- bench exactly_once -->\nby hand\n<!-- /bench exactly_once -->\nb\n"
    assert pages.with_newest(page) == page

    cluster = keep({"node": 1}, broker="rabbitmq-cluster")
    old = keep({"task": 1})
    new = old.rename(old.with_name(f"9{old.name}"))
    keep({"task": 5})
    keep({"task": 5}, broker="rabbitmq", cluster=True)  # none that the table shows

    written = pages.with_newest(page)
    assert f"<!-- bench exactly_once {new.name} {cluster.name} -->" in written
    assert "| warren | killed: task 1 | 12,345 | 0 | 0 | `--kills 12 --seed 7` |\n" in written
    assert "| RabbitMQ, a cluster of three, quorum | killed: node 1 | 12,345 |" in written
    assert "task 5" not in written
    assert "by hand" not in written
    assert pages.with_newest(written) == written


def test_a_run_that_found_something_wrong_says_so() -> None:
    row = proof.table([pages.load(keep({"task": 1}, lost=3))])[1]
    assert row[0] == "warren: FAILED"
    assert row[2:5] == ("12,345", "3", "0")


def test_a_caption_names_all_that_several_results_differ_in(results: Path) -> None:
    about = {"cpu": "AMD EPYC", "cores": 2, "python": "3.11.7"}
    for number, version in enumerate(({}, {"versions": {"rabbitmq": "3.10.8"}})):
        result = {"machine": {**about, "commit": f"c{number}"}, "load": [0.1], **version}
        pages.keep("any", f"2026-11-2{number}", result)
    paths = sorted((results / "any").iterdir())

    assert pages._caption(paths, [pages.load(path) for path in paths]) == (
        "AMD EPYC, 2 cores; Python 3.11.7; RabbitMQ 3.10.8; commit c0, c1; 2026-11-20, 2026-11-21"
    )
