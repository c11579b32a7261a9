"""Scene 3: a worker is killed with kill -9 in the middle of its work, and another goes on."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.console import Group
from rich.table import Table as Grid
from rich.text import Text

from warren.cli.scenes.crew import Crew, Event
from warren.cli.scenes.ledger import Account, Ledger
from warren.cli.scenes.link import Link
from warren.cli.scenes.stage import Stage, lines, mark

_NEVER = 0
_PATIENCE_S = 20.0
_COLOURS = {"A": "cyan", "B": "magenta"}
_STATES = {
    "starting": "[dim]starting[/]",
    "standby": "[yellow]○ standby[/]",
    "active": "[bold green]● active[/]",
    "killed": "[bold red]✗ killed[/]",
}


@dataclass(frozen=True)
class Arrangement:
    """A way to have one worker at a time on a queue."""

    name: str
    short: str
    how_it_works: str
    queue: str
    exclusive: bool
    arguments: dict[str, Any]
    messages: int
    work_ms: float


SINGLE_ACTIVE = Arrangement(
    "single active consumer",
    "single active",
    "both are subscribed, the broker feeds one",
    "orders",
    exclusive=False,
    arguments={"x_single_active_consumer": True},
    messages=360,
    work_ms=6,
)
EXCLUSIVE = Arrangement(
    "exclusive consumer",
    "exclusive",
    "the second is refused and tries again every 50 ms",
    "invoices",
    exclusive=True,
    arguments={},
    messages=240,
    work_ms=6,
)


def play(stage: Stage, url: str, ledger: Ledger) -> None:
    stage.scene(
        3,
        "kill -9",
        "Two worker processes, one queue, one message at a time, in order. The one that works is "
        "killed with a message in its hands. The other must go on with exactly that message.",
    )
    for arrangement in (SINGLE_ACTIVE, EXCLUSIVE):
        with Crew(url) as crew, Link(url) as link:
            Failover(stage, crew, arrangement, ledger.open(arrangement.short)).play(link)
        stage.say("")
        stage.pause(0.8)


@dataclass
class Post:
    """A worker as the picture shows it."""

    pid: int = 0
    state: str = "starting"
    done: int = 0
    refused: int = 0


class Failover:
    """One arrangement: two workers, a kill, and what came of it."""

    def __init__(self, stage: Stage, crew: Crew, plan: Arrangement, account: Account) -> None:
        self._stage, self._crew, self._plan, self._account = stage, crew, plan, account
        self._count = 60 if stage.fast else plan.messages
        self._kill_at = self._count * 2 // 5
        self._posts = {"A": Post(), "B": Post()}
        self._done: list[tuple[int, str]] = []
        self._victim = 0
        self._killed_at = 0.0
        self._took_over_ms: float | None = None
        self._redelivered = 0
        self._refusal = ""
        self._verdict: list[str] = []

    def play(self, link: Link) -> None:
        queue = self._plan.queue
        link.queue(queue, **self._plan.arguments)
        link.confirms()
        with self._stage.live(self._draw):
            self._hire("A", stop_at=self._kill_at)
            self._take_in(self._crew.wait_for("subscribed"))
            self._hire("B")
            self._take_in(self._crew.wait_for("refused" if self._plan.exclusive else "subscribed"))
            self._stage.pause(0.4)
            for number in range(1, self._count + 1):
                self._account.sent(number)
                link.publish("", queue, b"%d" % number)
            link.wait_confirmed()
            deadline = time.monotonic() + _PATIENCE_S
            with suppress(TimeoutError):  # what has not come is lost
                while self._account.outstanding > 0 or self._awaited:
                    self._take_in(self._crew.next(deadline - time.monotonic()))
            self._conclude(link.delete(queue))

    @property
    def _awaited(self) -> bool:
        """True until the killed worker is back, where it comes back."""
        return self._plan.exclusive and self._posts["A"].state != "standby"

    def _hire(self, name: str, stop_at: int = _NEVER) -> None:
        plan = self._plan
        how = "exclusive" if plan.exclusive else "shared"
        work_ms = 1 if self._stage.fast else plan.work_ms
        post = self._posts[name]
        post.pid = self._crew.hire(name, "work", plan.queue, how, work_ms, stop_at)
        post.state, post.refused = "starting", 0

    def _take_in(self, event: Event) -> None:
        post = self._posts[event.worker]
        if event.kind == "refused":
            post.state = "standby"
            post.refused += 1
            self._refusal = event["why"]
        elif event.kind == "subscribed":
            alone = all(other.state != "active" for other in self._posts.values())
            post.state = "active" if alone else "standby"
        elif event.kind == "got":
            self._got(event)
        elif event.kind == "done":
            post.done += 1
            self._done.append((event["number"], event.worker))
            self._account.came(event["number"])
        elif event.kind == "gone":
            post.state = "killed"
        killed = self._posts["A"].state == "killed" and self._took_over_ms is not None
        if killed and self._plan.exclusive:
            self._hire("A")  # back again, and now it is the standby

    def _got(self, event: Event) -> None:
        self._posts[event.worker].state = "active"
        self._redelivered += event["redelivered"]
        if event.worker == "A" and event["number"] == self._kill_at:
            self._victim = self._posts["A"].pid
            self._killed_at = self._crew.kill("A")
        elif event.worker == "B" and self._took_over_ms is None:
            self._took_over_ms = (event["at"] - self._killed_at) * 1000

    def _conclude(self, left_over: int) -> None:
        account = self._account
        account.left_over = left_over
        numbers = [number for number, _ in self._done]
        in_order = account.promise(numbers == sorted(numbers), "order was not kept")
        account.promise(self._took_over_ms is not None, "nobody took over")
        order = "in order" if in_order else "[bold red]out of order[/]"
        self._verdict = [
            f"  {mark(account.adds_up)} 1 … {self._count} {order}, {account.lost} lost, "
            f"{account.doubled} done twice; {self._redelivered} unacknowledged ones redelivered"
        ]
        if self._refusal:
            self._verdict.append(f"  [dim]refusal: {self._refusal}[/]")

    # -- the picture -----------------------------------------------------------------------------
    def _draw(self) -> Group:
        plan = self._plan
        title = f"[bold]{plan.name}[/]  [dim]{plan.how_it_works}[/]"
        return Group(lines(title), self._workers(), self._strip(), lines(*self._story()))

    def _workers(self) -> Grid:
        table = Grid.grid(padding=(0, 2))
        # The state may be long; where there is no room it is broken, and not the others.
        for width in (10, 11, min(34, self._stage.width - 40)):
            table.add_column(width=width)
        table.add_column(justify="right", min_width=8)
        for name, post in self._posts.items():
            state = _STATES[post.state]
            if post.refused and post.state == "standby":
                state += f"  [dim]refused (403), try {post.refused}[/]"
            if name == "A" and self._victim and post.state == "starting":
                state = "[dim]comes back[/]"
            table.add_row(
                f"  [{_COLOURS[name]}]worker {name}[/]",
                f"[dim]pid[/] {post.pid or '…'}",
                state,
                f"{post.done} done",
            )
        return table

    def _strip(self) -> Text:
        """Every message in order, in the colour of the worker that did it."""
        width = self._stage.width - 4
        places = [cell * self._count // width for cell in range(width)]
        done = [self._done[place][1] for place in places if place < len(self._done)]
        strip = Text("  ")
        for worker, cells in groupby(done):
            block = worker if self._stage.plain else "█"
            strip.append(block * len(list(cells)), style=_COLOURS[worker])
        return strip.append("░" * (width - len(done)), style="dim")

    def _story(self) -> list[str]:
        so_far = [f"  [dim]{len(self._done)} of {self._count}[/]"]
        if not self._victim:
            return so_far
        story = f"  [bold red]kill -9 {self._victim}[/] with message {self._kill_at} in its hands"
        if self._took_over_ms is not None:
            story += f"; B had it [bold green]{self._took_over_ms:.1f} ms[/] later"
        return [story, *(self._verdict or so_far)]
