"""``warren group watch``: it goes on, whatever becomes of the group."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator

import pytest

from warren.cli import group, group_meeting
from warren.cli.group_meeting import GroupCommandFailed
from warren.groups.coordination.base import GroupState

THERE = GroupState("g", dispatcher="ann", generation=3)


def watch(shown: list[GroupState | None], monkeypatch: pytest.MonkeyPatch) -> int:
    """Watch a group that is found as ``shown``, one after the other."""
    states: Iterator[GroupState | None] = iter(shown)

    async def read(options: Namespace, name: str) -> GroupState | None:
        return next(states)

    monkeypatch.setattr(group_meeting, "read", read)
    monkeypatch.setattr(group_meeting, "fresh", lambda options, state: state)
    options = Namespace(
        group="g",
        every_s=0.05,
        count=len(shown),
        json=True,
        timeout_s=10.0,
        coordinator="memory://test",
    )
    return group._watch(options)


def test_it_goes_on_when_all_have_gone_and_come_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert watch([THERE, None, THERE], monkeypatch) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["dispatcher"] for line in lines] == ["ann", None, "ann"]


def test_a_group_that_was_never_there_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_meeting, "names_of", lambda options: [])
    with pytest.raises(GroupCommandFailed, match="nobody is in group 'g'"):
        watch([None, THERE], monkeypatch)
