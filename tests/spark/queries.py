"""Streaming queries as a user writes them: queues to Parquet, with a checkpoint and a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.spark import tables
from tests.support.eventually import eventually

#: Spark gives a source's process ten seconds to start, and has no setting for it: on a machine that
#: does much else, that is not always enough. Such a query is started again, from its checkpoint.
_TOO_SLOW = "Python worker failed to connect back"


@contextmanager
def in_query(spark: SparkSession, query_id: str) -> Iterator[None]:
    """What is done inside looks to Spark like a part of this query's batch 0."""
    context = spark.sparkContext
    context.setLocalProperty("sql.streaming.queryId", query_id)
    try:
        yield
    finally:
        context.setLocalProperty("sql.streaming.queryId", None)


def is_too_slow(error: Exception) -> bool:
    return _TOO_SLOW in str(error)


class Query:
    """One query, run as often as a test likes."""

    def __init__(
        self, spark: SparkSession, uri: str, folder: Path, source: str = "rabbitmq"
    ) -> None:
        self.spark, self.uri, self.folder, self.source = spark, uri, folder, source

    def frame(self, queues: str, **options: Any) -> DataFrame:
        given = {"url": self.uri, "queues": queues, "ledger": str(self.folder / "ledger")}
        return self.spark.readStream.format(self.source).options(**{**given, **options}).load()

    def start(self, frame: DataFrame, **trigger: Any) -> Any:
        writer = frame.writeStream.format("parquet").option("path", str(self.folder / "table"))
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        return writer.trigger(**trigger).start()

    def run(self, queues: str, **options: Any) -> list[dict[str, Any]]:
        """All that is there now; the progress of each batch that had rows."""
        return self.finish(lambda: self.frame(queues, **options))

    def finish(self, load: Callable[[], DataFrame]) -> list[dict[str, Any]]:
        """The same, of what is loaded otherwise."""
        done: list[dict[str, Any]] = []
        for attempt in range(6):
            query = self.start(load(), availableNow=True)
            try:
                query.awaitTermination(120)
                break
            except StreamingQueryException as error:
                if not is_too_slow(error) or attempt == 5:
                    raise
            finally:
                query.stop()
                done += [each for each in query.recentProgress if each["numInputRows"]]
        return done

    @contextmanager
    def running(self, queues: str, **options: Any) -> Iterator[Callable[..., None]]:
        """While it goes on; what it is given waits until something is true."""
        started: list[Any] = []

        def start() -> None:
            frame = self.frame(queues, **options)
            started.append(self.start(frame, processingTime="200 milliseconds"))

        def is_so(check: Callable[[], bool]) -> bool:
            error = started[-1].exception()
            if error is not None:
                if not is_too_slow(error) or len(started) > 5:
                    raise error
                start()
            return check()

        start()
        try:
            yield lambda check: eventually(lambda: is_so(check), within_s=120, every_s=0.1)
        finally:
            started[-1].stop()

    def numbers(self, queue: str | None = None) -> list[int]:
        """What is in the table, in the order of offsets."""
        return tables.numbers(self.folder / "table", queue)
