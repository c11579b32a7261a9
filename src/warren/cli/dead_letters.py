"""``warren dead-letters``: look at messages that handlers gave up, and send them back to work."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote, urlsplit

from warren.cli import output
from warren.cli.options import JSON, TABLE, add_group
from warren.cli.output import Column, clean
from warren.cli.resources import print_rows
from warren.client import Connection, connect
from warren.errors import ConfigError, ConnectError, GroupError, NotFound
from warren.handlers import dead_letters
from warren.handlers.dead_letters import DeadLetter, Replay

DEFAULT = "amqp://localhost"
#: More than any queue holds.
_ALL = 1 << 40
#: Where the management API is: so far from the AMQP port, by default.
_PORT_DISTANCE = 10_000
_WHERE = "--url amqp://HOST, or WARREN_COORDINATOR,"
T = TypeVar("T")


class NoDeadLetters(GroupError):
    """There is no such queue, or no broker to ask."""

    exit_code: ClassVar[int] = 1


def _when(row: Mapping[str, Any]) -> str | None:
    at = row["at"]
    return None if at is None else datetime.fromtimestamp(at / 1000, UTC).strftime("%F %T")


COLUMNS = (
    Column("queue", "queue"),
    Column("reason", "reason"),
    Column("attempts", "attempts", "number", spare=3),
    Column("at", "last failure", make=_when, spare=2),
    Column("message_id", "message id", spare=4),
    Column("size", "size", "bytes", spare=5),
    Column("error", "error", spare=1),
)


def add_parser(commands: Any) -> None:
    below = add_group(commands, "dead-letters", "look at messages that were given up, replay them")
    parser = _add(below, "list", "list messages that were given up; they stay", _list, TABLE, JSON)
    parser.add_argument(
        "--limit", type=int, default=20, metavar="N", help="the first N (default 20)"
    )
    parser = _add(below, "replay", "send messages back to the queues they came from", _replay, JSON)
    parser.add_argument("--limit", type=int, metavar="N", help="at most N (default: all)")
    parser.add_argument("--from", dest="origin", metavar="QUEUE", help="only those of this queue")
    parser.add_argument("--reason", metavar="REASON", help="only those given up for this reason")
    parser.add_argument("--to", metavar="QUEUE", help="send all of them to this queue")
    parser.add_argument("--dry-run", action="store_true", help="tell what would be sent where")


def _add(
    commands: Any,
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], int],
    *shared: argparse.ArgumentParser,
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}.", parents=[*shared]
    )
    parser.add_argument(
        "group", nargs="?", metavar="GROUP", help="its letters are in warren.dead.GROUP"
    )
    parser.add_argument("--queue", metavar="NAME", help="they are in this queue instead")
    parser.add_argument(
        "--url",
        metavar="URL",
        help="address of the broker, amqp://host (default: WARREN_COORDINATOR if that is one, the "
        f"broker whose management API WARREN_URL names, or {DEFAULT})",
    )
    parser.set_defaults(run=run)
    return parser


# -- commands ------------------------------------------------------------------------------------
def _list(options: argparse.Namespace) -> int:
    queue, limit = _queue(options), _limit(options)

    async def read(connection: Connection) -> tuple[int, list[DeadLetter]]:
        there = await dead_letters.waiting(connection, queue)
        return there, await dead_letters.list_letters(connection, queue, limit)

    there, found = _run(options, read)
    rows = [{"number": number, **_row(each)} for number, each in enumerate(found, 1)]
    print_rows(options, rows, COLUMNS, none=f"no messages are in '{queue}'")
    if not options.json and there > len(found):
        output.say(f"{there - len(found)} more are in '{queue}': --limit")
    return 0


def _replay(options: argparse.Namespace) -> int:
    queue, limit = _queue(options), _limit(options)

    def wanted(letter: DeadLetter) -> bool:
        of_queue = options.origin is None or letter.queue == options.origin
        return of_queue and (options.reason is None or letter.reason == options.reason)

    async def send(connection: Connection) -> Replay:
        return await dead_letters.replay(
            connection, queue, limit=limit, to=options.to, wanted=wanted, dry_run=options.dry_run
        )

    done = _run(options, send)
    if options.json:
        left = [{**_row(letter), "problem": why} for letter, why in done.left]
        output.say_json({"sent": done.sent, "left": left, "dry_run": options.dry_run})
    else:
        _tell(done, queue, "would be sent" if options.dry_run else "sent")
    return 1 if done.left else 0


def _tell(done: Replay, queue: str, verb: str) -> None:
    for target, count in sorted(done.sent.items()):
        output.say(clean(f"{count} {verb} to '{target}'"))
    if not done.sent:
        output.say(f"nothing in '{queue}' {verb if verb != 'sent' else 'was sent'}")
    for letter, why in done.left[:10]:
        output.say(clean(f"one of '{letter.queue or '?'}' stays: {why}"), "red")
    if len(done.left) > 10:
        output.say(f"and {len(done.left) - 10} more", "red")


# -- what they share -----------------------------------------------------------------------------
def _row(letter: DeadLetter) -> dict[str, Any]:
    row: dict[str, Any] = _plain(asdict(letter))
    return row


def _plain(value: Any) -> Any:
    """As JSON can have it: a table of headers may hold times and octets."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str | int | float | None) else str(value)


def _queue(options: argparse.Namespace) -> str:
    if (options.group is None) == (options.queue is None):
        raise ConfigError("GROUP", "give the name of a group, or a queue with --queue", "arguments")
    return str(options.queue or f"warren.dead.{options.group}")


def _limit(options: argparse.Namespace) -> int:
    if options.limit is not None and options.limit < 1:
        raise ConfigError("--limit", f"{options.limit}: 1 or more is needed")
    return _ALL if options.limit is None else int(options.limit)


def _url(options: argparse.Namespace) -> str:
    if options.url:
        return str(options.url)
    named = [os.environ.get(name, "") for name in ("WARREN_COORDINATOR", "WARREN_URL")]
    for url in named:
        if url.startswith("amqp"):
            return url
    return _behind(named[1]) if named[1] else DEFAULT


def _behind(management: str) -> str:
    """The broker of a management API: the same host, ten thousand ports before it."""
    try:
        parts = urlsplit(management)
        usual = 15671 if parts.scheme == "https" else 15672
        port, host = (parts.port or usual) - _PORT_DISTANCE, parts.hostname or "localhost"
    except ValueError:
        port = 0
    if port <= 0:
        raise ConfigError(
            "WARREN_URL", "no broker is known behind it: give --url amqp://HOST", "environment"
        )
    login = parts.netloc.rpartition("@")[0]
    password = os.environ.get("WARREN_PASSWORD")
    if login and ":" not in login and password is not None:
        login += f":{quote(password, safe='')}"
    scheme = "amqps" if parts.scheme == "https" else "amqp"
    return f"{scheme}://{login}{'@' if login else ''}{f'[{host}]' if ':' in host else host}:{port}"


def _run(options: argparse.Namespace, work: Callable[[Connection], Awaitable[T]]) -> T:
    url = _url(options)

    async def run() -> T:
        async with connect(url, name="warren dead-letters", reconnect=False) as connection:
            return await work(connection)

    try:
        return asyncio.run(run())
    except ConnectError as error:
        raise NoDeadLetters(f"{error}: {_WHERE} says where the broker is") from None
    except NotFound:
        queue = _queue(options)
        raise NoDeadLetters(
            f"there is no queue '{queue}': nothing was given up yet, or it goes elsewhere (--queue)"
        ) from None
