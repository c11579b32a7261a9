"""A task that does not find the ledger of its driver."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import BinaryType, StructType

from warren.errors import LedgerGone, LedgerNotSeen
from warren.spark.batch import BatchPartition, QueueReader
from warren.spark.drain.job import Range
from warren.spark.driver import QueuePartition
from warren.spark.ledger.ledger import Ledger
from warren.spark.ledger.machine import Machine
from warren.spark.read_plan import ReadTask
from warren.spark.source import QueueStreamReader

BODIES = StructType().add("body", BinaryType())
RANGE = Range("q", 0, 5)
ELSEWHERE = Machine("driver-7", "")


def of_a_query(options: dict[str, str], ledger_id: str, driver: Machine | None) -> None:
    planned = QueuePartition([RANGE], ledger_id, "source")
    run(QueueStreamReader(options, BODIES), planned, driver)


def of_a_batch(options: dict[str, str], ledger_id: str, driver: Machine | None) -> None:
    planned = BatchPartition(ReadTask((RANGE,)), "read", ledger_id)
    run(QueueReader(options, BODIES), planned, driver)


def run(reader: Any, planned: Any, driver: Machine | None) -> None:
    planned.driver = driver or planned.driver
    list(reader.read(pickle.loads(pickle.dumps(planned))))


tasks = pytest.mark.parametrize("task", [of_a_query, of_a_batch])
Task = Callable[[dict[str, str], str, Machine | None], None]


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    return {"queues": "q", "ledger": str(tmp_path / "ledger")}


@tasks
def test_on_another_machine_the_path_is_what_is_wrong(task: Task, options: dict[str, str]) -> None:
    with pytest.raises(LedgerNotSeen, match="where every executor reaches it") as failed:
        task(options, "id", ELSEWHERE)

    assert str(failed.value).startswith(f"on {Machine.here().name}, where this task runs, the ")
    for word in (options["ledger"], "the driver sees on driver-7 (there is none)", "put it back"):
        assert word in str(failed.value)


@tasks
def test_nor_is_one_of_that_machine_s_own_the_driver_s(task: Task, options: dict[str, str]) -> None:
    own = Ledger.at(options["ledger"]).create()

    with pytest.raises(LedgerNotSeen, match=rf"driver-7 \(its id is {own}, not id\)"):
        task(options, "id", ELSEWHERE)


@tasks
def test_on_the_driver_s_machine_it_has_gone(task: Task, options: dict[str, str]) -> None:
    ledger = Ledger.at(options["ledger"])
    identity = ledger.create()
    shutil.rmtree(options["ledger"])

    with pytest.raises(LedgerGone, match="not the one this query began with") as failed:
        task(options, identity, None)
    assert type(failed.value) is LedgerGone


def test_of_an_object_store_credentials_are_what_differs() -> None:
    told = str(LedgerNotSeen("s3://bucket/ledger", "there is none", "worker-1", "driver-7"))

    assert "credentials and the endpoint that the driver has" in told
    assert "mounted" not in told
