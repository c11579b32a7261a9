"""``warren demo``: the embedded broker and Spark at work, to watch."""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from warren.cli.interrupts import ENDS, one_interrupt
from warren.errors import WarrenError

if TYPE_CHECKING:
    from warren.cli.scenes.stage import Stage
    from warren.server.broker import Broker


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="watch the broker and Spark at work",
        description="Start a broker and watch it at work: with Spark, which makes tables of what "
        "a shop publishes while a worker is killed, or alone. Nothing to type; Ctrl-C ends it at "
        "any moment and leaves nothing running. The exit code is 1 if a message was lost or "
        "doubled, or what Spark made of them is wrong.",
    )
    parser.add_argument(
        "--scene",
        choices=list(SCENES),
        help="shop: workers that share queues, then queues into tables with Spark, half a minute "
        "to two (the default where Spark is installed); group: the workers alone; broker: what the "
        "broker can do, half a minute",
    )
    parser.add_argument("--fast", action="store_true", help="no pauses, fewer messages")
    parser.add_argument(
        "--plain", action="store_true", help="plain lines, as when stdout is not a terminal"
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    # Here and not above: the other commands have no use for rich and the scenes.
    from warren.cli.scenes.stage import Stage

    stage = Stage.open(plain=options.plain, fast=options.fast)
    try:
        with one_interrupt():
            return SCENES[options.scene or _default(stage)](stage)
    except KeyboardInterrupt:
        stage.say("", "[bold]stopped[/]: broker and workers are gone")
        return 130
    except (WarrenError, OSError) as error:
        stage.say("", f"[bold red]the demo broke off:[/] {_escaped(error)}")
        return 1
    finally:
        stage.console.show_cursor()


def _default(stage: Stage) -> str:
    """The shop, if Spark can run here."""
    try:
        _require_spark()
    except WarrenError as error:
        stage.say(
            "[bold]Spark can't run here: this is what the broker can do without it.[/]",
            f"[dim]{_escaped(error)}[/]",
            "",
        )
        return "broker"
    return "shop"


def _escaped(error: Exception) -> str:
    """What it says, with nothing in it that rich takes for markup, such as ``.[spark]``."""
    from rich.markup import escape

    return escape(str(error))


def _require_spark() -> None:
    """Raises SparkMissing or JavaMissing, which say what to do."""
    from importlib.util import find_spec

    from warren.errors import SparkMissing
    from warren.spark.java import java_home

    if find_spec("pyspark") is None:
        raise SparkMissing("there is no module pyspark")
    java_home()


def _shop(stage: Stage) -> int:
    from warren.cli.scenes import sharing, shop
    from warren.cli.scenes.ledger import Ledger

    _require_spark()
    group, ledger = Ledger(), Ledger()
    with _broker() as (broker, started_ms):
        stage.say(f"[dim]A broker started in {started_ms:.0f} ms, in this process:[/] {broker.url}")
        sharing.play(stage, broker.url, 1, group)
        shop.play(stage, broker.url, 2, ledger)
    return 0 if group.adds_up and ledger.adds_up else 1


def _group(stage: Stage) -> int:
    from warren.cli.scenes import sharing
    from warren.cli.scenes.ledger import Ledger

    ledger = Ledger()
    with _broker() as (broker, _):
        sharing.play(stage, broker.url, 1, ledger)
    return 0 if ledger.adds_up else 1


def _broker_alone(stage: Stage) -> int:
    from warren.cli.scenes import closing, failover, opening, retries, routing, speed
    from warren.cli.scenes.ledger import Ledger

    ledger = Ledger()
    with _broker() as (broker, started_ms):
        opening.play(stage, broker.url, started_ms, ledger)
        routing.play(stage, broker.url, ledger)
        failover.play(stage, broker.url, ledger)
        retries.play(stage, broker.url, ledger)
        speed.play(stage, broker.url, ledger)
        before = time.perf_counter()
    stopped_ms = (time.perf_counter() - before) * 1000
    return 0 if closing.play(stage, stopped_ms, ledger) else 1


#: What can be watched, by name.
SCENES: dict[str, Callable[[Stage], int]] = {
    "shop": _shop,
    "group": _group,
    "broker": _broker_alone,
}


@contextmanager
def _broker() -> Iterator[tuple[Broker, float]]:
    """A broker, and how long its start took. Ctrl-C waits while it starts or stops."""
    from warren.server.broker import Broker

    # The picture is drawn in the broker's process, and has to give way faster than usual. As in
    # ``warren broker``, queued messages are no garbage: look for cycles seldom.
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(0.0005)
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    before = time.perf_counter()
    try:
        with Broker.in_thread() as broker:
            started_ms = (time.perf_counter() - before) * 1000
            try:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
                yield broker, started_ms
            finally:
                signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
