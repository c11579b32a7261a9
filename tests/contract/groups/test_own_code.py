"""What a member's own code does to its group."""

from __future__ import annotations

import pytest

from tests.contract.groups.steps import Workers, eventually


async def test_a_prefetch_function_that_fails_is_told_and_tried_again(
    workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    good, odd = await workers.declare(2)
    known = {good: 10}
    worker = await workers.join(prefetch=lambda queue: known[queue])

    def problem() -> str:
        state = workers.state()
        found = {each.queue: each.problem for each in state.queues} if state else {}
        return found.get(odd) or ""

    await eventually(lambda: "KeyError" in problem())
    assert worker.held == {good}
    assert sum(record.exc_info is not None for record in caplog.records) == 1

    known[odd] = 10
    await eventually(lambda: worker.held == {good, odd})
    await eventually(lambda: not problem())
