"""The contract of a coordinator: how members hear of each other, and nothing else.

A coordinator elects one of those who joined (the dispatcher), carries reports to it and
assignments from it, and notices who has gone. It decides nothing. What it must promise:

* At most one member believes that it is the dispatcher, save for a moment while a hung one has
  not yet noticed; what such a one still publishes never overwrites what its successor published.
* ``Elected`` brings a report of every member that can be reached. Later ones come as ``Reported``.
* ``Left`` comes soon after a member has gone, by goodbye or by death, without polling by the group.
  A report that the member sent before it went is not told after that, however late it comes.
* Reports of one member are told in the order in which it made them; any of them may be missing.
* A report and an assignment replace the one before: only the newest counts, so one that is lost
  is made good by the next. The group sends both again from time to time.
* When it can't be reached it tells ``Unreachable`` once and keeps trying by itself; when it is
  back it joins again with the newest report and tells ``Reachable``. Until then nothing moves.
* When the last member has gone nothing of the group is left behind (etcd: with its leases).

A third coordinator is one file with one subclass of ``Coordinator``, entered in ``KINDS``.

What is made again and again (reports, assignments, a state with its rows) is a ``NamedTuple``: to
make a frozen dataclass takes three times as long, and there may be a hundred thousand queues.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from warren.errors import ConfigError

#: URL scheme → "module:class" of the coordinator that serves it.
KINDS = {
    "amqp": "warren.groups.coordination.amqp:AmqpCoordinator",
    "amqps": "warren.groups.coordination.amqp:AmqpCoordinator",
    "etcd": "warren.groups.coordination.etcd:EtcdCoordinator",
    "etcds": "warren.groups.coordination.etcd:EtcdCoordinator",
    "memory": "warren.groups.coordination.memory:MemoryCoordinator",
}


class Stamp(NamedTuple):
    """When an assignment was made: generations grow with every rebalance, over all dispatchers;
    steps count the messages of one generation. Older ones are ignored."""

    generation: int = 0
    step: int = 0


#: Of no assignment at all.
NEVER = Stamp()
_NONE: Mapping[str, Any] = MappingProxyType({})


class Report(NamedTuple):
    """What a member says of itself. The first one is how it joins."""

    member: str
    weight: float = 1.0
    #: It chose its name itself and may come back under it (``Group(member_name=...)``).
    static: bool = False
    #: How long its queues wait for it, if it is static and has gone.
    session_s: float = 0.0
    #: Of the newest assignment that it has taken up.
    stamp: Stamp = NEVER
    #: Queues whose messages it may be working on, those it is about to release included.
    held: tuple[str, ...] = ()
    #: Queues that it was assigned and could not claim, with the broker's reason.
    refused: Mapping[str, str] = _NONE
    #: Messages a second of the queues it holds, as it handled them lately.
    rates: Mapping[str, float] = _NONE
    #: For people: host and process.
    where: str = ""


class Assignment(NamedTuple):
    """What a member shall hold from now on: the whole list, not a change to it."""

    member: str
    stamp: Stamp
    queues: tuple[str, ...] = ()


@dataclass(frozen=True)
class Command:
    """What a person asks of the group. ``drain``/``undrain`` name a member, ``pause``/``resume``
    a queue, ``move`` both."""

    kind: Literal["drain", "undrain", "pause", "resume", "move"]
    member: str = ""
    queue: str = ""


class Rebalance(NamedTuple):
    """One rebalance of the past, for people."""

    generation: int
    at: float  # seconds since 1970
    reason: str
    moved: int


class MemberState(NamedTuple):
    """One member, as the dispatcher sees it."""

    member: str
    quota: int
    queues: tuple[str, ...] = ()
    weight: float = 1.0
    static: bool = False
    drained: bool = False
    #: False: a static member that has gone and may come back.
    present: bool = True
    session_s: float = 0.0
    rate: float = 0.0
    where: str = ""


class QueueState(NamedTuple):
    """One queue, as the dispatcher sees it. ``problem`` says why nobody works on it, ``oldest``
    when its first message was published, where that is known (seconds since 1970)."""

    queue: str
    member: str | None = None
    messages: int | None = None
    consumers: int | None = None
    rate: float = 0.0
    paused: bool = False
    problem: str | None = None
    oldest: float | None = None
    #: The problem is the queue's own: no member is given it, whoever there is.
    barred: bool = False


class GroupState(NamedTuple):
    """All there is to know of a group: for people, and for the next dispatcher to start from."""

    group: str
    dispatcher: str | None = None
    generation: int = 0
    members: tuple[MemberState, ...] = ()
    queues: tuple[QueueState, ...] = ()
    rebalances: tuple[Rebalance, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as for JSON."""
        rows = {name: tuple(each._asdict() for each in getattr(self, name)) for name in _PARTS}
        return {**self._asdict(), **rows}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> GroupState:
        """Undo ``as_dict``; fields of a later version are passed over."""
        known = _known(cls._fields, plain)
        for name, kind in _PARTS.items():
            known[name] = tuple(kind(**_known(kind._fields, each)) for each in plain.get(name, ()))
        return cls(**known)


@dataclass(frozen=True)
class Elected:
    """This member is the dispatcher now."""

    #: No assignment of a generation up to this one was made after it: start above it.
    generation: int
    members: tuple[Report, ...]
    #: What the dispatcher before published last, if anybody knows.
    state: GroupState | None = None


@dataclass(frozen=True)
class Deposed:
    """This member is no longer the dispatcher."""

    reason: str


class Reported(NamedTuple):
    """To the dispatcher: a member joined, or says how it is doing."""

    report: Report


@dataclass(frozen=True)
class Left:
    """To the dispatcher: a member has gone."""

    member: str
    died: bool


class Assigned(NamedTuple):
    """To the member: hold these queues."""

    assignment: Assignment


@dataclass(frozen=True)
class Commanded:
    """To the dispatcher: somebody asks for something."""

    command: Command


@dataclass(frozen=True)
class Unreachable:
    """The coordinator can't be reached: keep what you hold."""

    reason: str


@dataclass(frozen=True)
class Reachable:
    """The coordinator is back, and this member has joined again."""


Event: TypeAlias = (
    Elected | Deposed | Reported | Left | Assigned | Commanded | Unreachable | Reachable
)


class Coordinator(ABC):
    """One member's line to its group; also a person's, who only reads and commands.

    Lives as long as the member's connection to the broker: after a reconnect the group leaves
    with this one and joins with another. ``connection`` is the member's own connection, for a
    coordinator that travels on it; without one (a person reads) it opens what it needs.
    """

    def __init__(self, url: str, group: str, connection: Any = None) -> None:
        self.url, self.group, self.connection = url, group, connection

    @abstractmethod
    async def join(self, report: Report, tell: Callable[[Event], None]) -> None:
        """Become a member and stand for election; ``tell`` is called with what happens.

        ``tell`` is called in the event loop, never after ``leave`` has returned.

        Raises:
            Fenced: another process is a member under this name.
        """

    @abstractmethod
    async def report(self, report: Report) -> None:
        """Tell the dispatcher, whoever it is, and remember it for the next one."""

    @abstractmethod
    async def publish(
        self, assignments: Sequence[Assignment], state: GroupState | None = None
    ) -> None:
        """Only the dispatcher: send assignments to their members, show ``state`` to all.

        No state: the one before will do. The group shows a new one a few times a second at most.
        """

    @abstractmethod
    async def leave(self) -> None:
        """Say goodbye, so that the others need not wait. Also closes; may be called twice."""

    @abstractmethod
    async def read(self) -> GroupState | None:
        """The group's state; None if nobody is in it. Needs no ``join``."""

    @abstractmethod
    async def command(self, command: Command) -> None:
        """Ask the dispatcher for something. Needs no ``join``.

        Raises:
            NoSuchGroup: there is no dispatcher to ask.
        """

    @abstractmethod
    async def close(self) -> None:
        """Let go of everything without a goodbye, as after ``read``; may be called twice."""


def coordinator_for(url: str, group: str, connection: Any = None) -> Coordinator:
    """The coordinator that serves ``url``, not yet joined."""
    scheme = url.partition(":")[0]
    if scheme not in KINDS:
        raise ConfigError("coordinator", f"'{url}': one of {', '.join(sorted(KINDS))} is needed")
    module, _, name = KINDS[scheme].partition(":")
    kind: type[Coordinator] = getattr(importlib.import_module(module), name)
    return kind(url, group, connection)


def report_as_dict(report: Report) -> dict[str, Any]:
    """Plain values, as for JSON."""
    plain = report._asdict()
    plain.update(stamp=[report.stamp.generation, report.stamp.step], held=list(report.held))
    plain.update(refused=dict(report.refused), rates=dict(report.rates))
    return plain


def report_from_dict(plain: Mapping[str, Any]) -> Report:
    """Undo ``report_as_dict``; fields of a later version are passed over."""
    known = _known(Report._fields, plain)
    known["stamp"] = Stamp(*known.get("stamp", ()))
    return Report(**known)


_PARTS: dict[str, type[MemberState | QueueState | Rebalance]] = {
    "members": MemberState,
    "queues": QueueState,
    "rebalances": Rebalance,
}


def _known(names: Collection[str], plain: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in plain.items()
        if name in names
    }
