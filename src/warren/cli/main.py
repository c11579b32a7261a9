"""The ``warren`` command."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from warren._version import __version__
from warren.errors import WarrenError

if TYPE_CHECKING:
    import argparse

_UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

#: Commands, and the module below ``warren.cli`` that has them, in the order of the help.
MODULES = {
    "broker": "broker",
    "demo": "demo",
    "run": "run",
    "work": "work",
    "group": "group",
    "dead-letters": "dead_letters",
    "overview": "overview",
    "status": "overview",
    "queues": "resources",
    "exchanges": "resources",
    "bindings": "resources",
    "connections": "resources",
    "channels": "resources",
    "consumers": "resources",
    "publish": "messages",
    "get": "messages",
    "purge": "messages",
    "topology": "topology",
    "ledger": "ledger",
    "spark": "spark",
    "policy": "policy",
    "definitions": "definitions",
    "user": "accounts",
    "vhost": "accounts",
    "permission": "accounts",
}


def make_parser(command: str | None = None) -> argparse.ArgumentParser:
    """The parser of the command line; with the name of a command, of what it needs only."""
    from importlib import import_module

    from warren.cli.parser import Parser

    parser = Parser(
        prog="warren",
        description="A RabbitMQ-compatible broker, and commands to look at it or at RabbitMQ.",
    )
    parser.add_argument("--version", action="version", version=f"warren {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    modules = [MODULES[command]] if command in MODULES else list(dict.fromkeys(MODULES.values()))
    for module in modules:
        import_module(f"warren.cli.{module}").add_parser(commands)
    return parser


def main(
    arguments: Sequence[str] | None = None, *, imported: Callable[[], object] = lambda: None
) -> int:
    """Run one command; returns the exit code.

    ``imported`` is called when all is there that the command needs.
    """
    if sys.stdout is None:  # closed by who started us
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - as long as the process
    try:
        given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
        options = make_parser(given[0] if given else None).parse_args(given)
        imported()
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except WarrenError as error:
        print(f"warren: {error}", file=sys.stderr)
        return int(getattr(error, "exit_code", 2))
    except (KeyboardInterrupt, EOFError):  # Ctrl-C anywhere, Ctrl-D at a prompt
        return 130
    except BrokenPipeError:
        # Who read our output has seen enough, as in ``warren queues list | head``.
        _forget_output()
        return 141
    except OSError as error:  # a full disk behind ``> file``
        _forget_output()
        what = "standard output could not be written: " if error.errno in _UNWRITTEN else ""
        print(f"warren: {what}{error.strerror or error}", file=sys.stderr)
        return 1


def _forget_output() -> None:
    """Python would complain at exit when it flushes what nobody reads."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
