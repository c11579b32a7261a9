"""What a pipeline has done, as it is told."""

from __future__ import annotations

from warren.pipeline.count import BatchCount, TableCount


def test_tables_are_told_in_the_order_of_the_file_whichever_came_first() -> None:
    total = BatchCount()
    for found in (["payments"], ["lines", "orders"]):
        total.add(BatchCount(tables={name: TableCount(messages=1) for name in found}))

    total.put_in_order(["orders", "lines", "payments", "refunds"])

    assert list(total.tables) == ["orders", "lines", "payments"]
    assert list(total.as_json()["tables"]) == ["orders", "lines", "payments"]
