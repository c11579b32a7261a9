"""Which messages are doubles: a matter of when they came, and not of how they were cut."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from warren.pipeline.check import MESSAGE
from warren.pipeline.keys import Keys
from warren.pipeline.model import Deduplicate

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SCHEMA = f"id INT, {MESSAGE} STRUCT<queue: STRING, offset: BIGINT, received_at: TIMESTAMP>"
#: Seconds at which a key came, and whether it was taken, 10 s being the time that counts.
CAME = [(0, True), (5, False), (10, False), (12, True), (14, False), (22, False), (23, True)]
EXPECTED = [second for second, is_taken in CAME if is_taken]


def taken(
    spark: SparkSession, place: Path, batches: list[list[int]]
) -> dict[int | None, list[int]]:
    """The seconds of what each key keeps; all keys come at the same times, 7 in the odd ones."""
    found: dict[int | None, list[int]] = {1: [], 2: [], 7: [], None: []}
    for number, seconds in enumerate(batches):
        if not seconds:
            continue
        rows = [
            (key, (f"q{key}", second, START + timedelta(seconds=second)))
            for second in seconds
            for key in (1, 2, None, 7)
            if key != 7 or second % 2
        ]
        lasts = timedelta(seconds=max(seconds) - min(seconds))
        keys = Keys(spark, str(place), Deduplicate(("id",), 10.0), "query")
        first = keys.first(spark.createDataFrame(rows, SCHEMA), number, lasts).cache()
        for row in first.collect():
            found[row.id].append(row[MESSAGE].offset)
        keys.keep(first, number)
        first.unpersist()
    return {key: sorted(seconds) for key, seconds in found.items()}


@pytest.mark.parametrize("cut", range(len(CAME)))
def test_doubles_are_the_same_wherever_batches_are_cut(
    spark: SparkSession, tmp_path: Path, cut: int
) -> None:
    seconds = [second for second, _ in CAME]

    found = taken(spark, tmp_path / "keys", [seconds[:cut], seconds[cut:]])

    assert found == {1: EXPECTED, 2: EXPECTED, 7: [5, 23], None: seconds}
