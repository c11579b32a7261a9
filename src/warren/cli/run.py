"""``warren run pipeline.yaml``: queues to tables, as a file says."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from warren.cli import output
from warren.cli.output import Column, clean
from warren.errors import SparkMissing

if TYPE_CHECKING:
    from warren.pipeline.count import BatchCount
    from warren.pipeline.run import Progress, Run


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "run",
        help="run a pipeline: queues to tables, as a file says",
        description="Read queues into tables with Spark, each message once, as a file says. Goes "
        "on until Ctrl-C, which ends it when a batch is done; the next run goes on from there.",
    )
    parser.add_argument("file", metavar="FILE", help="the pipeline, in YAML")
    parser.add_argument(
        "--once", action="store_true", help="end when all is read that was there at the start"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="only look: at the file, its schemas and queries, the queues and exchanges",
    )
    parser.add_argument("--url", help="broker to use instead of the one the file names")
    parser.add_argument("--master", help="Spark to use instead of the one the file names")
    parser.add_argument("--json", action="store_true", help="JSON for programs, a line a batch")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    try:
        from warren.pipeline.run import Run
    except ImportError as error:
        raise SparkMissing(str(error)) from None
    teller = _JsonTeller() if options.json else _Teller()
    run = Run.from_file(options.file, url=options.url, master=options.master, told=teller.batch)
    try:
        run.check(teller.begins)
        if options.check:
            teller.checked(run)
            return 0
        teller.ready(run, once=options.once)
        try:
            with _ctrl_c_told():
                run.run(once=options.once)
        finally:
            teller.ended(run)
        return 0 if run.total.adds_up else 1
    finally:
        run.stop()


@contextmanager
def _ctrl_c_told() -> Iterator[None]:
    """Prints what the session logs of Ctrl-C: the batch that runs may take a while."""
    log = logging.getLogger("warren.spark.interrupt")
    level, handler = log.level, _Printed(logging.INFO)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


class _Printed(logging.Handler):
    """Log lines as words of the command, on a line of their own: a terminal echoes ``^C``."""

    def emit(self, record: logging.LogRecord) -> None:
        begin = "\n" if sys.stderr.isatty() else ""
        print(f"{begin}{record.getMessage()}", file=sys.stderr, flush=True)


class _Teller:
    """Tells people."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def begins(self, run: Run) -> None:
        """The broker is there and has all that is needed."""
        output.say(f"pipeline '{clean(run.pipeline.name)}': starting Spark", "dim")

    def checked(self, run: Run) -> None:
        tables = ", ".join(table.name for table in run.pipeline.tables)
        output.say(f"{run.pipeline.file} is good: {_queues(run)} into {tables}")

    def ready(self, run: Run, *, once: bool) -> None:
        until = "until all is read that is there" if once else "until Ctrl-C"
        output.say(f"reading {_queues(run)} {until}")

    def batch(self, progress: Progress) -> None:
        count = progress.count
        backlog = "?" if progress.backlog is None else f"{progress.backlog:,}"
        parts = [f"{name} {each.rows:,}" for name, each in count.tables.items()]
        if count.quarantined:
            parts.append(f"quarantined {count.quarantined:,}")
        if count.ignored:
            parts.append(f"ignored {count.ignored:,}")
        parts += [f"published {name} {rows:,}" for name, rows in count.published.items()]
        output.say(
            f"batch {progress.batch}: {count.drained:,} messages in {count.seconds:.1f} s "
            f"({count.drained / count.seconds:,.0f}/s), backlog {backlog}: {', '.join(parts)}"
        )

    def ended(self, run: Run) -> None:
        total = run.total
        if total.drained:
            output.say("")
            self._table(total)
            for reason, number in total.reasons.most_common(10):
                output.say(f"quarantined: {number:,} {clean(reason)}")
        seconds = time.monotonic() - self._started
        batches = "1 batch" if total.batches == 1 else f"{total.batches:,} batches"
        output.say(f"{_sum(total)}, in {batches} and {seconds:.0f} s", "bold")

    def _table(self, total: BatchCount) -> None:
        rows = [
            {"table": name, "messages": each.messages, "doubles": each.doubles, "rows": each.rows}
            for name, each in total.tables.items()
        ]
        columns = [Column("table", "table")]
        columns += [Column(name, name, "number") for name in ("messages", "doubles", "rows")]
        output.table(rows, columns)


def _sum(total: BatchCount) -> str:
    """The equation; it has a word for each message."""
    doubles = f" + {total.doubles:,} doubles" if total.doubles else ""
    ignored = f" + {total.ignored:,} ignored" if total.ignored else ""
    verdict = "it adds up" if total.adds_up else "IT DOES NOT ADD UP"
    return (
        f"{total.drained:,} drained = {total.written:,} written{doubles} + "
        f"{total.quarantined:,} quarantined{ignored}: {verdict}"
    )


def _queues(run: Run) -> str:
    return clean(", ".join(run.pipeline.queues))


class _JsonTeller(_Teller):
    """Tells programs."""

    def begins(self, run: Run) -> None: ...

    def ready(self, run: Run, *, once: bool) -> None: ...

    def checked(self, run: Run) -> None:
        _line("good", tables=[table.name for table in run.pipeline.tables])

    def batch(self, progress: Progress) -> None:
        _line("batch", batch=progress.batch, backlog=progress.backlog, **progress.count.as_json())

    def ended(self, run: Run) -> None:
        _line("ended", adds_up=run.total.adds_up, **run.total.as_json())


def _line(event: str, **facts: Any) -> None:
    print(json.dumps({"event": event, **facts}), flush=True)
