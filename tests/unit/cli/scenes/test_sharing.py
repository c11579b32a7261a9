"""What the demo says of a group of workers."""

from __future__ import annotations

import io
from typing import Any

import pytest

from warren.cli.scenes.crew import Event
from warren.cli.scenes.ledger import Ledger
from warren.cli.scenes.sharing import QUEUES, Member, Sharing
from warren.cli.scenes.stage import Stage


class Killing:
    """A crew whose killed member's queues go on elsewhere; who is later is heard first."""

    def __init__(self) -> None:
        self._told = [self._got("C", 1, 0.038), self._got("A", 0, 0.037), self._got("C", 2, 0.030)]

    @staticmethod
    def _got(worker: str, queue: int, at: float) -> Event:
        facts: dict[str, Any] = {"queue": QUEUES[queue], "number": 1, "again": False, "at": at}
        return Event(worker, "got", facts)

    def kill(self, name: str) -> float:
        return 0.0

    def next(self, timeout_s: float) -> Event:
        if not self._told:
            raise TimeoutError
        return self._told.pop(0)


def test_the_first_queue_that_goes_on_is_not_after_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage.open(plain=True, fast=True, file=io.StringIO())
    scene = Sharing(stage, Killing(), Ledger().open("group"))  # type: ignore[arg-type]
    scene._members = {"A": Member(), "B": Member(pid=7, queues=set(QUEUES[:3])), "C": Member()}
    monkeypatch.setattr(scene, "_balanced", lambda: not scene._orphans)

    scene._kill("B")

    assert "goes on after [bold]30 ms[/], its last after [bold]38 ms[/]" in scene._story[-1]
