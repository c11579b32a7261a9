"""Scene 1: the broker is up, and anybody may connect."""

from __future__ import annotations

import time

from rich import box
from rich.panel import Panel
from rich.table import Table as Grid

from warren._version import __version__
from warren.cli.scenes.ledger import Ledger
from warren.cli.scenes.link import Link
from warren.cli.scenes.stage import Stage


def play(stage: Stage, url: str, started_ms: float, ledger: Ledger) -> None:
    connect_ms, there_and_back_ms, server = _try_out(url, ledger)
    facts = Grid.grid(padding=(0, 2))
    facts.add_column(style="dim", justify="right")
    facts.add_column()
    facts.add_row("started in", f"[bold green]{started_ms:.1f} ms[/], inside this Python process")
    facts.add_row("listens on", f"[bold cyan]{url}[/]")
    facts.add_row("says it is", server)
    facts.add_row("first client", f"connected in {connect_ms:.1f} ms")
    facts.add_row("first message", f"published and back in {there_and_back_ms:.1f} ms")
    facts.add_row("", "")
    facts.add_row("your turn", "any AMQP 0-9-1 client can connect to it while this runs:")
    facts.add_row("", "pika, aio-pika, Celery, whatever you use with RabbitMQ")
    stage.say("")
    stage.say(
        Panel(
            facts,
            title=f"[bold]1 · warren {__version__}[/], a RabbitMQ-compatible broker, starts",
            title_align="left",
            border_style="yellow",
            box=box.ROUNDED if not stage.plain else box.ASCII,
            padding=(1, 2),
        )
    )
    stage.say("")
    stage.pause(2.5)


def _try_out(url: str, ledger: Ledger) -> tuple[float, float, str]:
    """Send a first message to ourselves; the times it took, and the broker's name."""
    account = ledger.open("first message")
    before = time.perf_counter()
    with Link(url) as link:
        connected = time.perf_counter()
        link.queue("hello")
        link.consume("hello", no_ack=True)
        sent = time.perf_counter()
        link.publish("", "hello", b"hello")
        account.sent("hello")
        if link.next() is not None:
            account.came("hello")
        received = time.perf_counter()
        account.left_over += link.delete("hello")
        server = link.server_properties
        name = f"{server['product']} {server['version']} on {server['platform']}"
    return (connected - before) * 1000, (received - sent) * 1000, name
