"""Options that many commands share, and what follows from them: the server, the vhost."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from warren.client.management import DEFAULT_URL, Management
from warren.errors import ConfigError


def _shared() -> argparse.ArgumentParser:
    return argparse.ArgumentParser(add_help=False)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 86_400:
        raise ValueError
    return value


_seconds.__name__ = "number of seconds"  # what argparse calls it in its complaint

SERVER = _shared()
SERVER.add_argument(
    "--url",
    help=f"management API of the broker (default: WARREN_URL, or {DEFAULT_URL}); a password that "
    "is not in it comes from WARREN_PASSWORD or is asked for",
)
SERVER.add_argument(
    "--timeout-s",
    type=_seconds,
    default=10.0,
    metavar="S",
    help="wait this long for an answer (default 10)",
)
SERVER.add_argument(
    "--ca-file", metavar="FILE", help="trust https servers whose certificate these have signed"
)
SERVER.add_argument(
    "--client-certificate", metavar="FILE", help="PEM file to show to an https server that asks"
)
SERVER.add_argument(
    "--client-key", metavar="FILE", help="PEM file with its key, unless it has it itself"
)

VHOST = _shared()
VHOST.add_argument("--vhost", metavar="NAME", help="virtual host (default /)")

JSON = _shared()
JSON.add_argument("--json", action="store_true", help="JSON for programs")

TABLE = _shared()
TABLE.add_argument(
    "--columns",
    metavar="A,B",
    help="show these columns only: names from the heading, or of fields in the JSON, such as "
    "message_stats.publish",
)
TABLE.add_argument("--sort", metavar="COLUMN", help="sort by this column")
TABLE.add_argument("--reverse", action="store_true", help="sort the other way round")

#: All of them, for the reference page.
COMMON = argparse.ArgumentParser(
    prog="common options",
    add_help=False,
    parents=[SERVER, VHOST, JSON, TABLE],
    description="Commands that talk to a running broker, warren or RabbitMQ, share these; each "
    "names those that it has.",
)

Run = Callable[[argparse.Namespace], int]


def add_group(commands: Any, name: str, text: str) -> Any:
    """``warren NAME …``: a command that has commands below it."""
    parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    return parser.add_subparsers(dest="action", metavar="command", required=True)


def add_command(
    commands: Any,
    name: str,
    text: str,
    run: Run,
    *shared: argparse.ArgumentParser,
    description: str = "",
    **more: Any,
) -> argparse.ArgumentParser:
    """A command that talks to a server."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=description or f"{text[0].upper()}{text[1:]}.",
        parents=[SERVER, *shared],
        **more,
    )
    parser.set_defaults(run=run)
    return parser


def open_api(options: argparse.Namespace) -> Management:
    """The server that the options and the environment name."""
    url = options.url or os.environ.get("WARREN_URL") or DEFAULT_URL
    return Management(
        url,
        password=_password(url),
        timeout_s=options.timeout_s,
        ca_file=options.ca_file,
        certificate=options.client_certificate,
        key=options.client_key,
    )


def _password(url: str) -> str | None:
    """The password if it is not in the URL and not guest's usual one."""
    try:
        parts = urlsplit(url)
        user, in_url = parts.username, parts.password
    except ValueError:  # Management tells what is wrong with it
        return None
    if in_url is not None:
        return None
    known = os.environ.get("WARREN_PASSWORD")
    if known is not None:
        return known
    if user in (None, "", "guest"):
        return None
    if not sys.stdin.isatty():
        raise ConfigError(
            "WARREN_PASSWORD", f"no password for user '{user}', and no terminal to ask at", "login"
        )
    return getpass.getpass(f"Password of {user}: ")


def vhost_of(options: argparse.Namespace) -> str:
    return "/" if options.vhost is None else str(options.vhost)


def new_password(options: argparse.Namespace, user: str) -> str:
    """A password to be set: from standard input, or asked for twice."""
    if options.password_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
        if not password:
            raise ConfigError("--password-stdin", "standard input holds no password")
        return password
    if not sys.stdin.isatty():
        raise ConfigError(
            "password", "no terminal to ask at; give it with --password-stdin", f"user '{user}'"
        )
    password = getpass.getpass(f"New password of {user}: ")
    if not password:
        raise ConfigError("password", "must not be empty", f"user '{user}'")
    if getpass.getpass("The same again: ") != password:
        raise ConfigError("password", "the two are not the same; nothing was changed", user)
    return password


def confirmed(options: argparse.Namespace, question: str) -> bool:
    """Whether to go on with what can't be undone: --yes, or somebody who says so."""
    if options.yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError("--yes", f"needed where nobody can be asked: {question}", "missing")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    print("nothing was changed", file=sys.stderr)
    return False
