"""The group as Prometheus reads it."""

from __future__ import annotations

from warren.groups.coordination.base import GroupState, MemberState, QueueState, Rebalance
from warren.handlers.metrics import group_exposition

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
