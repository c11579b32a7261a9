"""The exchanges that the routing scene plays, written down as data.

Each act says itself where every message must arrive; the broker is not asked. Names of queues and
exchanges are those of a small web shop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warren.amqp.methods import ExchangeBind, ExchangeDeclare, Method, QueueBind
from warren.amqp.tables import Table

#: The place of a message that comes back to its publisher: 312 NO_ROUTE.
RETURNED = "returned"
#: "One of the queues": which one is the broker's choice.
ANY = "any"


@dataclass(frozen=True)
class Route:
    """A line of the picture: what stands on the arrow, and where it ends."""

    label: str
    queue: str


@dataclass(frozen=True)
class Letter:
    """A message and the places it must arrive at."""

    key: str
    to: tuple[str, ...]
    headers: Mapping[str, Any] | None = None
    mandatory: bool = False

    @property
    def shown(self) -> str:
        """What the exchange looks at."""
        if self.headers is None:
            return self.key
        return " ".join(f"{name}={value}" for name, value in self.headers.items())


@dataclass(frozen=True)
class Act:
    """One exchange type at work."""

    name: str
    rule: str
    exchange: str
    set_up: tuple[Method, ...]
    routes: tuple[Route, ...]
    letters: tuple[Letter, ...]
    rounds: int = field(default=25)
    """How often all the letters are sent."""


def _exchange(name: str, kind: str, **arguments: Any) -> Method:
    return ExchangeDeclare(exchange=name, type=kind, arguments=_table(arguments))


def _bind(exchange: str, queue: str, key: str = "", **arguments: Any) -> Method:
    return QueueBind(queue=queue, exchange=exchange, routing_key=key, arguments=_table(arguments))


def _table(arguments: Mapping[str, Any]) -> Table:
    return Table({name.replace("_", "-"): value for name, value in arguments.items()})


DIRECT = Act(
    "direct",
    "the key must be equal; mandatory messages that no queue wants come back",
    "orders",
    (_exchange("orders", "direct"), _bind("orders", "europe", "eu"), _bind("orders", "usa", "us")),
    (Route("eu", "europe"), Route("us", "usa"), Route("no binding", RETURNED)),
    (
        Letter("eu", ("europe",)),
        Letter("us", ("usa",)),
        Letter("eu", ("europe",)),
        Letter("mars", (RETURNED,), mandatory=True),
    ),
)

FANOUT = Act(
    "fanout",
    "a copy for every queue, whatever the key; the body is in memory once",
    "prices",
    (
        _exchange("prices", "fanout"),
        *(_bind("prices", queue) for queue in ("website", "app", "partners")),
    ),
    (
        Route("every message", "website"),
        Route("every message", "app"),
        Route("every message", "partners"),
    ),
    (Letter("", ("website", "app", "partners")),),
    rounds=80,
)

TOPIC = Act(
    "topic",
    "words with dots: * stands for one word, # for any number of them",
    "events",
    (
        _exchange("events", "topic"),
        _bind("events", "germany", "de.#"),
        _bind("events", "invoices", "*.order.paid"),
        _bind("events", "audit", "#"),
    ),
    (Route("de.#", "germany"), Route("*.order.paid", "invoices"), Route("#", "audit")),
    (
        Letter("de.order.paid", ("germany", "invoices", "audit")),
        Letter("fr.order.paid", ("invoices", "audit")),
        Letter("de.user", ("germany", "audit")),
        Letter("es.cart.item.added", ("audit",)),
    ),
    rounds=20,
)

HEADERS = Act(
    "headers",
    "not the key but the headers decide: all of the binding's, or any",
    "documents",
    (
        _exchange("documents", "headers"),
        _bind("documents", "printer", x_match="all", format="pdf", size="a4"),
        _bind("documents", "archive", x_match="any", format="pdf", kind="scan"),
    ),
    (Route("all: pdf, a4", "printer"), Route("any: pdf, scan", "archive")),
    (
        Letter("", ("printer", "archive"), {"format": "pdf", "size": "a4"}),
        Letter("", ("archive",), {"format": "pdf", "size": "a5"}),
        Letter("", ("archive",), {"format": "png", "kind": "scan"}),
    ),
)

HASH = Act(
    "consistent hash",
    "a key stays with its queue; the weight is the queue's share",
    "customers",
    (
        _exchange("customers", "x-consistent-hash"),
        _bind("customers", "shard-1", "1"),
        _bind("customers", "shard-2", "1"),
        _bind("customers", "shard-3", "2"),
    ),
    (Route("weight 1", "shard-1"), Route("weight 1", "shard-2"), Route("weight 2", "shard-3")),
    tuple(Letter(f"customer-{number}", (ANY,)) for number in range(500)),
    rounds=2,
)

CHAIN = Act(
    "exchange chain",
    "an exchange bound to another exchange: filters behind filters",
    "all-news",
    (
        _exchange("all-news", "fanout"),
        _exchange("by-topic", "topic"),
        ExchangeBind(destination="by-topic", source="all-news"),
        _bind("all-news", "backup"),
        _bind("by-topic", "sport", "sport.*"),
        _bind("by-topic", "results", "*.result"),
    ),
    (
        Route("", "backup"),
        Route("(by-topic) sport.*", "sport"),
        Route("(by-topic) *.result", "results"),
    ),
    (
        Letter("sport.result", ("backup", "sport", "results")),
        Letter("sport.interview", ("backup", "sport")),
        Letter("election.result", ("backup", "results")),
        Letter("weather.today", ("backup",)),
    ),
    rounds=20,
)

ALTERNATE = Act(
    "alternate",
    "what no binding wants goes to the alternate exchange",
    "parcels",
    (
        _exchange("unclaimed", "fanout"),
        _exchange("parcels", "direct", alternate_exchange="unclaimed"),
        _bind("parcels", "berlin", "berlin"),
        _bind("parcels", "lisbon", "lisbon"),
        _bind("unclaimed", "lost-and-found"),
    ),
    (
        Route("berlin", "berlin"),
        Route("lisbon", "lisbon"),
        Route("else (unclaimed)", "lost-and-found"),
    ),
    (
        Letter("berlin", ("berlin",)),
        Letter("lisbon", ("lisbon",)),
        Letter("atlantis", ("lost-and-found",)),
        Letter("berlin", ("berlin",)),
    ),
)

ACTS = (DIRECT, FANOUT, TOPIC, HEADERS, HASH, CHAIN, ALTERNATE)
