"""``warren ledger``: look into the ledger of a Spark source, check it, publish from it again."""

from __future__ import annotations

import argparse
import base64
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from warren.cli import output
from warren.cli.options import JSON, confirmed
from warren.cli.output import Column
from warren.errors import ConfigError, LedgerDamaged, NotFound

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
    _command(below, "verify", "read every segment; exit code 1 if one is damaged", _verify)
    replay = _command(below, "replay", "publish messages of a queue again", _replay)
    replay.add_argument("queue", metavar="QUEUE", help="the queue they were read from")
    replay.add_argument(
        "--uri", required=True, metavar="URI", help="such as amqp://guest:guest@localhost/"
    )
    replay.add_argument(
        "--to", metavar="QUEUE", help="the queue they go to, which must exist (default: the same)"
    )
    replay.add_argument("--yes", action="store_true", help="don't ask")
    _range(replay)


def _command(
    commands: Any, name: str, text: str, run: Any, *shared: argparse.ArgumentParser
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}.", parents=list(shared)
    )
    parser.add_argument("path", metavar="PATH", help="the folder or URI of the ledger")
    parser.set_defaults(run=run)
    return parser


def _range(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="first", type=int, default=0, metavar="OFFSET", help="from this offset on"
    )
    parser.add_argument("--until", type=int, metavar="OFFSET", help="before this offset")


# -- reading -------------------------------------------------------------------------------------
def _open(options: argparse.Namespace) -> Ledger:
    try:
        from warren.spark.ledger.ledger import Ledger
    except ImportError as error:
        raise ConfigError("ledger", f"{error}: pip install 'warren[spark]'") from None
    ledger = Ledger.at(options.path)
    if ledger.identity() is None:
        raise ConfigError("PATH", f"there is no ledger at {ledger.place}")
    return ledger


def _segments(ledger: Ledger) -> Iterator[tuple[str, int, bool]]:
    """Queue's stem, start and whether it is settled."""
    for stem, shelf in sorted(ledger.shelves().items()):
        for start in shelf.starts:
            yield stem, start, start in shelf.settled


def _rows_of(ledger: Ledger, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    shelf = ledger.shelves().of(options.queue)
    if not shelf.starts:
        raise ConfigError("QUEUE", f"the ledger holds nothing of queue '{options.queue}'")
    for start in shelf.starts:
        segment = ledger.read(options.queue, start)
        if segment is None or segment.end <= options.first:
            continue
        if options.until is not None and start >= options.until:
            return
        for row in segment.batch.to_pylist():
            if row["offset"] >= options.first and not _beyond(row, options):
                yield row


def _beyond(row: dict[str, Any], options: argparse.Namespace) -> bool:
    return options.until is not None and row["offset"] >= options.until


# -- commands ------------------------------------------------------------------------------------
def _ls(options: argparse.Namespace) -> int:
    from warren.spark.ledger.names import queue_of

    ledger = _open(options)
    rows = []
    for stem, start, settled in _segments(ledger):
        try:
            segment = ledger.read_stem(stem, start)
        except LedgerDamaged:
            rows.append({"queue": queue_of(stem), "start": start, "state": "damaged"})
            continue
        if segment is not None:
            rows.append(_about(queue_of(stem), segment, settled))
    if options.json:
        output.say_json(rows)
    else:
        output.table(rows, _SEGMENTS, none="no segments")
    return 0


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


def _show(options: argparse.Namespace) -> int:
    rows = []
    for row in _rows_of(_open(options), options):
        body: bytes = row["body"]
        try:
            text = body.decode()
        except UnicodeDecodeError:
            text = "base64:" + base64.b64encode(body).decode()
        for name in ("timestamp", "received_at"):
            row[name] = row[name].isoformat() if row[name] is not None else None
        headers = row["headers"]
        row["headers"] = dict(headers) if headers is not None else None
        rows.append({**row, "body": text if options.json else output.clean(text)[:_BODY_SHOWN]})
    if options.json:
        output.say_json(rows)
    else:
        output.table(rows, _ROWS, none="no messages")
    return 0


def _verify(options: argparse.Namespace) -> int:
    ledger = _open(options)
    good = rows = in_doubt = 0
    bad: list[str] = []
    for stem, start, settled in _segments(ledger):
        try:
            segment = ledger.read_stem(stem, start)
        except LedgerDamaged as error:
            bad.append(f"{error.file}: {error.reason}")
            continue
        if segment is not None:
            good, rows, in_doubt = good + 1, rows + segment.rows, in_doubt + (not settled)
    output.say(f"{good} segments, {rows} messages, {in_doubt} in doubt, {len(bad)} damaged")
    for line in bad:
        output.say(line, "red")
    return 1 if bad else 0


def _replay(options: argparse.Namespace) -> int:
    from warren.spark.ledger.replay import replay

    rows = list(_rows_of(_open(options), options))
    to = options.to or options.queue
    if not rows:
        output.say("no messages")
        return 0
    if not confirmed(options, f"Publish {len(rows)} messages to queue '{to}'?"):
        return 1
    try:
        count = replay(rows, options.uri, to)
    except NotFound as error:
        option = "--to" if options.to else "QUEUE"
        remedy = "declare it first (`warren queues declare`), or name another with --to"
        raise ConfigError(option, f"{error}: {remedy}") from None
    output.say(f"{count} messages published to queue '{to}', all confirmed")
    return 0
