"""Runs a pipeline: checks all of it, starts the query, waits for its end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from warren import errors
from warren.errors import (
    ConfigError,
    PipelineError,
    PipelineStopped,
    QueueMissing,
    WarrenError,
)
from warren.pipeline.batch import Batches
from warren.pipeline.check import Checked, check
from warren.pipeline.count import BatchCount
from warren.pipeline.load import load
from warren.pipeline.load_options import source_options
from warren.pipeline.load_spark import wrong_master
from warren.pipeline.model import Pipeline
from warren.spark import checkpoints
from warren.spark.backlog import Backlog
from warren.spark.connect import remote_of, said_by
from warren.spark.options import SourceOptions
from warren.spark.secrets import hidden
from warren.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

#: How often the broker is asked how much waits.
_BACKLOG_EVERY_S = 1.0
_OURS = re.compile(r"warren\.errors\.(?:\w+\.)*(\w+): (.+)")
#: What Java says of an error, the deepest reason last.
_CAUSE = re.compile(r"(?m)^(?:Caused by)?: ([\w.$]+): (.+)$")
#: What Spark raises, and its bridge to Java.
_SPARKS = (PySparkException, Py4JError, OSError)
_DEFAULT_EXCHANGE = ""
#: Spark would note for every column on which line of Python it was made; here, never a user's.
#: That took half a second of each batch.
_QUICK = {"spark.python.sql.dataFrameDebugging.enabled": "false"}


@dataclass(frozen=True)
class Progress:
    """One batch."""

    batch: int
    count: BatchCount
    #: Messages that wait in the queues, streams aside; None if nobody could tell.
    backlog: int | None


Told = Callable[[Progress], None]


class Run:
    """A pipeline and the session it runs in.

    Usage: ``check()``, which consumes nothing, then ``run()``.
    """

    def __init__(self, pipeline: Pipeline, told: Told = lambda progress: None) -> None:
        self.pipeline = pipeline
        self._told = told
        self._backlog = Backlog(SourceOptions.parse(source_options(pipeline)))
        self._asked_at = 0.0
        self._waiting: int | None = None
        self._spark: SparkSession | None = None
        self._checked: Checked | None = None
        self._batches: Batches | None = None

    @classmethod
    def from_file(
        cls,
        file: str,
        *,
        url: str | None = None,
        master: str | None = None,
        told: Told = lambda progress: None,
    ) -> Run:
        """``url`` and ``master`` are taken instead of the file's.

        Raises:
            PipelineError: the file can't be used; names the line.
            ConfigError: the URL or the master can't.
        """
        if url is not None:
            _require_usable(url)
        if master and (problem := wrong_master(master)):
            raise ConfigError("--master", problem)
        try:
            text = Path(file).read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise PipelineError(file, 0, f"can't be read: {reason}") from None
        pipeline = load(text, file, broker=url)
        return cls(replace(pipeline, master=master) if master else pipeline, told)

    # -- before --------------------------------------------------------------------------------
    def check(self, spark_starts: Callable[[Run], None] = lambda run: None) -> None:
        """Has the broker look at queues and exchanges; then Spark, at schemas and queries.

        Raises:
            PipelineError: a schema, a query or a column that Spark does not take.
            WarrenError: no broker, no such queue, no such exchange.
        """
        self._require_own_spark()
        try:
            self._check_broker()
        finally:
            self._backlog.close()
        spark_starts(self)
        self._spark = self._session()
        self._checked = check(self.pipeline, self._spark)

    def _require_own_spark(self) -> None:
        conf, lines = self.pipeline.conf, self.pipeline.lines
        if remote_of(conf):
            problem = f"{said_by(conf)} asks for Spark Connect, and a pipeline runs in a Spark of "
            problem += "its own: leave that out, and name a cluster as its master"
            raise PipelineError(self.pipeline.file, lines.get("spark", 0), problem)

    def _session(self) -> SparkSession:
        pipeline = self.pipeline
        try:
            conf: dict[str, str | None] = {**_QUICK, **pipeline.conf}
            if not checkpoints.is_here(
                pipeline.checkpoint
            ):  # what is quick is so on this machine alone
                conf.setdefault(checkpoints.SETTING, None)
            return session(pipeline.name, master=pipeline.master, **conf)
        except _SPARKS as error:
            why = self._reason(error)
            if "JAVA_GATEWAY_EXITED" in why:
                why = "Java has ended; what it said stands above"
            line = pipeline.lines.get("spark", 0)
            raise PipelineError(pipeline.file, line, f"Spark can't be started: {why}") from None

    def _check_broker(self) -> None:
        try:
            self._backlog.require()
        except QueueMissing as error:
            problem = (
                f"queues: there is no queue '{error.queue}' in vhost '{error.vhost}': declare it, "
                "or correct its name"
            )
            line = self.pipeline.lines.get("queues", 0)
            raise PipelineError(self.pipeline.file, line, problem) from None
        for name, line in self._exchanges():
            if name != _DEFAULT_EXCHANGE and not self._backlog.exchange_is_there(name):
                problem = f"there is no exchange '{name}': declare it, or correct its name"
                raise PipelineError(self.pipeline.file, line, problem)

    def _exchanges(self) -> list[tuple[str, int]]:
        found = [(each.exchange, each.lines.get("exchange", 0)) for each in self.pipeline.publish]
        quarantine = self.pipeline.quarantine
        if quarantine.exchange is not None:
            found.append((quarantine.exchange, quarantine.lines.get("exchange", 0)))
        return found

    # -- while ---------------------------------------------------------------------------------
    def run(self, *, once: bool = False) -> BatchCount:
        """Until it is stopped, or with ``once`` until all is read that was there at the start.

        Ctrl-C ends it when a batch is done. Returns what was done.

        Raises:
            PipelineStopped: it could not go on.
        """
        if self._checked is None:
            self.check()
        assert self._checked is not None
        self._batches = Batches(self._checked, self._batch_done)
        try:
            self._start(self._batches, once=once).awaitTermination()
        except _SPARKS as error:
            raise self._stopped(error) from error
        finally:
            self._backlog.close()
        return self._batches.total

    @property
    def total(self) -> BatchCount:
        """What was done so far."""
        return self._batches.total if self._batches is not None else BatchCount()

    def stop(self) -> None:
        """Ends the session, if there is one."""
        self._backlog.close()
        if self._spark is not None:
            self._spark.stop()

    def _start(self, batches: Batches, *, once: bool) -> StreamingQuery:
        assert self._spark is not None
        messages = self._spark.readStream.format("rabbitmq").options(
            **hidden(source_options(self.pipeline))
        )
        writer = messages.load().writeStream.foreachBatch(batches).queryName(self.pipeline.name)
        writer = writer.option("checkpointLocation", self.pipeline.checkpoint)
        if once:
            writer = writer.trigger(availableNow=True)
        elif self.pipeline.every_s:
            writer = writer.trigger(
                processingTime=f"{int(self.pipeline.every_s * 1000)} milliseconds"
            )
        return writer.start()

    def _batch_done(self, batch: int, count: BatchCount) -> None:
        now = time.monotonic()
        if now - self._asked_at >= _BACKLOG_EVERY_S:
            self._waiting, self._asked_at = self._backlog.messages(), now
        self._told(Progress(batch, count, self._waiting))

    def _stopped(self, error: Exception) -> PipelineStopped:
        """The error to raise; whether it can go on, the error beneath knows."""
        own = self._own()
        name = type(own).__name__ if isinstance(own, WarrenError) else ""
        if not name and (ours := _OURS.findall(f"{own}\n{error}")):
            name = ours[-1][0]
        goes_on = getattr(getattr(errors, name, None), "goes_on", True)
        return PipelineStopped(self.pipeline.name, self._reason(error), goes_on)

    def _own(self) -> Exception | None:
        return self._batches.error if self._batches is not None else None

    def _reason(self, error: Exception) -> str:
        """The cause, in the words of whoever knows it."""
        text, own = str(error), self._own()
        if isinstance(own, WarrenError):
            return str(own)
        if ours := _OURS.findall(f"{own}\n{text}"):
            return str(ours[-1][1]).rstrip(". ")
        if causes := _CAUSE.findall(str(own or text)):
            kind, said = causes[-1]
            return f"{kind.rpartition('.')[2]}: {said}"
        first = str(own or text).strip().partition("\n")[0]
        return f"{type(own or error).__name__}: {first}"


def _require_usable(url: str) -> None:
    if not url.strip():
        raise ConfigError("--url", "is empty; such as amqp://guest:guest@localhost/")
    try:
        SourceOptions.parse({"uri": url, "queues": "-"})
    except ConfigError as error:
        part = "" if error.option == "uri" else f"{error.option}: "
        raise ConfigError("--url", f"{part}{error.problem}") from None
