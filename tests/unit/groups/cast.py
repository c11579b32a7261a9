"""Who and what is in the made-up world of ``simulation``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.unit.groups.promises import Promises
from warren.groups.seat import Seat


@dataclass(slots=True, eq=False)
class Queue:
    """A queue of the made-up broker: numbered messages and one exclusive consumer."""

    ready: deque[int] = field(default_factory=deque)
    published: int = 0
    holder: Process | None = None
    acked: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Process:
    """One life of a member."""

    name: str
    seat: Seat
    alive: bool = True
    hung_since: float | None = None
    connected: bool = True
    #: False: the coordinator can't be reached, the broker can.
    reached: bool = True
    #: What it hears while it hangs.
    backlog: list[tuple[Callable[..., None], tuple[Any, ...]]] = field(default_factory=list)
    #: Queue → the message that its handler works on.
    working: dict[str, int] = field(default_factory=dict)
    draining: set[str] = field(default_factory=set)
    promises: Promises = field(default_factory=Promises)
    leaving: bool = False
    #: When the last of what is on its way to it, and of its reports, arrives.
    quiet_until: float = 0.0
    told_until: float = 0.0
    #: When it has something to do next, and when it is woken to look (perhaps before that).
    due: float = 0.0
    tick: float | None = None
    #: Counts its times in the group: a report of an earlier one is not told.
    life: int = 0
    #: Counts its connections: what was asked or sent on an earlier one goes nowhere.
    connection: int = 0
