"""What is seen while Spark reads the shop's queues."""

from __future__ import annotations

import time
from typing import Any

from rich.console import RenderableType
from rich.table import Table as Grid

from warren.cli.scenes.stage import Stage, bar, lines

_LAST_BATCHES = 6
_LINE = "batch {}  {} rows  {} rows/s  {} s  backlog {}"


class Picture:
    """The numbers as they come, and how they are drawn."""

    def __init__(self, stage: Stage, count: int) -> None:
        self._stage, self._count = stage, count
        self.published = self.backlog = self.read = 0
        self.victim: int | None = None
        self.summary: list[dict[str, Any]] = []
        self.reasons: list[list[Any]] = []
        self._batches: list[dict[str, Any]] = []
        self._notes = ["[dim]Spark starts …[/]"]
        self._began = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began

    def tell(self, facts: dict[str, Any]) -> None:
        """Something that the Spark job said."""
        kind = facts["event"]
        if kind == "session":
            self._note(
                f"Spark is up after {facts['seconds']:.0f} s; its first batch takes longest, "
                "up to half a minute"
            )
        elif kind == "batch":
            self.read += facts["rows"]
            self._batches.append(facts | {"backlog": self.backlog})
            if self._stage.plain:
                self._stage.say(_LINE.format(*_cells(self._batches[-1])))
        elif kind == "summary":
            self.summary = facts["rows"]
        elif kind == "reasons":
            self.reasons = facts["rows"]

    def killed(self, pid: int, *, busy: bool) -> None:
        """``busy``: it had a connection to the broker, to read a queue or to publish."""
        self.victim = pid
        told = (
            "that was talking to the broker; Spark has its task done again"
            if busy
            else "that was not talking to the broker; none was caught doing so"
        )
        self._note(f"[bold red]kill -9 {pid}[/], a Python worker of Spark {told}")

    def _note(self, text: str) -> None:
        self._notes.append(text)
        if self._stage.plain:
            self._stage.say(text)

    def draw(self) -> RenderableType:
        if self._stage.plain:  # was told line by line
            return f"{self.read:,} rows read in {len(self._batches)} batches"
        width = self._stage.width - 34
        table = Grid(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for header in ("batch", "rows", "rows/s", "seconds", "backlog then"):
            table.add_column(header, justify="right")
        for batch in self._batches[-_LAST_BATCHES:]:
            table.add_row(*_cells(batch))
        return lines(
            _progress("published", self.published, self._count, width, "yellow"),
            _progress("in queues", self.backlog, self._count, width, "cyan"),
            _progress("in tables", self.read, self._count, width, "green"),
            "",
            table,
            "",
            *self._notes[-3:],
        )


def _progress(word: str, done: int, total: int, width: int, colour: str) -> str:
    return f"  {word:<10} {done:>9,}  [{colour}]{bar(done, total, width)}[/]"


def _cells(batch: dict[str, Any]) -> tuple[str, ...]:
    rows, seconds = batch["rows"], batch["ms"] / 1000
    return (
        str(batch["id"]),
        f"{rows:,}",
        f"{rows / seconds:,.0f}",
        f"{seconds:.1f}",
        f"{batch['backlog']:,}",
    )
