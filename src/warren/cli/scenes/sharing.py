"""A scene: workers share many queues; one is killed, another joins, nobody else stops."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from rich.console import Group as Lines
from rich.table import Table as Grid
from rich.text import Text

from warren.cli.scenes.crew import Crew, Event
from warren.cli.scenes.ledger import Account, Ledger
from warren.cli.scenes.link import Link
from warren.cli.scenes.stage import Stage, bar, lines, mark

QUEUES = tuple(f"shop-{number:02}" for number in range(1, 25))
GROUP = "demo"
_A_ROW, _CELL = 12, 6
#: What stands beside the bar of a worker; and below this width, its pid has no room.
_BESIDE_BAR, _ROOM_FOR_PID = 62, 60
_RATE = 400  # messages a second, over all queues
_PATIENCE_S = 30.0
_COLOURS = {"A": "cyan", "B": "magenta", "C": "green", "D": "yellow"}


def play(stage: Stage, url: str, number: int, ledger: Ledger) -> None:
    stage.scene(
        number,
        "Workers share queues",
        f"{len(QUEUES)} queues under load, workers that come and go. They share the queues evenly, "
        "and no one tells them how. Each queue has one worker at a time, its messages in order.",
    )
    with Crew(url) as crew, Link(url) as link:
        for queue in QUEUES:
            link.queue(queue)
        Sharing(stage, crew, ledger.open("group")).play(url)
        for queue in QUEUES:
            link.delete(queue)
    stage.say("")
    stage.pause(0.8)


@dataclass
class Member:
    """A worker as the picture shows it."""

    pid: int = 0
    state: str = "starting"
    queues: set[str] = field(default_factory=set)
    handled: int = 0


class Sharing:
    """The workers, what they hold, and what they have handled."""

    def __init__(self, stage: Stage, crew: Crew, account: Account) -> None:
        self._stage, self._crew, self._account = stage, crew, account
        self._members: dict[str, Member] = {}
        self._owner: dict[str, str] = {}
        self._last: dict[str, int] = dict.fromkeys(QUEUES, 0)
        self._again = 0
        self._moved = 0
        self._orphans: set[str] = set()
        self._killed_at = 0.0
        self._first_ms: float | None = None
        self._all_ms: float | None = None
        self._story: list[str] = []

    def play(self, url: str) -> None:
        with self._stage.live(self._draw), self._load(url) as stop_load:
            self._join("A", "is alone and takes all")
            self._join("B", "joins: half of the queues move, the others stay")
            self._join("C", "joins: a third each")
            self._kill("B")
            self._join("D", "joins in its place")
            self._pause(0.5)
            stop_load()
            with suppress(TimeoutError):  # what has not come is lost
                self._until(lambda: self._account.outstanding <= 0)
        self._conclude()

    # -- what happens ----------------------------------------------------------------------------
    def _join(self, name: str, text: str) -> None:
        self._moved = 0
        began = time.monotonic()
        self._members[name] = Member(self._crew.hire(name, "share", GROUP, *QUEUES))
        self._until(self._balanced)
        took_ms = (time.monotonic() - began) * 1000
        colour = _COLOURS[name]
        self._tell(
            f"[{colour}]{name}[/] {text}  [dim]{self._moved} moved, even after {took_ms:.0f} ms[/]"
        )
        self._pause(0.6)

    def _kill(self, name: str) -> None:
        victim = self._members[name]
        self._orphans = set(victim.queues)
        self._killed_at = self._crew.kill(name)
        victim.state = "killed"
        self._until(self._balanced)
        assert self._first_ms is not None
        assert self._all_ms is not None
        self._tell(
            f"[{_COLOURS[name]}]{name}[/], kill -9 {victim.pid}: its first queue goes on "
            f"after [bold]{self._first_ms:.0f} ms[/], its last after [bold]{self._all_ms:.0f} ms[/]"
        )
        self._pause(0.8)

    def _balanced(self) -> bool:
        alive = [each for each in self._members.values() if each.state != "killed"]
        counts = [len(each.queues) for each in alive]
        return sum(counts) == len(QUEUES) and max(counts) - min(counts) <= 1 and not self._orphans

    def _until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not done():
            self._take_in(self._crew.next(deadline - time.monotonic()))

    def _pause(self, seconds: float) -> None:
        """Go on listening for a while."""
        end = time.monotonic() + (0.1 if self._stage.fast or self._stage.plain else seconds)
        with suppress(TimeoutError):
            while time.monotonic() < end:
                self._take_in(self._crew.next(end - time.monotonic()))

    def _take_in(self, event: Event) -> None:
        member = self._members[event.worker]
        if event.kind == "joined":
            member.state = "at work"
        elif event.kind == "holds":
            self._holds(event.worker, event["queue"])
        elif event.kind == "released":
            member.queues.discard(event["queue"])
        elif event.kind == "got":
            self._got(event)
        elif event.kind == "gone":
            member.state = "killed"
            member.queues.clear()

    def _holds(self, name: str, queue: str) -> None:
        before = self._owner.get(queue)
        if before is not None and before != name:
            self._moved += 1
            other = self._members[before]
            self._account.promise(
                other.state == "killed" or queue not in other.queues, f"two held {queue}"
            )
            other.queues.discard(queue)
        self._owner[queue] = name
        self._members[name].queues.add(queue)

    def _got(self, event: Event) -> None:
        queue, number = event["queue"], event["number"]
        self._members[event.worker].handled += 1
        if queue in self._orphans and self._members[event.worker].state != "killed":
            self._orphans.discard(queue)
            # Workers are heard one after the other: the first that is heard need not be the first.
            after_ms = (event["at"] - self._killed_at) * 1000
            self._first_ms = min(after_ms, self._first_ms or after_ms)
            self._all_ms = max(after_ms, self._all_ms or after_ms)
        if number <= self._last[queue]:
            # It was in the hands of the one that was killed; nobody can know how far it got.
            self._again += 1
            self._account.promise(event["again"], f"{queue} {number} came twice, not flagged")
            return
        self._account.promise(number == self._last[queue] + 1, f"{queue}: order was not kept")
        self._last[queue] = number
        self._account.came((queue, number))

    @contextmanager
    def _load(self, url: str) -> Iterator[Callable[[], None]]:
        """Numbered messages for every queue, at an even pace, until the function is called."""
        over = threading.Event()

        def publish() -> None:
            with Link(url) as link:
                link.confirms()
                number = 0
                while not over.is_set():
                    number += 1
                    for queue in QUEUES:
                        self._account.sent((queue, number))
                        link.publish("", queue, b"%d" % number)
                    link.wait_confirmed()
                    over.wait(len(QUEUES) / _RATE)

        thread = threading.Thread(target=publish, name="load", daemon=True)
        thread.start()

        def stop() -> None:
            over.set()
            thread.join()

        try:
            yield stop
        finally:
            stop()

    def _conclude(self) -> None:
        account = self._account
        self._stage.say(
            f"  {mark(account.adds_up)} {account.published:,} messages, in order in each queue: "
            f"{account.lost} lost, {account.doubled} done twice, {self._again} redelivered"
        )

    # -- the picture -----------------------------------------------------------------------------
    def _tell(self, text: str) -> None:
        self._story.append(f"  {text}")

    def _draw(self) -> Lines:
        return Lines(self._queues(), Text(""), self._workers(), lines("", *self._story))

    def _queues(self) -> Grid:
        table = Grid.grid(padding=(0, 1))
        a_row = min(_A_ROW, self._stage.width // _CELL)
        for start in range(0, len(QUEUES), a_row):
            cells = []
            for queue in QUEUES[start : start + a_row]:
                owner = self._owner.get(queue)
                style = "dim" if owner is None else f"bold black on {_COLOURS[owner]}"
                if owner is not None and queue in self._orphans:
                    style = "bold white on red"
                cells.append(Text(f" {queue[-2:]}{owner or ' '} ", style=style))
            table.add_row(*cells)
        return table

    def _workers(self) -> Grid:
        table = Grid.grid(padding=(0, 2))
        room = min(24, self._stage.width - _BESIDE_BAR)
        for name, member in self._members.items():
            killed = member.state == "killed"
            cells = [
                Text(f"  {name}", style=f"bold {_COLOURS[name]}"),
                Text("✗ killed" if killed else "● " + member.state, style="red" if killed else ""),
                Text(f"{len(member.queues):>2} queues"),
                Text(f"{member.handled:>5,} handled"),
            ]
            if room > 0:
                drawn = bar(len(member.queues), len(QUEUES), room)
                cells.insert(3, Text(drawn, style=_COLOURS[name]))
            if self._stage.width >= _ROOM_FOR_PID:
                cells.insert(1, Text(f"pid {member.pid}", style="dim"))
            table.add_row(*cells)
        return table
