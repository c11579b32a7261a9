"""What has to be done so that a broker has what a file says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from warren.topology.model import Actual, Binding, Exchange, Policy, Queue, Topology, canonical
from warren.topology.rules import doubts, problems

Item = Exchange | Queue | Binding | Policy

CREATE, CHANGE, DELETE, REFUSE = "create", "change", "delete", "refuse"
SIGNS = {CREATE: "+", CHANGE: "~", DELETE: "-", REFUSE: "!"}


@dataclass(frozen=True)
class Change:
    """One thing to be done, or one that the broker would refuse (``action`` is ``refuse``)."""

    action: str
    kind: str
    title: str
    details: tuple[str, ...] = ()
    #: None for a vhost.
    item: Item | None = None
    line: int = 0
    #: What the broker takes, and is hardly meant.
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """All that is to be done, in the order in which it is done."""

    vhost: str
    changes: tuple[Change, ...]
    refused: tuple[Change, ...] = ()
    #: Not in the file, and left alone.
    others: tuple[Change, ...] = ()

    def count(self, action: str) -> int:
        return sum(change.action == action for change in self.changes)


def compare(wanted: Topology, actual: Actual, *, vhost: str, prune: bool = False) -> Plan:
    """How to get from what is there to what is wanted."""
    extra = tuple(_deletions(wanted, actual))
    changes: list[Change] = []
    refused: list[Change] = []
    if not actual.vhost_exists:
        changes.append(Change(CREATE, "vhost", f"vhost {vhost}"))
    judge = _Judge(wanted, actual, prune)
    for item in wanted.items():
        change = judge.change(item)
        if change is not None:
            (refused if change.action == REFUSE else changes).append(change)
    if prune:
        changes += extra
    return Plan(vhost, tuple(changes), tuple(refused), () if prune else extra)


class _Judge:
    """Knows what there is and what there will be."""

    def __init__(self, wanted: Topology, actual: Actual, prune: bool) -> None:
        self._actual = actual
        self._nowhere = "it is neither in the file nor in the broker"
        if prune:
            self._nowhere = "it is not in the file, and --prune deletes what is not"
        there = actual.topology
        self._there = {(item.kind, item.key): item for item in there.items()}
        both = (*there.exchanges, *wanted.exchanges)
        self._type_of = {item.name: item.type for item in both}
        exchanges = {item.name for item in there.exchanges}
        # what the broker has by itself stays; what files can describe is pruned if they don't
        stays = actual.exchange_names - exchanges if prune else actual.exchange_names
        self._exchanges = {item.name for item in wanted.exchanges} | stays
        stays = frozenset() if prune else frozenset(item.name for item in there.queues)
        self._queues = {item.name for item in wanted.queues} | stays

    def change(self, item: Item) -> Change | None:
        """What is to be done about one thing that the file has; None if nothing."""
        found = self._there.get((item.kind, item.key))
        types = self._actual.exchange_types
        wrong = list(problems(item, exchange_types=types, type_of=self._type_of))
        if not wrong and isinstance(item, Binding):
            wrong = list(self._loose_ends(item))
        if not wrong and isinstance(item, Queue) and found is None:
            wrong = list(self._taken(item))
        if wrong:
            return Change(REFUSE, item.kind, str(item), tuple(wrong), item, item.line)
        if found is None:
            told, doubtful = tuple(_told(item)), tuple(doubts(item))
            return Change(CREATE, item.kind, str(item), told, item, item.line, doubtful)
        different = tuple(_differences(found.facts(), item.facts()))
        if not different:
            return None
        if isinstance(item, Policy):
            return Change(CHANGE, item.kind, str(item), different, item, item.line)
        remedy = f"a {item.kind} can't be changed: delete it first, or change the file"
        return Change(REFUSE, item.kind, str(item), (*different, remedy), item, item.line)

    def _taken(self, item: Queue) -> Iterator[str]:
        if item.name in self._actual.queue_names:
            yield "there is an exclusive queue of that name, which belongs to a connection"

    def _loose_ends(self, item: Binding) -> Iterator[str]:
        """Ends of a binding that will not be there."""
        if item.source not in self._exchanges:
            yield f"there will be no exchange '{item.source}': {self._nowhere}"
        if item.destination not in (self._queues if item.to == "queue" else self._exchanges):
            yield f"there will be no {item.to} '{item.destination}': {self._nowhere}"


def _differences(there: dict[str, Any], wanted: dict[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys((*there, *wanted)):
        if name not in wanted:
            yield f"{name} is {_shown(there[name])}, the file has none"
        elif name not in there:
            yield f"{name} is not set, the file has {_shown(wanted[name])}"
        elif canonical(there[name]) != canonical(wanted[name]):
            yield f"{name} is {_shown(there[name])}, the file has {_shown(wanted[name])}"


def _told(item: Item) -> Iterator[str]:
    """What is worth telling of something new: not what is usual."""
    usual = {"durable": True, "auto_delete": False, "internal": False, "priority": 0}
    for name, value in item.facts().items():
        if name == "type":
            yield str(value)
        elif usual.get(name) != value or name not in usual:
            yield f"{name} {_shown(value)}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) and value else canonical(value)


# -- what is not in the file ---------------------------------------------------------------------
def _deletions(wanted: Topology, actual: Actual) -> Iterator[Change]:
    """Backwards: bindings first. Those that go with one of their ends are not worth a word."""
    kept = {(item.kind, item.key) for item in wanted.items()}
    gone = [item for item in actual.topology.items() if (item.kind, item.key) not in kept]
    ends = {(item.kind, item.key) for item in gone}
    for item in reversed(gone):
        if isinstance(item, Binding) and (
            ("exchange", item.source) in ends or (item.to, item.destination) in ends
        ):
            continue
        yield Change(DELETE, item.kind, str(item), tuple(_loss(item, actual)), item)


def _loss(item: Item, actual: Actual) -> Iterator[str]:
    messages = actual.messages.get(item.name, 0) if isinstance(item, Queue) else 0
    if messages:
        yield f"with {messages:,} message{'s' if messages > 1 else ''}"
