"""How much memory Java gets on one machine."""

from __future__ import annotations

import pytest

from warren.spark.heap import heap_for

GIB = 1 << 30


@pytest.mark.parametrize(
    ("machine", "gets"),
    [(1, "1024m"), (8, "2048m"), (10, "2560m"), (16, "4096m"), (256, "4096m")],
)
def test_java_gets_a_quarter_of_the_machine_within_bounds(machine: int, gets: str) -> None:
    assert heap_for(machine * GIB + 5) == gets
