"""``python -m bench``: how fast warren is, beside a RabbitMQ on the same machine."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from bench import ceiling, machine, report
from bench.brokers import GIVEN, launchers
from bench.load.process import LoadFailed
from bench.model import Scenario, StartFailed
from bench.runner import Outcome, Runner
from bench.scenarios import ALL

BROKERS = ("warren", "rabbitmq")
Options = argparse.Namespace


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return _main(options)
    except (StartFailed, LoadFailed) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: stopped", file=sys.stderr)
        return 130


def _main(options: Options) -> int:
    if options.list:
        print("\n".join(scenario.name for scenario in ALL))
        return 0
    if options.ceiling:
        print(report.as_text(ceiling.table(quick=options.quick)))
        return 0
    if options.last:
        return _show_last(options)
    chosen = [scenario for scenario in ALL if _wanted(scenario, options.only)]
    if not chosen:
        print(f"bench: no scenario is called {options.only}; see --list", file=sys.stderr)
        return 2
    return _measure(chosen, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures warren and RabbitMQ side by side. The full run takes minutes; "
        "the result is kept in bench/results.",
        epilog=f"With {GIVEN}=amqp://... that RabbitMQ is used instead of a private one; its "
        "memory and start are not measured then. Exits with 1 if a goal is missed.",
    )
    add = parser.add_argument
    add("--only", action="append", metavar="NAME", help="scenarios whose name begins so; repeat")
    add("--broker", action="append", choices=BROKERS, help="only this one; repeat")
    add("--rounds", type=_positive, help="rounds on each broker (3; with --quick 1)")
    add("--quick", action="store_true", help="a tenth of the messages: rough, for a first look")
    add("--markdown", action="store_true", help="print the table as Markdown")
    add("--last", action="store_true", help="print the newest kept result, measure nothing")
    add("--no-keep", action="store_true", help="write no file to bench/results")
    add("--ceiling", action="store_true", help="how fast the load alone goes, without a broker")
    add("--list", action="store_true", help="names of the scenarios")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _wanted(scenario: Scenario, only: Sequence[str] | None) -> bool:
    return only is None or any(scenario.name.startswith(name) for name in only)


def _measure(chosen: Sequence[Scenario], options: Options) -> int:
    began = time.monotonic()

    def say(words: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s  {words}", file=sys.stderr, flush=True)

    rounds = options.rounds or (1 if options.quick else 3)
    with launchers(options.broker or BROKERS) as started:
        runner = Runner(started, rounds=rounds, quick=options.quick, say=say)
        outcomes = [runner.run(scenario) for scenario in chosen]
    about = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "versions": runner.versions,
        "rounds": rounds,
        "quick": options.quick,
    }
    _show(report.table(outcomes), about, options)
    if not options.no_keep:
        say(f"kept in {report.keep(outcomes, about)}")
    return _verdict(outcomes)


def _verdict(outcomes: Sequence[Outcome]) -> int:
    missed = any(row.met is False for row in report.rows(outcomes))
    return 1 if missed or any(outcome.failures for outcome in outcomes) else 0


def _show(table: Sequence[Sequence[str]], about: dict[str, Any], options: Options) -> None:
    print(report.as_markdown(table) if options.markdown else report.as_text(table))
    print(f"\n{report.caption(about)}")


def _show_last(options: Options) -> int:
    result = report.last()
    if result is None:
        print("bench: no result is kept yet", file=sys.stderr)
        return 1
    _show(result["table"], result, options)
    return 0
