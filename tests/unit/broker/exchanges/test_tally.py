from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from warren.broker.exchanges.tally import Tally, join, leave, members

STEPS = st.lists(st.tuples(st.booleans(), st.sampled_from("abc")))


@given(STEPS)
def test_a_tally_holds_who_joined_oftener_than_left(steps: list[tuple[bool, str]]) -> None:
    tally: Tally = None
    counts: Counter[str] = Counter()
    for joins, member in steps:
        if joins:
            tally = join(tally, member)
            counts[member] += 1
        elif counts[member]:
            tally = leave(tally, member)
            counts[member] -= 1
        assert sorted(members(tally)) == sorted(+counts)
        assert (tally is None) == (not +counts)


def test_a_single_member_is_kept_bare() -> None:
    both = join(join(None, "a"), "b")
    assert members(both) == ("a", "b")
    assert leave(both, "a") == "b"
