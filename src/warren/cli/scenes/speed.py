"""Scene 5: how fast it is, here and now."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from rich.console import Group
from rich.table import Table as Grid

from warren.cli.scenes.crew import Crew, Event
from warren.cli.scenes.ledger import Account, Ledger
from warren.cli.scenes.link import Link
from warren.cli.scenes.load import BODY_BYTES
from warren.cli.scenes.stage import Stage, bar, lines, mark

_QUEUE = "speed"
_MOST_S = 4.0
_COLUMNS = (28, 9, 11)  # name, count, rate; the bar has the rest


@dataclass
class Race:
    """A measurement as the picture shows it."""

    name: str
    count: int = 0
    seconds: float = 0.0
    over: bool = False

    @property
    def rate(self) -> float:
        return self.count / self.seconds if self.seconds else 0.0


def play(stage: Stage, url: str, ledger: Ledger) -> None:
    cores = os.cpu_count()
    stage.scene(
        5,
        "How fast?",
        f"Messages of {BODY_BYTES} bytes, one client process at a time, the broker in this "
        f"process: raw numbers of this machine ({cores} cores, {platform.system()} "
        f"{platform.machine()}, Python {platform.python_version()}), picture included.",
    )
    with Crew(url) as crew, Link(url) as link:
        link.queue(_QUEUE)
        Speed(stage, crew, ledger.open("speed")).play(link)


class Speed:
    """Publishing with confirms, consuming with acks, and one message there and back."""

    def __init__(self, stage: Stage, crew: Crew, account: Account) -> None:
        self._stage, self._crew, self._account = stage, crew, account
        self._wanted = 10_000 if stage.fast else 250_000
        self._pings = 200 if stage.fast else 2_000
        self._publish = Race("publish, each confirmed")
        self._consume = Race("consume, each acknowledged")
        self._there_and_back = ""
        self._verdict = ""

    def play(self, link: Link) -> None:
        with self._stage.live(self._draw):
            self._crew.hire("publisher", "publish", _QUEUE, self._wanted, _MOST_S)
            told = self._follow(self._publish)
            sent = self._account.published = self._publish.count
            self._account.expected["in its place"] = sent
            self._account.promise(told["nacked"] == 0, f"{told['nacked']} publishes refused")

            self._crew.hire("consumer", "consume", _QUEUE, sent)
            told = self._follow(self._consume)
            self._account.fates["consumed"] = self._consume.count
            self._account.arrived["in its place"] = self._consume.count - told["astray"]
            self._account.promise(told["astray"] == 0, f"{told['astray']} messages out of order")

            self._crew.hire("pinger", "ping", _QUEUE, self._pings)
            self._pinged(self._crew.wait_for("finished", 60))
            self._account.left_over = link.delete(_QUEUE)
            self._verdict = self._conclude()
        self._stage.say("")
        self._stage.pause(0.8)

    def _follow(self, race: Race) -> Event:
        while True:
            event = self._crew.next()
            if event.kind in ("so far", "finished"):
                race.count, race.seconds = event["count"], event["seconds"]
            if event.kind == "finished":
                race.over = True
                return event

    def _pinged(self, told: Event) -> None:
        self._account.published += told["count"]
        self._account.fates["consumed"] += told["count"]
        self._there_and_back = (
            f"[bold green]{told['p50_ms']:.2f} ms[/] half of the time, "
            f"{told['p99_ms']:.2f} ms in 99 of 100"
        )

    # -- the picture -----------------------------------------------------------------------------
    def _draw(self) -> Group:
        width = self._stage.width - sum(_COLUMNS) - 5
        table = Grid.grid(padding=(0, 1))
        table.add_column(width=_COLUMNS[0])
        table.add_column(width=width)
        table.add_column(width=_COLUMNS[1], justify="right")
        table.add_column(width=_COLUMNS[2], justify="right")
        total = self._publish.count if self._publish.over else self._wanted
        for race, colour in ((self._publish, "cyan"), (self._consume, "magenta")):
            table.add_row(
                f"  {race.name}",
                f"[{colour}]{bar(race.count, total, width)}[/]",
                f"{race.count:,}",
                f"[bold {'green' if race.over else 'white'}]{race.rate:,.0f}/s[/]",
            )
        there = f"  one message there and back    {self._there_and_back or '[dim]…[/]'}"
        return Group(table, lines(there, self._verdict))

    def _conclude(self) -> str:
        account = self._account
        return (
            f"  {mark(account.adds_up)} every number in its place: {account.published:,} published "
            f"= {account.fates['consumed']:,} consumed"
        )
