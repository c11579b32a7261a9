"""Scene 6: everything that was published is accounted for, or the demo has failed."""

from __future__ import annotations

from rich import box
from rich.console import JustifyMethod
from rich.table import Table as Grid

from warren.cli.scenes.ledger import FATES, Account, Ledger
from warren.cli.scenes.stage import Stage, mark

_HEADERS = (
    "\nscene",
    "\npublished",
    "+\ncopies",
    "=\nconsumed",
    "+ dead-\nlettered",
    "+\nexpired",
    "+ re-\nturned",
    "\nlost",
    "\ndoubled",
)
#: Where all of them have no room: scene, published, lost and doubled. The equation has the rest.
_NARROW, _KEPT = 70, (0, 1, 7, 8)


def play(stage: Stage, stopped_ms: float, ledger: Ledger) -> bool:
    """Show the accounts; True if they add up."""
    stage.scene(
        6,
        "Does it add up?",
        f"The broker stopped in {stopped_ms:.0f} ms and the workers are gone. Every message of "
        "every scene, and what became of it:",
    )
    total = ledger.total()
    stage.say(_table(ledger, total, stage.width), "")
    for account in ledger.accounts:
        for promise in account.broken:
            stage.say(f"[bold red]{account.name}: {promise}[/]")
    stage.say(f"{mark(ledger.adds_up)} {equation(total, ledger.adds_up)}", "")
    if ledger.adds_up:
        stage.say(
            "[dim]Yours now:[/]  [bold]warren broker[/]  [dim]or, in a program,[/]",
            "            [bold]with warren.Broker.in_thread() as broker: print(broker.url)[/]",
        )
    return ledger.adds_up


def _table(ledger: Ledger, total: Account, width: int) -> Grid:
    gap = 1 if width > 88 else 0
    table = Grid(
        box=box.SIMPLE,
        padding=(0, gap, 0, 0),
        show_edge=False,
        show_footer=True,
        header_style="dim",
    )
    kept = range(len(_HEADERS)) if width >= _NARROW else _KEPT
    footer = _row(total)
    for at in kept:
        justify: JustifyMethod = "right" if table.columns else "left"
        table.add_column(
            _HEADERS[at], footer[at], justify=justify, footer_style="bold", no_wrap=True
        )
    for account in ledger.accounts:
        row = _row(account)
        table.add_row(*(row[at] for at in kept))
    return table


def _row(account: Account) -> tuple[str, ...]:
    return (
        f"{mark(account.adds_up)} {account.name}",
        f"{account.published:,}",
        _number(account.copies),
        *(_number(account.fates[fate]) for fate in FATES),
        _bad(account.lost),
        _bad(account.doubled),
    )


def _number(count: int) -> str:
    return f"{count:,}" if count else "[dim]·[/]"


def _bad(count: int) -> str:
    return f"[bold red]{count:,}[/]" if count else "[green]0[/]"


def equation(total: Account, adds_up: bool) -> str:
    """The whole run in a sentence that can be checked."""
    right = " + ".join(f"{total.fates[fate]:,} {fate}" for fate in FATES)
    verdict = "[bold green]it adds up[/]" if adds_up else "[bold red]IT DOES NOT ADD UP[/]"
    return (
        f"reconciliation: {total.published:,} published + {total.copies:,} copies = {right}; "
        f"{total.lost} lost, {total.doubled} doubled: {verdict}"
    )
