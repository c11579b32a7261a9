"""The group as Prometheus reads it."""

from __future__ import annotations

from warren.groups.coordination.base import GroupState, MemberState, QueueState, Rebalance
from warren.handlers.metrics import MOST_BACKLOGS, group_exposition, rebalance_exposition

STATE = GroupState(
    "billing",
    "ann",
    7,
    (
        MemberState("ann", 2, ("q1", "q2"), rate=1.5),
        MemberState("bob", 1, ("q3",), present=False, drained=True),
    ),
    (
        QueueState("q1", "ann", messages=3),
        QueueState("q2", "ann", messages=4, paused=True),
        QueueState("q3", "bob", messages=None, problem="waits for bob"),
    ),
    (Rebalance(6, 10.0, "bob joined", 1), Rebalance(7, 1794826272.5, "q3 appeared", 0)),
)


def test_a_group_is_told_with_its_members() -> None:
    lines = group_exposition(STATE).splitlines()
    figures = {name: value for name, _, value in (line.rpartition(" ") for line in lines)}
    group = 'group="billing"'
    for name, value in {
        "members": "1",
        "queues": "3",
        "queues_idle": "1",
        "queues_paused": "1",
        "backlog": "7",
        "rate": "1.5",
        "generation": "7",
        "last_rebalance_timestamp_seconds": "1794826272.5",
        "last_rebalance_moved": "0",
    }.items():
        assert figures[f"warren_group_{name}{{{group}}}"] == value
    for name, ann, bob in (
        ("quota", "2", "1"),
        ("queues", "2", "0"),
        ("backlog", "7", "0"),
        ("present", "1", "0"),
        ("drained", "0", "1"),
    ):
        assert figures[f'warren_group_member_{name}{{{group},member="ann"}}'] == ann
        assert figures[f'warren_group_member_{name}{{{group},member="bob"}}'] == bob


def test_each_figure_is_explained_once() -> None:
    lines = group_exposition(STATE).splitlines()
    explained = [line.split()[2] for line in lines if line.startswith("# HELP")]
    assert len(set(explained)) == len(explained)
    assert {line.partition("{")[0] for line in lines if line[0] != "#"} == set(explained)


def test_a_name_can_hold_anything() -> None:
    odd = GroupState('a"b', members=(MemberState("x\ny", 0),))
    assert 'group="a\\"b",member="x\\ny"' in group_exposition(odd)


def test_the_backlog_is_told_queue_by_queue_where_the_broker_told_it() -> None:
    lines = group_exposition(STATE).splitlines()
    assert [line for line in lines if line.startswith("warren_group_queue_backlog{")] == [
        'warren_group_queue_backlog{group="billing",queue="q1"} 3',
        'warren_group_queue_backlog{group="billing",queue="q2"} 4',
    ]


def test_the_age_of_a_backlog_is_told_where_its_first_message_says_it() -> None:
    queues = (QueueState("q1", messages=3, oldest=1794826272.0), QueueState("q2", messages=4))
    lines = group_exposition(STATE._replace(queues=queues)).splitlines()
    name = "warren_group_queue_oldest_timestamp_seconds"
    assert [line for line in lines if name in line][1:] == [
        f"# TYPE {name} gauge",
        f'{name}{{group="billing",queue="q1"}} 1794826272',
    ]
    assert name not in group_exposition(STATE)


def test_of_very_many_queues_the_longest_are_told_and_the_sum_counts_all() -> None:
    count = MOST_BACKLOGS + 5
    queues = tuple(QueueState(f"q{n:05}", "ann", messages=n) for n in range(count))
    lines = group_exposition(STATE._replace(queues=queues)).splitlines()
    told = [line for line in lines if line.startswith("warren_group_queue_backlog{")]
    assert len(told) == MOST_BACKLOGS
    assert not any('"q00004"' in line for line in told)
    assert told[0] == f'warren_group_queue_backlog{{group="billing",queue="q{count - 1:05}"}} 1004'
    assert f'warren_group_backlog{{group="billing"}} {sum(range(count))}' in lines


def test_rebalances_are_counted_by_cause() -> None:
    assert rebalance_exposition("billing", {"died": 2, "joined": 0}).splitlines()[1:] == [
        "# TYPE warren_group_rebalances_total counter",
        'warren_group_rebalances_total{group="billing",reason="died"} 2',
        'warren_group_rebalances_total{group="billing",reason="joined"} 0',
    ]
