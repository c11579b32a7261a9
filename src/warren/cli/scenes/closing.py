"""The last scene: everything that was published is accounted for, or the demo has failed."""

from __future__ import annotations

from rich import box
from rich.console import JustifyMethod
from rich.table import Table as Grid

from warren.cli.scenes.ledger import FATES, Account, Ledger
from warren.cli.scenes.stage import Stage, mark


def play(stage: Stage, number: int, ledger: Ledger) -> bool:
    """Show the accounts; True if they add up."""
    stage.scene(number, "Does it add up?", "Every message of every scene, and what became of it.")
    table = Grid(
        box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False, show_footer=True, header_style="dim"
    )
    total = ledger.total()
    for header, footer in zip(_HEADERS, _row(total), strict=True):
        justify: JustifyMethod = "right" if table.columns else "left"
        table.add_column(header, footer, justify=justify, footer_style="bold", no_wrap=True)
    for account in ledger.accounts:
        table.add_row(*_row(account))
    stage.say(table)
    stage.pause(0.5)
    for account in ledger.accounts:
        for promise in account.broken:
            stage.say(f"[bold red]{account.name}: {promise}[/]")
    stage.say(f"{mark(ledger.adds_up)} {equation(total, ledger.adds_up)}")
    return ledger.adds_up


_HEADERS = (
    "\nscene",
    "\npublished",
    "+\ncopies",
    "=\nconsumed",
    "+ dead-\nlettered",
    "+\nexpired",
    "+\nreturned",
    "\nlost",
    "\ndoubled",
)


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
    right = " + ".join(f"{total.fates[fate]} {fate}" for fate in FATES)
    verdict = "it adds up" if adds_up else "IT DOES NOT ADD UP"
    return (
        f"reconciliation: {total.published} published + {total.copies} copies = {right}; "
        f"{total.lost} lost, {total.doubled} doubled: [bold]{verdict}[/]"
    )
