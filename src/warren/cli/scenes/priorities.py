"""Scene 4, third part: a queue in which the urgent overtake."""

from __future__ import annotations

from rich.text import Text

from warren.amqp.properties import Properties
from warren.cli.scenes.ledger import Account
from warren.cli.scenes.link import Link
from warren.cli.scenes.stage import Stage, lines, mark

_QUEUE = "tickets"
_PRIORITIES = (1, 0, 3, 1, 5, 0, 2, 4, 1, 5, 0, 3, 2, 0, 4, 1)
_SHADES = ("bright_black", "blue", "cyan", "green", "yellow", "red")


def play(stage: Stage, link: Link, account: Account) -> None:
    """Publish in any order; the consumer that comes later sees the urgent first."""
    came: list[tuple[int, int]] = []
    sent: list[tuple[int, int]] = []
    link.queue(_QUEUE, x_max_priority=max(_PRIORITIES))
    link.confirms()
    verdict: list[str] = []
    with stage.live(lambda: lines(*_picture(sent, came), *verdict)):
        for number, priority in enumerate(_PRIORITIES):
            account.sent(number)
            link.publish("", _QUEUE, b"%d" % number, Properties(priority=priority))
            sent.append((priority, number))
            stage.pause(0.04)
        link.wait_confirmed()
        link.consume(_QUEUE, prefetch=1)
        while account.outstanding > 0 and (delivery := link.next()) is not None:
            stage.pause(0.07)
            number = int(delivery.body)
            came.append((_PRIORITIES[number], number))
            link.ack(delivery)
            account.came(number)
        wanted = sorted(sent, key=lambda each: (-each[0], each[1]))
        account.promise(came == wanted, "the urgent did not come first")
        account.left_over = link.delete(_QUEUE)
        verdict.append(f"  {mark(account.adds_up)} highest first, oldest first among equals")
    stage.say("")
    stage.pause(0.5)


def _picture(sent: list[tuple[int, int]], came: list[tuple[int, int]]) -> tuple[str | Text, ...]:
    return (
        "[bold]priorities[/]  [dim]the number is a message's priority, the letter its place[/]",
        _row("published", sent),
        _row("consumed", came),
    )


def _row(name: str, messages: list[tuple[int, int]]) -> Text:
    row = Text(f"  {name:<10}")
    for priority, number in messages:
        row.append(f"{priority}{chr(ord('a') + number)}", style=f"bold {_SHADES[priority]}")
        row.append("  ")
    return row
