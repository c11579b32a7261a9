"""What a topology is: values, without a file and without a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Arguments = Mapping[str, Any]


def canonical(value: Any) -> str:
    """Equal for equal arguments: order does not matter, 1, 1.0 and true are three things."""
    return json.dumps(value, sort_keys=True)


@dataclass(frozen=True)
class Exchange:
    name: str
    type: str = "direct"
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: Arguments = field(default_factory=dict)
    #: Of the file it stands in; 0 if it comes from a broker.
    line: int = field(default=0, compare=False)

    kind = "exchange"

    @property
    def key(self) -> str:
        return self.name

    def __str__(self) -> str:
        return f"exchange {self.name}"

    def facts(self) -> dict[str, Any]:
        """All that can't be changed once it is declared."""
        plain = {
            name: getattr(self, name) for name in ("type", "durable", "auto_delete", "internal")
        }
        return {**plain, **self.arguments}


@dataclass(frozen=True)
class Queue:
    """A queue. Its type is in ``type`` alone, not in the arguments too."""

    name: str
    type: str = "classic"
    durable: bool = True
    auto_delete: bool = False
    arguments: Arguments = field(default_factory=dict)
    line: int = field(default=0, compare=False)

    kind = "queue"

    @property
    def key(self) -> str:
        return self.name

    def __str__(self) -> str:
        return f"queue {self.name}"

    def facts(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in ("type", "durable", "auto_delete")}
        return {**plain, **self.arguments}

    @property
    def declared(self) -> dict[str, Any]:
        """The arguments as a broker wants them."""
        given = {} if self.type == "classic" else {"x-queue-type": self.type}
        return {**given, **self.arguments}


@dataclass(frozen=True)
class Binding:
    source: str
    destination: str
    #: "queue" or "exchange"
    to: str = "queue"
    routing_key: str = ""
    arguments: Arguments = field(default_factory=dict)
    line: int = field(default=0, compare=False)
    #: The name that the HTTP API gives it among those with the same ends.
    properties_key: str = field(default="", compare=False)

    kind = "binding"

    @property
    def key(self) -> tuple[str, ...]:
        return (
            self.source,
            self.to,
            self.destination,
            self.routing_key,
            canonical(self.arguments),
        )

    def __str__(self) -> str:
        with_key = f" with {self.routing_key!r}" if self.routing_key else ""
        return f"binding {self.source} -> {self.to} {self.destination}{with_key}"

    def facts(self) -> dict[str, Any]:
        return dict(self.arguments)


@dataclass(frozen=True)
class Policy:
    name: str
    pattern: str
    definition: Arguments
    apply_to: str = "all"
    priority: int = 0
    line: int = field(default=0, compare=False)

    kind = "policy"

    @property
    def key(self) -> str:
        return self.name

    def __str__(self) -> str:
        return f"policy {self.name}"

    def facts(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in ("pattern", "apply_to", "priority")}
        return {**plain, **self.definition}


@dataclass(frozen=True)
class Topology:
    """What there is, or is to be, in one vhost."""

    exchanges: tuple[Exchange, ...] = ()
    queues: tuple[Queue, ...] = ()
    bindings: tuple[Binding, ...] = ()
    policies: tuple[Policy, ...] = ()
    #: None if the file leaves it open.
    vhost: str | None = None

    def items(self) -> Iterator[Exchange | Queue | Binding | Policy]:
        """All of them, in the order in which they can be made."""
        yield from self.policies
        yield from self.exchanges
        yield from self.queues
        yield from self.bindings


@dataclass(frozen=True)
class Actual:
    """What a broker has in a vhost: what can stand in a file, and what else matters."""

    topology: Topology = Topology()
    vhost_exists: bool = True
    #: All of them: predeclared, exclusive, server-named ones too.
    exchange_names: frozenset[str] = frozenset()
    queue_names: frozenset[str] = frozenset()
    exchange_types: frozenset[str] = frozenset()
    #: Messages in a queue, by its name, where it is known.
    messages: Mapping[str, int] = field(default_factory=dict)
