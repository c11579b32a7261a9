"""The sink: a table's rows as messages, each confirmed by the broker.

Every task publishes its rows over one connection and succeeds when all of them are confirmed. A
task that Spark runs again publishes again, with the same message ids: at least once, and a reader
that looks at ids can drop what came twice.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from warren.client.blocking_publisher import BlockingPublisher
from warren.errors import (
    AccessRefused,
    ConfigError,
    Nacked,
    NotFound,
    PreconditionFailed,
    RowsNotTaken,
    Unconfirmed,
    Unroutable,
)
from warren.errors.refusals import is_no_permission
from warren.spark.options import SOURCE
from warren.spark.plainly import plainly
from warren.spark.sink.options import SinkOptions, bind_columns, require_address
from warren.spark.sink.rows import RowEncoder

log = logging.getLogger(__name__)
_TELL_EVERY_S = 10.0
#: Is set in workers whose log Spark gathers: then somebody wants to know.
_GATHERED = "PYSPARK_SPARK_SESSION_UUID"


@dataclass
class Published(WriterCommitMessage):
    """What one task has done."""

    partition: int
    rows: int
    seconds: float
    dropped: int = 0
    dead_lettered: int = 0
    nacked: int = 0
    reconnects: int = 0


class _Sink:
    """What the batch and the streaming writer share; pickled to every task."""

    def __init__(self, given: dict[str, str], schema: StructType, *, streaming: bool) -> None:
        self._options = options = SinkOptions.parse(given)
        self._places = bind_columns(schema)
        require_address(options, self._places)
        if streaming and options.write_id is not None:
            problem = "is for df.write: a stream has ids for each of its micro-batches; drop it"
            raise ConfigError("writeId", problem, SOURCE)
        #: Stands for the query where there is none: the same for all attempts of a task.
        self._run_id = uuid.uuid4().hex
        self._part_id = _part_id(options, schema, streaming=streaming)

    def publish(self, batches: Iterator[pa.RecordBatch]) -> Published:
        with self.heard():
            return self._publish(batches)

    def heard(self) -> AbstractContextManager[None]:
        """What is logged meanwhile is heard by whoever asked for it."""
        return _heard(progress=self._options.progress)

    def _publish(self, batches: Iterator[pa.RecordBatch]) -> Published:
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        whole = self._options.write_id or f"{_query(context) or self._run_id}-{_batch(context)}"
        prefix = f"{whole}-{self._part_id}{partition}-"
        encoder = RowEncoder(self._options, self._places, prefix)
        started = time.monotonic()
        name = f"spark {prefix[:-1]}"
        publisher = BlockingPublisher(
            *(self._options.endpoints, self._options.rules),
            name=name,
            patient=_under_way(context),
        )
        with publisher, remedies(self._options):
            _send_all(batches, encoder, publisher, started)
            publisher.finish()
        counts = publisher.counts
        done = Published(
            partition,
            encoder.rows,
            time.monotonic() - started,
            counts.dropped,
            counts.dead_lettered,
            counts.nacked,
            counts.reconnects,
        )
        log.info("task %d: %s", partition, _told([done]))
        return done


def _part_id(options: SinkOptions, schema: StructType, *, streaming: bool) -> str:
    """Tells the writes of one micro-batch apart, and is the same when the batch is done again.

    A function for foreachBatch may write several times. What kind of messages a write sends, and
    where to, is the same again; other options may hold a host's name or a time.
    """
    name = f"{options.write_name}-" if options.write_name else ""
    if streaming:  # it is the one write of its query
        return name
    kind = (options.exchange, options.routing_key, options.constants.get("type"), *schema.names)
    return f"{name}{zlib.crc32(repr(kind).encode()):08x}-"


def _send_all(
    batches: Iterator[pa.RecordBatch],
    encoder: RowEncoder,
    publisher: BlockingPublisher,
    started: float,
) -> None:
    told, rows = started, 0
    for batch in batches:
        if not batch.num_rows:
            continue
        for messages in encoder.encode(batch, publisher.frame_max):
            publisher.publish(messages)
            rows += len(messages)
            now = time.monotonic()
            if now - told >= _TELL_EVERY_S:
                told = now
                log.info(
                    "%d rows so far, %.0f/s, %d unconfirmed",
                    rows,
                    rows / (now - started),
                    publisher.unconfirmed,
                )


def _query(context: TaskContext | None) -> str | None:
    return context.getLocalProperty("sql.streaming.queryId") if context is not None else None


def _batch(context: TaskContext | None) -> str:
    found = context.getLocalProperty("streaming.sql.batchId") if context is not None else None
    return found or "0"


def _under_way(context: TaskContext | None) -> bool:
    """A query has found its broker before, and may wait for it; a write that begins may not."""
    return _query(context) is not None and _batch(context) != "0"


@contextmanager
def remedies(options: SinkOptions) -> Iterator[None]:
    """What the broker refuses, with what to do about it in the words of the sink."""
    try:
        yield
    except Unroutable as error:
        raise RowsNotTaken(
            str(error),
            "bind a queue, or say what becomes of such rows with option onUnroutable (drop, "
            "deadletter) or mandatory=false",
        ) from None
    except Nacked as error:
        raise RowsNotTaken(
            f"exchange {error.exchange!r} leads to a queue that refuses messages, such as those "
            f"with routing key {error.routing_key!r}",
            "make room in it (it is full, and its overflow is reject-publish), or wait until its "
            "node is back",
        ) from None
    except Unconfirmed as error:  # says nothing about these rows
        reason = f"{error.reason}; see what keeps it, or allow it more with confirmTimeoutMs"
        raise Unconfirmed(error.exchange, error.routing_key, reason) from None
    except NotFound as error:
        rules = options.rules
        dead = rules.unroutable == "deadletter" and error.name == rules.dead_letter_exchange
        wrong = "option 'deadLetterExchange'" if dead else "option or column 'exchange'"
        raise RowsNotTaken(str(error), f"declare it, or correct the {wrong}") from None
    except AccessRefused as error:
        if not is_no_permission(error):
            raise
        raise RowsNotTaken(str(error), "grant that user the permission to write to it") from None
    except PreconditionFailed as error:  # all that is checked so are the properties of a message
        own = "user_id" in str(error)
        remedy = "log in as that user, or drop the column user_id" if own else "correct that column"
        raise RowsNotTaken(str(error), remedy) from None


@contextmanager
def _heard(*, progress: bool) -> Iterator[None]:
    """Each process has a log of its own, that of a task and the one that commits; they are Spark's,
    and nobody sets it up there."""
    if progress or _GATHERED in os.environ:
        log.setLevel(logging.INFO)
    if not progress:
        yield
        return
    # Not sys.stderr: where Spark gathers, that is its own, and it has heard of this already.
    handler = logging.StreamHandler(sys.__stderr__)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s"))
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)  # the process goes on to another task


def _told(done: Sequence[Published]) -> str:
    """A sum over tasks; rows that no queue took are not among the confirmed ones."""
    rows = sum(each.rows - each.dropped - each.dead_lettered for each in done)
    seconds = max((each.seconds for each in done), default=0.0)
    more = [
        f"{count} {word}"
        for word in ("dropped", "dead_lettered", "nacked", "reconnects")
        if (count := sum(getattr(each, word) for each in done))
    ]
    rate = rows / seconds if seconds else 0.0
    return ", ".join([f"{rows} rows confirmed in {seconds:.1f} s ({rate:.0f}/s)", *more])


@plainly
class BatchWriter(DataSourceArrowWriter):
    """``df.write.format("rabbitmq").mode("append").save()``"""

    def __init__(self, given: dict[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise ConfigError(
                "mode", 'messages can\'t be overwritten: write.mode("append")', SOURCE
            )
        self._sink = _Sink(given, schema, streaming=False)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Published:
        return self._sink.publish(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        with self._sink.heard():
            log.info("%s", _done(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        with self._sink.heard():
            log.warning("aborted; some rows may have been published: %s", _done(messages))


@plainly
class StreamWriter(DataSourceStreamArrowWriter):
    """``df.writeStream.format("rabbitmq")``

    ``overwrite`` comes with the output mode ``complete``: the whole result is published again.
    """

    def __init__(self, given: dict[str, str], schema: StructType, overwrite: bool) -> None:
        self._sink = _Sink(given, schema, streaming=True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Published:
        return self._sink.publish(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        with self._sink.heard():
            log.info("batch %d: %s", batchId, _done(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        with self._sink.heard():
            log.warning(
                "batch %d aborted; some rows may have been published: %s", batchId, _done(messages)
            )


def _done(messages: Sequence[WriterCommitMessage | None]) -> str:
    return _told([each for each in messages if isinstance(each, Published)])
