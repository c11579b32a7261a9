"""The events of a web shop: who sends which, and where each has to end up.

An event is worked out from its number alone. So whoever checks the tables in the end can say what
must be in them without having been there.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from random import Random
from typing import Any

EXCHANGE, RESULTS = "shop", "shop.results"
#: Who publishes: a process each.
PUBLISHERS = ("website", "app", "partners")
COUNTRIES = ("de", "fr", "us", "jp")
QUEUES = tuple(f"shop.{country}" for country in COUNTRIES)
TABLES = ("orders", "payments", "shipments")
QUARANTINE = "quarantine"
_TYPES = ("order", "payment", "shipment")
#: One event in so many can't be read, in one of the ways below: what the quarantine says of each.
_BROKEN_ONE_IN = 150
_WAYS = {
    "cut": "not JSON",
    "not gzip": "not gzip, as its content-encoding says",
    "no json": "not JSON",
    "unknown type": "unknown type 'coupon'",
    "no order_id": "no field 'order_id'",
}


@dataclass(frozen=True, slots=True)
class Event:
    """A message, and the table in which it has to arrive."""

    number: int
    country: str
    type: str
    body: bytes
    content_encoding: str | None
    table: str
    #: What an order is worth, in cents; 0 for everything else.
    cents: int = 0
    #: Why it has to be in the quarantine, if it has to.
    reason: str | None = None

    @property
    def routing_key(self) -> str:
        return f"{self.country}.{self.type}"


def shares(count: int) -> dict[str, range]:
    """The numbers of the events that each publisher sends: together all, and none twice."""
    bounds = [count * part // len(PUBLISHERS) for part in range(len(PUBLISHERS) + 1)]
    return dict(zip(PUBLISHERS, map(range, bounds, bounds[1:]), strict=True))


def event(number: int) -> Event:
    """The event of this number."""
    random = Random(number)
    country, kind = random.choice(COUNTRIES), random.choice(_TYPES)
    fields, cents = _fields(kind, number, country, random)
    if random.randrange(_BROKEN_ONE_IN) == 0:
        return _broken(number, country, kind, fields, random.choice(tuple(_WAYS)))
    body = json.dumps(fields).encode()
    packed = random.random() < 0.4
    return Event(
        number,
        country,
        kind,
        gzip.compress(body, 1, mtime=0) if packed else body,
        "gzip" if packed else None,
        TABLES[_TYPES.index(kind)],
        cents,
    )


def _fields(kind: str, number: int, country: str, random: Random) -> tuple[dict[str, Any], int]:
    fields: dict[str, Any] = {"order_id": random.randrange(1_000_000), "country": country}
    cents = random.randrange(500, 50_000)
    if kind == "order":
        fields |= {"customer": f"c{number % 997}", "items": random.randrange(1, 9), "cents": cents}
        return fields, cents
    if kind == "payment":
        fields |= {"method": random.choice(("card", "transfer", "invoice")), "cents": cents}
    else:
        fields |= {"carrier": random.choice(("dhl", "ups", "post")), "parcels": 1}
    return fields, 0


def _broken(number: int, country: str, kind: str, fields: dict[str, Any], way: str) -> Event:
    body, encoding = json.dumps(fields).encode(), None
    if way == "cut":
        body = body[: len(body) // 2]
    elif way == "not gzip":
        encoding = "gzip"
    elif way == "no json":
        body = b"<order>one pizza</order>"
    elif way == "unknown type":
        kind = "coupon"
    else:
        del fields["order_id"]
        body = json.dumps(fields).encode()
    return Event(number, country, kind, body, encoding, QUARANTINE, reason=_WAYS[way])
