"""Is every event of the shop in its table, once?"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from rich import box
from rich.table import Table as Grid

from warren.cli.scenes.ledger import Account, Ledger
from warren.cli.scenes.link import Link
from warren.cli.scenes.shop_events import QUARANTINE, QUEUES, RESULTS, TABLES, event
from warren.cli.scenes.shop_picture import Picture
from warren.cli.scenes.stage import Stage, mark


def reckon(
    stage: Stage, link: Link, folder: Path, count: int, picture: Picture, ledger: Ledger
) -> None:
    """Compare the tables with what was published, event by event, and say what came of it."""
    account = ledger.open("shop")
    cents: Counter[str] = Counter()
    for made in map(event, range(count)):
        account.sent((made.table, made.number))
        cents[made.country] += made.cents
    found: Counter[str] = Counter()
    for table in (*TABLES, QUARANTINE):
        for number in map(int, (folder / f"{table}.events").read_text().split()):
            account.came((table, number))
            found[table] += 1
    account.left_over = sum(link.delete(name) for name in QUEUES)
    stage.say(_summary(picture), "")
    broken = ", ".join(f"{number} {reason}" for reason, number in picture.reasons)
    stage.say(f"[dim]quarantined:[/] {broken}")
    _results(stage, link, account, cents)
    _verdict(stage, account, found, killed=picture.victim is not None)


def _summary(picture: Picture) -> Grid:
    table = Grid(box=box.SIMPLE, show_edge=False, header_style="dim", title_style="dim")
    for header in ("country", *TABLES, "sold"):
        table.add_column(header, justify="left" if header == "country" else "right")
    for row in picture.summary:
        counts = [f"{row[name] or 0:,}" for name in TABLES]
        table.add_row(row["country"], *counts, f"{(row['cents'] or 0) / 100:,.2f}")
    return table


def _results(stage: Stage, link: Link, account: Account, expected: Counter[str]) -> None:
    """What Spark published back: a message that came twice has the same id twice."""
    link.consume(RESULTS, no_ack=True)
    sold: dict[str, tuple[str, int]] = {}
    messages = 0
    while (message := link.next(0.5)) is not None:
        messages += 1
        told = json.loads(message.body)
        sold[message.properties.message_id or ""] = (told["country"], told["cents"])
    total: Counter[str] = Counter()
    for country, cents in sold.values():
        total[country] += cents
    right = account.promise(total == expected, f"sold {dict(total)}, not {dict(expected)}")
    again = (
        f", {messages - len(sold)} of them twice, with the same id" if messages > len(sold) else ""
    )
    stage.say(
        f"{mark(right)} Spark published {messages} results back{again}; together they say that "
        f"{total.total() / 100:,.2f} was sold"
    )


def _verdict(stage: Stage, account: Account, found: Counter[str], *, killed: bool) -> None:
    right = " + ".join(f"{found[table]} in {table}" for table in TABLES)
    verdict = "[bold green]it adds up[/]" if account.adds_up else "[bold red]IT DOES NOT ADD UP[/]"
    for promise in account.broken:
        stage.say(f"[bold red]{promise}[/]")
    stage.say(
        f"{mark(account.adds_up)} reconciliation: {account.published} published = {right} + "
        f"{found[QUARANTINE]} quarantined; {account.lost} lost, {account.doubled} doubled, "
        f"{int(killed)} worker killed: {verdict}",
        "",
    )
