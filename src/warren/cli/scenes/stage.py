"""Where the scenes play: a terminal with colours and movement, or plain lines for a log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.text import Text

WIDTH = 96
NARROWEST = 72
_FRAMES_A_SECOND = 15


@dataclass(frozen=True)
class Stage:
    """What a scene prints on. ``quick`` leaves out the pauses that are there for people only."""

    console: Console
    quick: bool

    @classmethod
    def open(cls, *, plain: bool, fast: bool, file: IO[str] | None = None) -> Stage:
        """A stage on stdout, as lively as that allows."""
        out = file or sys.stdout
        plain = plain or not out.isatty() or os.environ.get("TERM") in (None, "dumb")
        console = Console(
            file=out,
            highlight=False,
            emoji=False,
            soft_wrap=False,
            force_terminal=False if plain else None,
            color_system=None if plain else "auto",
        )
        console.width = WIDTH if plain else max(NARROWEST, min(WIDTH, console.width))
        return cls(console, quick=fast or plain)

    @property
    def width(self) -> int:
        return self.console.width

    def scene(self, number: int, title: str, *sentences: str) -> None:
        """Open a scene: its number, its name, and what is about to be seen."""
        self.console.print()
        self.console.print(
            Rule(f"[bold]{number}[/] · [bold]{title}[/]", style="yellow", align="left")
        )
        for sentence in sentences:
            self.say(f"[dim]{sentence}[/]")
        self.console.print()
        self.pause(0.6)

    def say(self, *parts: RenderableType) -> None:
        """Print lines; strings may carry rich's markup."""
        for part in parts:
            self.console.print(Text.from_markup(part) if isinstance(part, str) else part)

    @contextmanager
    def live(self, draw: Callable[[], RenderableType]) -> Iterator[None]:
        """Draw again and again while the block runs; in plain lines, once at its end."""
        view = Live(
            console=self.console,
            get_renderable=draw,
            refresh_per_second=_FRAMES_A_SECOND,
            auto_refresh=self.console.is_terminal,
        )
        with view:
            yield

    def pause(self, seconds: float) -> None:
        """Give people time to look."""
        if not self.quick:
            time.sleep(seconds)


def lines(*parts: str | RenderableType) -> Group:
    """Markup lines and other renderables, one under the other."""
    return Group(*(Text.from_markup(part) if isinstance(part, str) else part for part in parts))


def bar(done: float, total: float, width: int) -> str:
    """A bar in eighths of a cell."""
    eighths = round(width * 8 * min(1.0, done / total)) if total else 0
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + " ▏▎▍▌▋▊▉"[rest].strip()).ljust(width)


def mark(good: bool) -> str:
    """A tick or a cross."""
    return "[bold green]✓[/]" if good else "[bold red]✗[/]"
