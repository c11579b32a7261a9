"""``warren ledger``: look into the ledger of a Spark source, check it, publish from it again."""

from __future__ import annotations

import argparse
import base64
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

from warren.cli import output
from warren.cli.ledger_rows import Rows, looks
from warren.cli.options import JSON, confirmed
from warren.cli.output import Column
from warren.errors import ConfigError, LedgerUnusable, NotFound

if TYPE_CHECKING:
    from warren.spark.ledger.ledger import Ledger
    from warren.spark.ledger.segment import Segment

_SEGMENTS = (
    Column("queue", "queue"),
    Column("start", "start", "number"),
    Column("end", "end", "number"),
    Column("rows", "rows", "number"),
    Column("bytes", "bytes", "bytes"),
    Column("state", "state"),
    Column("written_at", "written at"),
)
_ROWS = (
    Column("offset", "offset", "number"),
    Column("exchange", "exchange"),
    Column("routing_key", "routing key"),
    Column("type", "type"),
    Column("message_id", "message id"),
    Column("body", "body"),
)
_BODY_SHOWN = 60


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "ledger",
        help="the ledger of a Spark source",
        description="Look into the ledger that a Spark source keeps, check it, or publish from it "
        "again. PATH is the option 'ledger' of the query: a folder or a URI.",
    )
    below = parser.add_subparsers(dest="action", metavar="command", required=True)
    _command(below, "ls", "its segments", _ls, JSON)
    show = _command(below, "show", "the messages of a queue", _show, JSON)
    show.add_argument("queue", metavar="QUEUE", help="the queue they were read from")
    _range(show)
    _command(
        below, "verify", "read every segment; exit code 1 if one is damaged or missing", _verify
    )
    replay = _command(below, "replay", "publish messages of a queue again", _replay)
    replay.add_argument("queue", metavar="QUEUE", help="the queue they were read from")
    replay.add_argument(
        "--uri", required=True, metavar="URI", help="such as amqp://guest:guest@localhost/"
    )
    replay.add_argument(
        "--to", metavar="QUEUE", help="the queue they go to, which must exist (default: the same)"
    )
    replay.add_argument("--yes", action="store_true", help="don't ask")
    replay.add_argument(
        "--incomplete",
        action="store_true",
        help="publish what is there, though segments among it are damaged or missing",
    )
    _range(replay)


def _command(
    commands: Any, name: str, text: str, run: Any, *shared: argparse.ArgumentParser
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}.", parents=list(shared)
    )
    parser.add_argument("path", metavar="PATH", help="the folder or URI of the ledger")
    parser.set_defaults(run=_reading(run))
    return parser


def _range(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="first", type=int, default=0, metavar="OFFSET", help="from this offset on"
    )
    parser.add_argument("--until", type=int, metavar="OFFSET", help="before this offset")


# -- reading -------------------------------------------------------------------------------------
def _reading(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """What can't be reached is told to who only reads, not to who runs a query."""

    @wraps(run)
    def read(options: argparse.Namespace) -> int:
        try:
            return run(options)
        except LedgerUnusable as error:
            problem = f"{error.place} can't be read: {error.reason}"
            raise ConfigError("PATH", problem) from None

    return read


def _open(options: argparse.Namespace) -> tuple[Ledger, list[str]]:
    """The ledger, and what is wrong with it as a whole."""
    try:
        from warren.spark.ledger.ledger import Ledger
    except ImportError as error:
        raise ConfigError(
            "ledger", f"{error}: pip install '.[spark]' in the clone of warren"
        ) from None
    ledger = Ledger.at(options.path)
    if ledger.identity() is not None:
        return ledger, []
    if not any(shelf.starts for shelf in ledger.shelves().values()):
        raise ConfigError("PATH", f"there is no ledger at {ledger.place}")
    return ledger, ["ledger.json is missing: put it back, or no query can use this ledger"]


def _tell(wrong: Sequence[str]) -> int:
    """Say what is wrong beside what is shown; the exit code."""
    for line in wrong:
        print(f"warren: {line}", file=sys.stderr)
    return 1 if wrong else 0


# -- commands ------------------------------------------------------------------------------------
def _ls(options: argparse.Namespace) -> int:
    ledger, wrong = _open(options)
    rows = []
    for stem, shelf in sorted(ledger.shelves().items()):
        for look in looks(ledger, stem, shelf):
            if look.segment is not None:
                rows.append(_about(look.queue, look.segment, look.start in shelf.settled))
            else:
                rows.append({"queue": look.queue, "start": look.start, "state": "damaged"})
                wrong.append(look.damage)
    if options.json:
        output.say_json(rows)
    else:
        output.table(rows, _SEGMENTS, none="no segments")
    return _tell(wrong)


def _about(queue: str, segment: Segment, settled: bool) -> dict[str, Any]:
    from datetime import UTC, datetime

    written = datetime.fromtimestamp(segment.written_at, UTC)
    return {
        "queue": segment.queue or queue,
        "start": segment.start,
        "end": segment.end,
        "rows": segment.rows,
        "bytes": segment.body_bytes,
        "state": "settled" if settled else "in doubt",
        "written_at": written.isoformat(timespec="seconds"),
        "run": segment.run,
    }


def _rows(ledger: Ledger, options: argparse.Namespace) -> Rows:
    return Rows(ledger, options.queue, options.first, options.until)


def _show(options: argparse.Namespace) -> int:
    ledger, wrong = _open(options)
    rows = _rows(ledger, options)
    if options.json:
        output.say_json_rows(_shown(row) for row in rows)
    else:
        output.long_table(map(_brief, map(_shown, rows)), _ROWS, none="no messages")
    return _tell(wrong + rows.wrong)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row as JSON can say it."""
    body: bytes = row["body"]
    try:
        row["body"] = body.decode()
    except UnicodeDecodeError:
        row["body"] = "base64:" + base64.b64encode(body).decode()
    for name in ("timestamp", "received_at"):
        row[name] = row[name].isoformat() if row[name] is not None else None
    headers = row["headers"]
    row["headers"] = dict(headers) if headers is not None else None
    return row


def _brief(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "body": output.clean(row["body"])[:_BODY_SHOWN]}


def _verify(options: argparse.Namespace) -> int:
    ledger, wrong = _open(options)
    good = rows = in_doubt = damaged = gaps = 0
    for stem, shelf in sorted(ledger.shelves().items()):
        for look in looks(ledger, stem, shelf):
            wrong += look.wrong()
            gaps, damaged = gaps + bool(look.gap), damaged + bool(look.damage)
            if look.segment is not None:
                good, rows = good + 1, rows + look.segment.rows
                in_doubt += look.start not in shelf.settled
    output.say(
        f"{_counted(good, 'segment')}, {_counted(rows, 'message')}, {in_doubt} in doubt, "
        f"{damaged} damaged, {_counted(gaps, 'gap')}"
    )
    for line in wrong:
        output.say(line, "red")
    return 1 if wrong else 0


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _replay(options: argparse.Namespace) -> int:
    from warren.spark.ledger.replay import replay

    ledger, wrong = _open(options)
    rows = _rows(ledger, options)
    count = rows.count()
    _tell(wrong + rows.wrong)
    if rows.wrong and not options.incomplete:
        raise ConfigError(
            "QUEUE",
            "not all messages are there, so nothing was published: choose a range with --from and "
            "--until, or publish what is there with --incomplete",
        )
    to = options.to or options.queue
    if not count:
        output.say("no messages")
        return 0
    if not confirmed(options, f"Publish {count} messages to queue '{to}'?"):
        return 1
    try:
        published = replay(rows.again(), options.uri, to)
    except NotFound as error:
        option = "--to" if options.to else "QUEUE"
        remedy = "declare it first (`warren queues declare`), or name another with --to"
        raise ConfigError(option, f"{error}: {remedy}") from None
    output.say(f"{published} messages published to queue '{to}', all confirmed")
    return 0
