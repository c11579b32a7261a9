"""Is every event of the shop in its table, once? And is what Spark made of them right?

What has to be there is worked out from the numbers of the events; nobody who had a hand in it is
asked. Each thing that is not so is a promise of the account that was broken, and fails the demo.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table as Grid

from warren.cli.scenes.ledger import Account, Ledger
from warren.cli.scenes.link import Link
from warren.cli.scenes.shop_events import (
    COUNTRIES,
    QUARANTINE,
    QUEUES,
    RESULTS,
    TABLES,
    Event,
    event,
)
from warren.cli.scenes.shop_picture import Picture
from warren.cli.scenes.stage import Stage, mark

_CENTS = "cents"
#: What a result says of a country.
_SOLD = ("orders", _CENTS)
#: How long the queue of results is silent before all of them are here.
_SILENCE_S = 0.5


@dataclass(frozen=True)
class Found:
    """Where it lies what Spark has made."""

    link: Link
    folder: Path
    picture: Picture


class Reckoning:
    """What must be there, and whether it is.

    Usage: all events to ``sent``; then the other methods, in any order.
    """

    def __init__(self, account: Account) -> None:
        self.account = account
        #: By country: how many rows each table has of it, and what its orders are worth.
        self._due: dict[str, Counter[str]] = {country: Counter() for country in COUNTRIES}
        #: What the quarantine must say of each event in it.
        self._reasons: dict[int, str] = {}
        #: By country, what was published back.
        self.sold: dict[str, Counter[str]] = {country: Counter() for country in COUNTRIES}

    def sent(self, made: Event) -> None:
        """An event was published."""
        self.account.sent((made.table, made.number))
        if made.reason is not None:
            self._reasons[made.number] = made.reason
        else:
            self._due[made.country].update({made.table: 1, _CENTS: made.cents})

    def confirmed(self, shares: Mapping[str, range], published: Mapping[str, int]) -> None:
        """Has each publisher heard that all of its events are with the broker?"""
        for name, numbers in shares.items():
            self.account.promise(
                published[name] == len(numbers),
                f"{name} has {published[name]:,} of {len(numbers):,} events confirmed",
            )

    def came(self, table: str, numbers: Iterable[int]) -> int:
        """These events are in this table; returns how many there are."""
        before = self.account.fates.total()
        for number in numbers:
            self.account.came((table, number))
        return self.account.fates.total() - before

    def reasons(self, told: Mapping[int, str]) -> bool:
        """Does the quarantine give each event's reason?"""
        wrong = [number for number, why in told.items() if self._reasons.get(number, why) != why]
        return self.account.promise(
            not wrong, f"{len(wrong)} events are in quarantine for a wrong reason: {wrong[:5]}"
        )

    def summary(self, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Does the summary table have a row a country, and are all of its numbers right?"""
        countries = [row["country"] for row in rows]
        right = self.account.promise(
            sorted(countries) == sorted(COUNTRIES), f"the summary has rows for {countries}"
        )
        for row in rows:
            for name in (*TABLES, _CENTS):
                due = self._due_of(row["country"])[name]
                right &= self.account.promise(
                    row[name] == due,
                    f"the summary: {row['country']} has {row[name]} {name}, not {due}",
                )
        return right

    def results(self, bodies: Iterable[bytes]) -> bool:
        """Does what was published back, all together, come to what the orders are worth?"""
        for told in map(json.loads, bodies):
            sums = self.sold.setdefault(told["country"], Counter())
            sums.update({name: told[name] for name in _SOLD})
        right = True
        for country, sums in self.sold.items():
            for name in _SOLD:
                due = self._due_of(country)[name]
                right &= self.account.promise(
                    sums[name] == due, f"published back: {country} {sums[name]} {name}, not {due}"
                )
        return right

    def _due_of(self, country: str) -> Counter[str]:
        return self._due.get(country, Counter())


def reckon(stage: Stage, number: int, found: Found, ledger: Ledger) -> None:
    """Compare what Spark made with what was published, and say what came of it."""
    stage.scene(
        number,
        "Does it add up?",
        "What has to be in each table is worked out anew from the numbers of the events, without "
        "Spark, and compared with what lies in the Parquet files, event by event.",
    )
    reckoning = Reckoning(ledger.open("shop"))
    for numbers in found.picture.shares.values():
        for made in map(event, numbers):
            reckoning.sent(made)
    counts, reasons = _tables(reckoning, found.folder)
    reckoning.account.left_over = sum(found.link.delete(name) for name in QUEUES)
    messages, bodies = _results(found.link)
    _say_results(stage, reckoning, found.picture, messages, bodies)
    _say_quarantine(stage, reckoning, reasons)
    reckoning.confirmed(found.picture.shares, found.picture.published)
    _verdict(stage, reckoning.account, counts, killed=found.picture.victim is not None)


def _tables(reckoning: Reckoning, folder: Path) -> tuple[Counter[str], dict[int, str]]:
    """How many rows each table has, and what the quarantine says of which event."""
    counts: Counter[str] = Counter()
    reasons: dict[int, str] = {}
    for table in (*TABLES, QUARANTINE):
        rows = [json.loads(line) for line in (folder / f"{table}.events").read_text().splitlines()]
        counts[table] = reckoning.came(table, (row[0] for row in rows))
        if table == QUARANTINE:
            reasons.update(rows)
    return counts, reasons


def _results(link: Link) -> tuple[int, dict[str, bytes]]:
    """How many results came, and each one's body: what came twice has the same id twice."""
    link.consume(RESULTS, no_ack=True)
    messages, bodies = 0, {}
    while (message := link.next(_SILENCE_S)) is not None:
        messages += 1
        bodies[message.properties.message_id or f"no id, {messages}"] = message.body
    return messages, bodies


# -- what is said --------------------------------------------------------------------------------
def _say_results(
    stage: Stage, reckoning: Reckoning, picture: Picture, messages: int, bodies: dict[str, bytes]
) -> None:
    right, results = reckoning.summary(picture.summary), reckoning.results(bodies.values())
    stage.say(_summary(picture, lambda country: reckoning.sold[country][_CENTS]), "")
    stage.say(
        f"{mark(right)} summary table, made by Spark of the other three: "
        + ("every number is right" if right else "[bold red]IT IS WRONG[/]")
    )
    twice = messages - len(bodies)
    again = f" ({twice} of them twice, with the same id: counted once)" if twice else ""
    stage.say(
        f"{mark(results)} published back to the exchange {RESULTS}, with each batch: "
        f"{messages:,} messages{again}, "
        + ("which come to the same" if results else "[bold red]WHICH ARE WRONG[/]")
    )


def _summary(picture: Picture, sold: Callable[[str], int]) -> Grid:
    table = Grid(box=box.SIMPLE, show_edge=False, header_style="dim", title_style="dim")
    for header in ("country", *TABLES, "sold", "published back"):
        table.add_column(header, justify="left" if header == "country" else "right")
    for row in picture.summary:
        counts = [f"{row[name] or 0:,}" for name in TABLES]
        money = [f"{(cents or 0) / 100:,.2f}" for cents in (row[_CENTS], sold(row["country"]))]
        table.add_row(row["country"], *counts, *money)
    return table


def _say_quarantine(stage: Stage, reckoning: Reckoning, reasons: dict[int, str]) -> None:
    right = reckoning.reasons(reasons)
    told = ", ".join(f"{number:,} {why}" for why, number in Counter(reasons.values()).most_common())
    stage.say(f"{mark(right)} quarantine, with body and reason: {escape(told)}")


def _verdict(stage: Stage, account: Account, counts: Counter[str], *, killed: bool) -> None:
    right = " + ".join(f"{counts[table]:,} in {table}" for table in TABLES)
    verdict = "[bold green]it adds up[/]" if account.adds_up else "[bold red]IT DOES NOT ADD UP[/]"
    for promise in account.broken:
        stage.say(f"[bold red]{escape(promise)}[/]")
    stage.say(
        f"{mark(account.adds_up)} reconciliation: {account.published:,} published = {right} + "
        f"{counts[QUARANTINE]:,} quarantined; {account.lost:,} lost, {account.doubled:,} doubled, "
        f"{int(killed)} worker killed: {verdict}",
        "",
    )
