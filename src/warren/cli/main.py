"""The ``warren`` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from warren._version import __version__
from warren.cli import broker, demo
from warren.errors import WarrenError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="warren", description="RabbitMQ queues in, Spark tables out."
    )
    parser.add_argument("--version", action="version", version=f"warren {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    broker.add_parser(commands)
    demo.add_parser(commands)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except WarrenError as error:
        print(f"warren: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
