from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.spark.plan import (
    first_of,
    is_pattern,
    latest,
    offset_of,
    positions_of,
    shares,
    shares_of_octets,
    spread,
)

COUNTS = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.integers(0, 1000))


def test_an_offset_survives_the_way_through_spark() -> None:
    assert positions_of(offset_of("id", {"b": 2, "a": 1})) == {"a": 1, "b": 2}


def test_without_a_limit_every_queue_gives_all() -> None:
    assert shares({"a": 5, "b": 100}, None) == {"a": 5, "b": 100}


def test_a_small_queue_leaves_its_share_to_the_others() -> None:
    assert shares({"a": 2, "b": 100, "c": 100}, 30) == {"a": 2, "b": 14, "c": 14}


@given(COUNTS, st.integers(0, 2000))
def test_shares_use_the_limit_and_no_more(ready: dict[str, int], limit: int) -> None:
    given = shares(ready, limit)

    assert sum(given.values()) == min(limit, sum(ready.values()))
    assert all(0 <= given[queue] <= count for queue, count in ready.items())


@given(COUNTS, st.integers(0, 2000))
def test_no_queue_waits_while_another_gives_much_more(ready: dict[str, int], limit: int) -> None:
    given = shares(ready, limit)

    held_back = [given[queue] for queue, count in ready.items() if given[queue] < count]
    if held_back:
        assert max(given.values()) <= min(held_back) + 1


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 9), min_size=1),
    st.sets(st.sampled_from("abcdefgh")),
    st.integers(1, 8),
    st.integers(0, 99),
)
def test_no_queue_waits_for_ever_whatever_others_have(
    backlog: dict[str, int], busy: set[str], limit: int, before: int
) -> None:
    """``busy``: queues to which messages come faster than they are read."""
    ready, positions = dict(backlog), {"a": before}
    for _ in range(sum(backlog.values()) * len(backlog)):
        ends = latest(positions, ready, limit=limit)
        taken = {queue: ends[queue] - positions.get(queue, 0) for queue in ready}
        assert sum(taken.values()) == min(limit, sum(ready.values()))
        ready = {queue: count - taken[queue] for queue, count in ready.items()}
        ready |= {queue: 1_000 for queue in busy if queue in ready}
        positions = ends

    assert [queue for queue in ready.keys() - busy if ready[queue]] == []


def test_queues_take_turns_where_there_is_less_than_one_message_for_each() -> None:
    ready, taken = dict.fromkeys("abcde", 100), list[str]()
    for turn in range(0, 10, 2):
        taken += [queue for queue, count in shares(ready, 2, turn).items() if count]

    assert sorted(taken) == sorted("abcde" * 2)


def test_a_batch_ends_behind_what_is_ready() -> None:
    assert latest({"a": 10}, {"a": 5, "b": 3}, limit=None) == {"a": 15, "b": 3}


def test_a_query_for_what_is_there_now_does_not_go_beyond_it() -> None:
    assert latest({"a": 10}, {"a": 50}, limit=None, target={"a": 30}) == {"a": 30}
    assert latest({"a": 30}, {"a": 50}, limit=None, target={"a": 30}) == {"a": 30}
    assert latest({"a": 30}, {"a": 50, "new": 9}, limit=None, target={"a": 30})["new"] == 0


def test_a_batch_says_where_its_new_streams_begin_but_not_those_that_were_read() -> None:
    start = offset_of("", {"again": 8, "read": 30}, begin={"again": 8, "read": 5})
    end = offset_of(
        "", {"again": 10, "read": 40, "came": 7}, begin={"again": 5, "read": 5, "came": 4}
    )

    assert first_of(start, end, {"came": 6}) == {"again": 5, "read": 30, "came": 4}


def test_a_queue_that_is_gone_keeps_its_place() -> None:
    assert latest({"a": 10, "gone": 7}, {"a": 1}, limit=None) == {"a": 11, "gone": 7}


@given(COUNTS, st.integers(1, 5))
def test_each_range_is_in_one_task(ready: dict[str, int], tasks: int) -> None:
    planned = spread({}, ready, tasks)

    flat = sorted(each for task in planned for each in task)
    assert flat == sorted((queue, 0, count) for queue, count in ready.items() if count)
    assert len(planned) <= tasks
    assert all(planned)


def test_tasks_get_about_the_same_number_of_messages() -> None:
    planned = spread({}, {"a": 100, "b": 60, "c": 40, "d": 10}, 2)

    loads = sorted(sum(end - start for _, start, end in task) for task in planned)
    assert loads == [100, 110]


@pytest.mark.parametrize(("name", "pattern"), [("a.b", False), ("a.*", True), ("a?", True)])
def test_patterns_are_told_from_names(name: str, pattern: bool) -> None:
    assert is_pattern(name) is pattern


@pytest.mark.parametrize(
    ("ready", "means", "limit", "given"),
    [
        ({"a": 5, "b": 5}, {"a": 10, "b": 10}, 1000, {"a": 5, "b": 5}),
        ({"a": 50, "b": 50}, {"a": 10, "b": 100}, 1000, {"a": 50, "b": 5}),
        ({"a": 500, "b": 50}, {"a": 10, "b": 100}, 1000, {"a": 50, "b": 5}),
        ({"a": 1, "b": 500}, {"a": 10, "b": 10}, 1000, {"a": 1, "b": 99}),
        ({"a": 500, "b": 5}, {"a": 10, "b": 9999}, 1000, {"a": 50, "b": 1}),
        ({"a": 0, "b": 500}, {"a": 10, "b": 10}, 1000, {"a": 0, "b": 100}),
        ({}, {}, 1000, {}),
    ],
)
def test_octets_are_shared_and_every_queue_gives_something(
    ready: dict[str, int], means: dict[str, int], limit: int, given: dict[str, int]
) -> None:
    assert shares_of_octets(ready, means, limit) == given


def test_both_limits_hold() -> None:
    ready, means = {"a": 500, "b": 500}, {"a": 1, "b": 100}

    ends = latest({}, ready, limit=20, octets=1000, means=means)

    assert ends == {"a": 15, "b": 5}
