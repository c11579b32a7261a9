"""``warren demo``: the embedded broker at work, to watch."""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="watch the broker at work",
        description="Start a broker and watch it at work for half a minute. Nothing to install, "
        "nothing to type; Ctrl-C ends it at any moment and leaves nothing running.",
    )
    parser.add_argument("--fast", action="store_true", help="no pauses, fewer messages")
    parser.add_argument(
        "--plain", action="store_true", help="plain lines, as when stdout is not a terminal"
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    # Here and not above: rich and the scenes are of no use to the other commands.
    from warren.cli.scenes.stage import Stage

    stage = Stage.open(plain=options.plain, fast=options.fast)
    try:
        with _one_interrupt():
            return _play(stage)
    except KeyboardInterrupt:
        stage.console.show_cursor()
        stage.say("", "[bold]stopped[/]; broker and workers are gone")
        return 130
    except OSError as error:
        stage.console.show_cursor()
        stage.say("", f"[bold red]the demo broke off:[/] {error}")
        return 1


def _play(stage: Any) -> int:
    from warren.cli.scenes import closing, failover, opening, retries, routing, speed
    from warren.cli.scenes.ledger import Ledger
    from warren.server.broker import Broker

    ledger = Ledger()
    before = time.perf_counter()
    with Broker.in_thread() as broker:
        started_ms = (time.perf_counter() - before) * 1000
        opening.play(stage, broker.url, started_ms, ledger)
        routing.play(stage, broker.url, ledger)
        failover.play(stage, broker.url, ledger)
        retries.play(stage, broker.url, ledger)
        speed.play(stage, broker.url, ledger)
        adds_up = closing.play(stage, 6, ledger)
    return 0 if adds_up else 1


@contextmanager
def _one_interrupt() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the block, once: what tidies up after it is not interrupted."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _ENDS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_ENDS = (signal.SIGINT, signal.SIGTERM)
