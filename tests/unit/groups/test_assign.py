"""Who should hold which queue: quotas, as few moves as possible, weights, loads."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.groups.assign import assign, assign_by_load, moves, pack, quotas

MEMBERS = st.sets(st.sampled_from("abcdefgh"), min_size=1)
QUEUES = st.sets(st.integers(0, 60).map(lambda n: f"q{n:02}"), max_size=40)
WEIGHTS = st.dictionaries(
    st.sampled_from("abcdefgh"), st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=1
)


def named(count: int, letter: str = "q") -> list[str]:
    return [f"{letter}{number:06}" for number in range(count)]


@given(QUEUES, MEMBERS)
def test_rule_2_quotas_differ_by_at_most_one(queues: set[str], members: set[str]) -> None:
    held = Counter(assign(queues, dict.fromkeys(members, 1.0)).values())
    counts = [held[member] for member in members]
    assert sum(counts) == len(queues)
    assert max(counts) - min(counts) <= 1


@given(st.integers(0, 500), WEIGHTS)
def test_rule_2_quotas_follow_the_weights_by_largest_remainder(
    total: int, weights: dict[str, float]
) -> None:
    quota = quotas(total, weights)
    assert sum(quota.values()) == total
    exact = {m: total * weight / sum(weights.values()) for m, weight in weights.items()}
    assert all(abs(quota[m] - exact[m]) < 1 + 1e-6 for m in weights)
    rounded_up = [exact[m] % 1 for m in weights if quota[m] > exact[m] + 1e-6]
    rounded_down = [exact[m] % 1 for m in weights if quota[m] < exact[m] - 1e-6]
    assert not rounded_up or not rounded_down or min(rounded_up) >= max(rounded_down) - 1e-6


def test_rule_2_a_member_of_weight_nought_gets_nothing() -> None:
    assert quotas(10, {"drained": 0.0, "a": 1.0}) == {"drained": 0, "a": 10}
    assert assign(["q"], {"drained": 0.0}) == {}


@given(QUEUES, WEIGHTS, st.data())
def test_rule_3_no_more_queues_move_than_the_quotas_force(
    queues: set[str], weights: dict[str, float], data: st.DataObject
) -> None:
    holders = st.sampled_from([*sorted(weights), "gone"])
    current = {queue: data.draw(holders) for queue in sorted(queues)}
    after = assign(queues, weights, current)
    held = Counter(current.values())
    forced = sum(max(held[m] - count, 0) for m, count in quotas(len(queues), weights, held).items())
    moved = [q for q in moves(current, after) if current[q] != "gone"]
    assert len(moved) == forced
    assert Counter(after.values()) == +Counter(quotas(len(queues), weights, held))


@given(QUEUES, MEMBERS, MEMBERS)
def test_what_it_answers_does_not_hang_on_the_order_of_the_question(
    queues: set[str], members: set[str], before: set[str]
) -> None:
    current = assign(queues, dict.fromkeys(before, 1.0))
    forward = assign(sorted(queues), dict.fromkeys(sorted(members), 1.0), current)
    backward = assign(
        sorted(queues, reverse=True),
        dict.fromkeys(sorted(members, reverse=True), 1.0),
        dict(reversed(current.items())),
    )
    assert forward == backward


@given(QUEUES, MEMBERS)
def test_rule_3_what_is_balanced_stays_as_it_is(queues: set[str], members: set[str]) -> None:
    weights = dict.fromkeys(members, 1.0)
    balanced = assign(queues, weights)
    assert assign(queues, weights, balanced) == balanced


def test_rule_3_one_joins_ten_members_with_a_thousand_queues() -> None:
    queues, weights = named(1_000), dict.fromkeys(named(10, "m"), 1.0)
    before = assign(queues, weights)
    after = assign(queues, {**weights, "new": 1.0}, before)
    assert len(moves(before, after)) in (90, 91)
    assert {after[queue] for queue in moves(before, after)} == {"new"}


def test_rule_3_one_leaves_and_only_its_own_queues_move() -> None:
    queues, weights = named(1_000), dict.fromkeys(named(11, "m"), 1.0)
    before = assign(queues, weights)
    gone = "m000003"
    del weights[gone]
    after = assign(queues, weights, before)
    assert moves(before, after) == {queue for queue in queues if before[queue] == gone}


def test_a_queue_to_be_kept_is_the_last_to_be_taken() -> None:
    current = dict.fromkeys(named(4), "a")
    after = assign(named(4), {"a": 1.0, "b": 1.0}, current, keep=["q000003", "q000002"])
    assert {queue for queue, member in after.items() if member == "a"} == {"q000002", "q000003"}


def test_two_thousand_members_and_a_hundred_thousand_queues() -> None:
    queues, weights = named(100_000), dict.fromkeys(named(2_000, "m"), 1.0)
    before = assign(queues, weights)
    after = assign(queues, {**weights, "new": 1.0}, before)
    assert len(moves(before, after)) == 49  # 100,000 / 2,001, rounded down


@given(
    st.dictionaries(st.integers(0, 60).map(lambda n: f"q{n:02}"), st.floats(0, 1000), min_size=1),
    MEMBERS,
)
def test_rule_9_no_member_is_far_above_the_mean_unless_one_queue_is(
    loads: dict[str, float], members: set[str]
) -> None:
    after = assign_by_load(loads, dict.fromkeys(members, 1.0))
    assert after.keys() == loads.keys()
    carried = {m: sum(loads[q] for q in loads if after[q] == m) for m in members}
    mean = sum(loads.values()) / len(members)
    assert max(carried.values()) <= mean * 1.25 + max(loads.values()) + 1e-6


def test_rule_9_evens_out_rates_and_not_counts() -> None:
    loads = {"busy": 100.0, **dict.fromkeys(named(10), 10.0)}
    after = assign_by_load(loads, {"a": 1.0, "b": 1.0})
    alone = after["busy"]
    assert sum(1 for member in after.values() if member == alone) <= 2


def test_rule_9_idle_queues_are_spread_by_count() -> None:
    after = assign_by_load(dict.fromkeys(named(10), 0.0), {"a": 1.0, "b": 1.0})
    assert set(Counter(after.values()).values()) == {5}


def test_rule_9_a_move_that_gains_little_is_not_made() -> None:
    loads = {"q1": 50.0, "q2": 48.0, "q3": 3.0, "q4": 2.0}
    current = {"q1": "a", "q2": "b", "q3": "a", "q4": "b"}
    assert assign_by_load(loads, {"a": 1.0, "b": 1.0}, current) == current
    loads.update(q1=60.0, q3=20.0)
    after = assign_by_load(loads, {"a": 1.0, "b": 1.0}, current)
    assert "q3" in moves(current, after)


def test_rule_9_a_heavier_member_carries_more() -> None:
    loads = dict.fromkeys(named(30), 10.0)
    held = Counter(assign_by_load(loads, {"a": 1.0, "b": 2.0}).values())
    assert held == {"a": 10, "b": 20}


@pytest.mark.parametrize("bins", [1, 3, 7])
def test_packing_puts_every_queue_in_one_bin_and_evens_loads_out(bins: int) -> None:
    pick = random.Random(bins)
    loads = {queue: pick.random() * 100 for queue in named(70)}
    packed = pack(loads, bins)
    assert len(packed) == bins
    assert sorted(queue for each in packed for queue in each) == sorted(loads)
    sums = [sum(loads[queue] for queue in each) for each in packed]
    assert max(sums) - min(sums) < 100


def test_packing_into_more_bins_than_queues_leaves_some_empty() -> None:
    assert sorted(map(len, pack({"a": 1.0, "b": 2.0}, 4))) == [0, 0, 1, 1]
