"""Where the scenes play: a terminal with colours and movement, or plain lines for a log."""

from __future__ import annotations

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

#: Wider looks lost, narrower breaks the pictures: then it is plain lines, as wide as there is room.
WIDTH = 96
NARROWEST = 80
NARROWEST_LINES = 50
_FRAMES_A_SECOND = 15


@dataclass(frozen=True)
class Stage:
    """What a scene prints on, and how long it may take. ``fast`` asks for few messages."""

    console: Console
    plain: bool
    fast: bool
    #: Lines are broken between words; a log has them whole.
    wraps: bool = True

    @classmethod
    def open(cls, *, plain: bool, fast: bool, file: IO[str] | None = None) -> Stage:
        """A stage on stdout, as lively as that allows."""
        out = file or sys.stdout
        console = real = Console(file=out, highlight=False, emoji=False)
        if plain or not real.is_terminal or real.is_dumb_terminal or real.width < NARROWEST:
            console = Console(
                file=out, highlight=False, emoji=False, color_system=None, force_terminal=False
            )
            console.width = WIDTH if not real.is_terminal else _fitting(real.width)
            return cls(console, plain=True, fast=fast, wraps=real.is_terminal)
        console.width = min(WIDTH, console.width)
        return cls(console, plain=False, fast=fast)

    @property
    def width(self) -> int:
        return self.console.width

    def scene(self, number: int, title: str, text: str) -> None:
        """Open a scene: its number, its name, and what is about to be seen."""
        self.console.print(
            Rule(f"[bold]{number}[/] · [bold]{title}[/]", style="yellow", align="left")
        )
        self.console.print(Text(text, style="dim"))
        self.say("")
        self.pause(1.2)

    def say(self, *parts: RenderableType) -> None:
        """Print lines; strings may carry rich's markup."""
        for part in parts:
            line = Text.from_markup(part) if isinstance(part, str) else part
            self.console.print(line, soft_wrap=not self.wraps)

    @contextmanager
    def live(self, draw: Callable[[], RenderableType]) -> Iterator[None]:
        """Draw again and again while the block runs; in plain lines, once at its end."""
        if self.plain:
            try:
                yield
            finally:
                self.say(draw())
            return
        with Live(console=self.console, get_renderable=draw, refresh_per_second=_FRAMES_A_SECOND):
            yield

    def pause(self, seconds: float) -> None:
        """Give people time to look, if there are any."""
        if not self.fast and not self.plain:
            time.sleep(seconds)


def _fitting(width: int) -> int:
    return max(NARROWEST_LINES, min(WIDTH, width))


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
