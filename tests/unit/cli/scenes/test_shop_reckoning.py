"""The demo fails if a table, the summary or what was published back is not as it has to be."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from warren.cli.scenes.ledger import Account
from warren.cli.scenes.shop_events import COUNTRIES, QUARANTINE, TABLES, Event
from warren.cli.scenes.shop_reckoning import Reckoning

ORDERED = {"de": 500, "fr": 700, "us": 900, "jp": 1_100}
#: An order, a payment and a shipment for each country; then one event that can't be read.
EVENTS = [
    Event(
        3 * at + which, country, "", b"", None, table, ORDERED[country] if table == "orders" else 0
    )
    for at, country in enumerate(COUNTRIES)
    for which, table in enumerate(TABLES)
]
BROKEN = Event(12, "de", "order", b"", None, QUARANTINE, reason="not JSON")


class Told:
    """What Spark made of them, as it has to be; a test spoils it."""

    def __init__(self) -> None:
        self.tables = {
            table: [made.number for made in EVENTS if made.table == table] for table in TABLES
        } | {QUARANTINE: [BROKEN.number]}
        self.reasons = {BROKEN.number: "not JSON"}
        self.summary: list[dict[str, Any]] = [
            {"country": country, **dict.fromkeys(TABLES, 1), "cents": cents}
            for country, cents in ORDERED.items()
        ]
        # As with two batches: half of the countries each, and one country in both.
        self.results = [
            {"country": country, "orders": 1, "cents": cents}
            for country, cents in list(ORDERED.items())[:3]
        ]
        self.results += [
            {"country": "jp", "orders": 0, "cents": 100},
            {"country": "jp", "orders": 1, "cents": 1_000},
        ]
        self.confirmed = {"website": 7, "app": 6}

    def reckoned(self) -> Account:
        account = Account("shop")
        reckoning = Reckoning(account)
        for made in [*EVENTS, BROKEN]:
            reckoning.sent(made)
        for table, numbers in self.tables.items():
            assert reckoning.came(table, numbers) == len(numbers)
        reckoning.reasons(self.reasons)
        reckoning.summary(self.summary)
        reckoning.results(json.dumps(result).encode() for result in self.results)
        reckoning.confirmed({"website": range(7), "app": range(7, 13)}, self.confirmed)
        return account


def test_what_is_as_it_has_to_be_adds_up() -> None:
    account = Told().reckoned()

    assert account.adds_up
    assert (account.published, account.lost, account.doubled) == (13, 0, 0)


WRONG: dict[str, tuple[Callable[[Told], object], str]] = {
    "an event is not there": (lambda told: told.tables["orders"].pop(), ""),
    "an event is there twice": (lambda told: told.tables["payments"].append(1), ""),
    "an event is in another table": (
        lambda told: told.tables["shipments"].append(told.tables["orders"].pop()),
        "",
    ),
    "a reason is another one's": (
        lambda told: told.reasons.update({12: "no type"}),
        "1 events are in quarantine for a wrong reason: [12]",
    ),
    "the summary lacks a country": (
        lambda told: told.summary.pop(),
        "the summary has rows for ['de', 'fr', 'us']",
    ),
    "the summary has a country twice": (
        lambda told: told.summary.append(told.summary[0]),
        "the summary has rows for ['de', 'fr', 'us', 'jp', 'de']",
    ),
    "the summary counts wrong": (
        lambda told: told.summary[1].update(payments=2),
        "the summary: fr has 2 payments, not 1",
    ),
    "the summary's sum is wrong": (
        lambda told: told.summary[3].update(cents=None),
        "the summary: jp has None cents, not 1100",
    ),
    "a result is missing": (
        lambda told: told.results.pop(),
        "published back: jp 0 orders, not 1; published back: jp 100 cents, not 1100",
    ),
    "a result counts wrong": (
        lambda told: told.results[0].update(orders=2),
        "published back: de 2 orders, not 1",
    ),
    "a result is of no country of ours": (
        lambda told: told.results.append({"country": "it", "orders": 1, "cents": 0}),
        "published back: it 1 orders, not 0",
    ),
    "a publisher had not all confirmed": (
        lambda told: told.confirmed.update(app=5),
        "app has 5 of 6 events confirmed",
    ),
}


@pytest.mark.parametrize(("spoil", "said"), WRONG.values(), ids=WRONG)
def test_what_is_not_as_it_has_to_be_does_not_add_up(
    spoil: Callable[[Told], object], said: str
) -> None:
    told = Told()
    spoil(told)

    account = told.reckoned()

    assert not account.adds_up
    assert "; ".join(account.broken) == said
