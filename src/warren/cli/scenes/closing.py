"""The last scene: everything that was published is accounted for, or the demo has failed."""

from __future__ import annotations

from rich import box
from rich.table import Table as Grid

from warren.cli.scenes.ledger import FATES, Account, Ledger
from warren.cli.scenes.stage import Stage, mark


def play(stage: Stage, number: int, ledger: Ledger) -> bool:
    """Show the accounts; True if they add up."""
    stage.scene(number, "Does it add up?", "Every message of every scene, and what became of it.")
    terminal = stage.console.is_terminal
    table = Grid(box=box.SIMPLE_HEAD if terminal else box.ASCII2, pad_edge=False, show_footer=True)
    total = ledger.total()
    for header, footer in zip(_HEADERS, _row(total), strict=True):
        table.add_column(
            header,
            footer=footer,
            justify="left" if header == "scene" else "right",
            footer_style="bold",
        )
    for account in ledger.accounts:
        table.add_row(*_row(account))
    stage.say(table)
    stage.pause(0.5)
    for account in ledger.accounts:
        for promise in account.broken:
            stage.say(f"[bold red]{account.name}: {promise}[/]")
    stage.say(f"{mark(ledger.adds_up)} {equation(total, ledger.adds_up)}")
    return ledger.adds_up


_HEADERS = ("scene", "published", "+ copies", "=", *FATES, "lost", "doubled", "")


def _row(account: Account) -> tuple[str, ...]:
    return (
        account.name,
        f"{account.published:,}",
        _number(account.copies),
        "=",
        *(_number(account.fates[fate]) for fate in FATES),
        _bad(account.lost),
        _bad(account.doubled),
        mark(account.adds_up),
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
