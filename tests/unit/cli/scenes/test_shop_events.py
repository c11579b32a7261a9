"""The shop's events: who sends which, and what is told of each."""

from __future__ import annotations

from itertools import chain

import pytest

from warren.cli.scenes.shop_events import PUBLISHERS, QUARANTINE, TABLES, event, shares


@pytest.mark.parametrize("count", [0, 1, 9_000, 10_001])
def test_the_publishers_send_every_event_and_none_twice(count: int) -> None:
    sent_by = shares(count)

    assert tuple(sent_by) == PUBLISHERS
    assert list(chain.from_iterable(sent_by.values())) == list(range(count))
    sizes = [len(numbers) for numbers in sent_by.values()]
    assert max(sizes) - min(sizes) <= 1


def test_what_must_be_in_quarantine_has_a_reason_and_nothing_else_has() -> None:
    events = [event(number) for number in range(3_000)]

    assert {made.table for made in events} == {*TABLES, QUARANTINE}
    for made in events:
        assert (made.reason is not None) == (made.table == QUARANTINE)
