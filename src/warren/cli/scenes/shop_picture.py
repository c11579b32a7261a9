"""What is seen while Spark reads the shop's queues."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table as Grid

from warren.cli.scenes.stage import Stage, bar, lines

_LAST_BATCHES = 6
#: What a log is told when nothing else was for so long.
_QUIET_S = 5.0


class Picture:
    """The numbers as they come, and how they are drawn."""

    def __init__(
        self, stage: Stage, shares: Mapping[str, range], *, quiet_s: float = _QUIET_S
    ) -> None:
        self._stage, self.shares, self._quiet_s = stage, shares, quiet_s
        self._count = sum(map(len, shares.values()))
        #: How many events each publisher knows to be with the broker.
        self.published = dict.fromkeys(shares, 0)
        #: Messages in the queues; rows in tables, the quarantine's included.
        self.backlog = self.read = 0
        self.victim: int | None = None
        self.summary: list[dict[str, Any]] = []
        self._batches: list[dict[str, Any]] = []
        self._state = "Spark starts …"
        self._kill = ""
        self._began = self._said_at = time.monotonic()

    @property
    def sent(self) -> int:
        return sum(self.published.values())

    @property
    def with_spark(self) -> int:
        """Taken from the queues and in no table yet, as far as can be seen."""
        return max(0, self.sent - self.backlog - self.read)

    # -- what happens ----------------------------------------------------------------------------
    def hired(self, name: str, pid: int) -> None:
        """A publisher has started."""
        numbers = self.shares[name]
        self._log(f"publisher {name}, pid {pid}: events {numbers.start:,} to {numbers.stop - 1:,}")

    def tell(self, facts: dict[str, Any]) -> None:
        """Something that the Spark job said."""
        kind = facts["event"]
        if kind == "session":
            self._state = (
                f"Spark is up after {facts['seconds']:.0f} s; its first batch takes longest, "
                "up to half a minute"
            )
            self._log(self._state)
        elif kind == "batch":
            self.read += facts["rows"]
            self._batches.append(facts | {"backlog": self.backlog})
            self._state = "Spark reads the queues, batch by batch"
            self._log(
                "batch {}: {} rows in {} s ({} rows/s), backlog {}".format(
                    *_cells(self._batches[-1])
                )
            )
        elif kind == "summary":
            self.summary = facts["rows"]

    def killed(self, pid: int, *, busy: bool) -> None:
        """``busy``: it had a connection to the broker, to read a queue or to publish."""
        self.victim = pid
        told = (
            "that was talking to the broker. What it had in its hands goes back to the queues; "
            "Spark has its task done again"
            if busy
            else "that was not talking to the broker; none was caught doing so"
        )
        self._kill = f"[bold red]kill -9 {pid}[/]: a Python worker of Spark's {told}"
        self._log(self._kill)

    def go_on(self) -> None:
        """Called again and again: a log is not left without a sign of life."""
        if time.monotonic() - self._said_at >= self._quiet_s:
            self._log(
                f"… {time.monotonic() - self._began:.0f} s: {self.sent:,} published, "
                f"{self.backlog:,} in the queues, {self.read:,} in tables"
            )

    def _log(self, text: str) -> None:
        self._said_at = time.monotonic()
        if self._stage.plain:
            self._stage.say(text)

    # -- how it is drawn -------------------------------------------------------------------------
    def draw(self) -> RenderableType:
        if self._stage.plain:  # was told line by line
            return f"{self.read:,} rows read in {len(self._batches)} batches"
        width = self._stage.width - 34
        bars = [
            _progress(name, self.published[name], len(self.shares[name]), width, "yellow")
            for name in self.shares
        ]
        for word, number, colour in (
            ("in queues", self.backlog, "cyan"),
            ("with Spark", self.with_spark, "magenta"),
            ("in tables", self.read, "green"),
        ):
            bars.append(_progress(word, number, self._count, width, colour))
        table = Grid(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for header in ("batch", "rows", "seconds", "rows/s", "backlog"):
            table.add_column(header, justify="right")
        for batch in self._batches[-_LAST_BATCHES:]:
            table.add_row(*_cells(batch))
        notes = [f"[dim]{self._state}[/]", self._kill]
        return lines(*bars, "", table, "", *filter(None, notes))


def _progress(word: str, done: int, total: int, width: int, colour: str) -> str:
    return f"  {word:<10} {done:>9,}  [{colour}]{bar(done, total, width)}[/]"


def _cells(batch: dict[str, Any]) -> tuple[str, ...]:
    rows, seconds = batch["rows"], batch["ms"] / 1000
    return (
        str(batch["id"]),
        f"{rows:,}",
        f"{seconds:.1f}",
        f"{rows / seconds:,.0f}",
        f"{batch['backlog']:,}",
    )
