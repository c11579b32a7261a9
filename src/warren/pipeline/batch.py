"""What one micro-batch does: messages to rows, rows to tables, and the count of both.

Every batch writes into folders of its own, named after the query and the batch, and overwrites what
it finds there. The source gives a batch the same rows again, so a batch that is done again leaves
the same tables: each message is in its table once. The file may have been edited in between: what
the attempt before wrote is deleted, wherever this one would not overwrite it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from warren.pipeline.check import BATCH, MESSAGE, Checked, as_messages, query, quoted, shaped
from warren.pipeline.count import BatchCount, TableCount
from warren.pipeline.decode import ENCODING, TABLE
from warren.pipeline.folders import Folder
from warren.pipeline.keys import Keys, clear_keys
from warren.pipeline.model import OWN, TIMES, Files, Publish, Table
from warren.pipeline.quarantine import as_letters, as_rows, not_taken, was_in_quarantine
from warren.pipeline.rows import IGNORED, NAMES, REASON, decoded, row_of, statistics

log = logging.getLogger(__name__)

#: So many messages make another file of a table's batch.
_ROWS_A_FILE = 200_000


class Batches:
    """Called by Spark with each micro-batch."""

    def __init__(self, checked: Checked, told: Callable[[int, BatchCount], None]) -> None:
        self._checked, self._told = checked, told
        self._pipeline = checked.pipeline
        self.total = BatchCount()
        #: The first batch of a run is the only one that an earlier run may have begun.
        self._is_first = True
        #: Why the last batch failed, in its own words and not in Spark's.
        self.error: Exception | None = None

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        try:
            self._do(batch, batch_id)
        except Exception as error:
            self.error = error
            raise

    def _do(self, batch: DataFrame, batch_id: int) -> None:
        started = time.monotonic()
        is_first, self._is_first = self._is_first, False
        count = _Batch(self._checked, batch, batch_id).run(may_be_again=is_first)
        if count.drained:
            count.seconds, count.batches = time.monotonic() - started, 1
            names = [table.name for table in self._pipeline.tables]
            self.total.add(count)
            for each in (count, self.total):
                each.put_in_order(names)
            self._told(batch_id, count)


class _Batch:
    def __init__(self, checked: Checked, messages: DataFrame, batch_id: int) -> None:
        self._pipeline, self._schemas = checked.pipeline, checked.schemas
        self._messages, self._id = messages, batch_id
        self._spark: SparkSession = messages.sparkSession
        query_id = self._spark.sparkContext.getLocalProperty("sql.streaming.queryId") or "batch"
        self._query = query_id.partition("-")[0]
        self._folder = f"{BATCH}={self._query}-{batch_id:09d}"
        self._count = BatchCount()
        #: Of each table, from its first message to its last.
        self._lasts: dict[str, timedelta] = {}
        self._cached: list[DataFrame] = []

    def run(self, *, may_be_again: bool) -> BatchCount:
        rows = decoded(self._messages, self._pipeline, self._schemas)
        try:
            self._tally(self._cache(rows))
            if self._count.drained:
                if may_be_again:
                    self._clear()
                self._write_all(rows)
        finally:
            for frame in self._cached:
                frame.unpersist()
        return self._count

    def _cache(self, rows: DataFrame) -> DataFrame:
        self._cached.append(rows.persist())
        return rows

    def _clear(self) -> None:
        """Delete what an attempt before this one has left, also in tables that the file had."""
        pipeline = self._pipeline
        beneath = Folder(self._spark, pipeline.folder)
        places = {table.files.path for table in pipeline.tables}
        places |= {pipeline.quarantine.files.path}
        if pipeline.statistics is not None:
            places.add(pipeline.statistics.path)
        for place in places:
            Folder(self._spark, place).delete(self._folder)
        for place in {beneath.path(name) for name in beneath.names() if name not in OWN} - places:
            try:
                Folder(self._spark, place).delete(self._folder)
            except Py4JError as error:  # somebody else's, which is nobody's fault here
                log.info("can't look into %s: %s", place, error)
        clear_keys(self._spark, pipeline.keys, self._query, self._id)

    def _tally(self, rows: DataFrame) -> None:
        # What is behind the colon may be different in each message.
        is_packed = f.col(REASON).startswith(f"{ENCODING}: ")
        head = f.when(is_packed, f.substring_index(REASON, ":", 2))
        head = head.otherwise(f.substring_index(REASON, ":", 1))
        at = f.col("received_at")
        found = rows.groupBy(TABLE, head.alias(REASON)).agg(
            f.count(f.lit(1)), f.max(at) - f.min(at)
        )
        for table, reason, number, lasts in found.collect():
            self._count.drained += number
            if reason is not None:
                self._count.quarantined += number
                self._count.reasons[reason] += number
            elif table == IGNORED:
                self._count.ignored += number
            else:
                self._count.tables[table] = TableCount(messages=number)
                self._lasts[table] = lasts

    def _write_all(self, rows: DataFrame) -> None:
        for table in self._pipeline.tables:
            # A table that took nothing writes nothing, and its queries see no rows.
            frame = self._of_messages(rows, table) if table.schema else self._derived(table)
            frame.createOrReplaceTempView(table.name)
        self._quarantine(rows.where(f.col(REASON).isNotNull()))
        for publish in self._pipeline.publish:
            self._publish(publish)
        if self._pipeline.statistics is not None:
            self._save(statistics(rows), self._pipeline.statistics, 1)

    # -- tables --------------------------------------------------------------------------------
    def _of_messages(self, rows: DataFrame, table: Table) -> DataFrame:
        schema = self._schemas[table.name]
        mine = rows.where((f.col(TABLE) == table.name) & f.col(REASON).isNull())
        fields = [row_of(table.name)[name].alias(name) for name in schema.names]
        messages = mine.select(*fields, f.struct(*NAMES).alias(MESSAGE))
        count = self._count.tables.get(table.name)
        if count is None:
            return shaped(messages, table, self._run)
        if table.deduplicate is not None:
            return self._without_doubles(messages, table, count)
        return self._written(shaped(messages, table, self._run), table, count)

    def _without_doubles(self, messages: DataFrame, table: Table, count: TableCount) -> DataFrame:
        assert table.deduplicate is not None
        place = f"{self._pipeline.keys}/{table.name}"
        keys = Keys(self._spark, place, table.deduplicate, self._query)
        # To find doubles, rows are mixed; they are put in order again, queue by queue.
        first = keys.first(messages, self._id, self._lasts[table.name]).coalesce(1)
        first = first.sortWithinPartitions(f"{MESSAGE}.queue", f"{MESSAGE}.offset")
        count.doubles = count.messages - self._cache(first).count()
        frame = self._written(shaped(first, table, self._run), table, count)
        keys.keep(first, self._id)
        return frame

    def _derived(self, table: Table) -> DataFrame:
        count = self._count.tables.setdefault(table.name, TableCount())
        return self._written(self._run(table.sql or ""), table, count)

    def _written(self, rows: DataFrame, table: Table, count: TableCount) -> DataFrame:
        count.rows = self._save(rows, table.files, 1 + count.messages // _ROWS_A_FILE)
        count.written = count.messages - count.doubles if table.sql else count.rows
        return rows

    def _save(self, rows: DataFrame, files: Files, parts: int) -> int:
        """Overwrite what this batch may have written before; how many rows it has now."""
        seen = Observation()
        rows = rows.coalesce(parts).observe(seen, f.count(f.lit(1)).alias("rows"))
        writer = rows.write.mode("overwrite").format(files.format)
        writer.options(**TIMES).options(**files.options)  # whatever the case, the later one counts
        if files.partition_by:
            writer = writer.partitionBy(*files.partition_by)
        writer.save(f"{files.path}/{self._folder}")
        return int(seen.get["rows"])

    def _run(self, sql: str) -> DataFrame:
        return query(self._spark, sql)

    # -- messages ------------------------------------------------------------------------------
    def _quarantine(self, bad: DataFrame) -> None:
        if not self._count.quarantined:
            return
        place = self._pipeline.quarantine
        kept = bad if place.keeps_all else bad.where(was_in_quarantine())
        if place.exchange is not None and not self._sent_off(bad.where(~was_in_quarantine())):
            kept = bad
        if place.keeps_all or not kept.isEmpty():
            self._save(as_rows(kept), place.files, 1)

    def _sent_off(self, bad: DataFrame) -> bool:
        """Did the exchange take these messages, all of them?"""
        place = self._pipeline.quarantine
        try:
            self._send(as_letters(bad, place), place.options)
        except (PySparkException, Py4JError) as error:
            reason = not_taken(error)
            if reason is None:
                raise
            log.warning("quarantine: %s; that of this batch is in %s", reason, place.files.path)
            return False
        return True

    def _publish(self, publish: Publish) -> None:
        rows = as_messages(self._run(publish.sql)).coalesce(1)
        # Done again, the batch must give each message the same id: so they need an order.
        rows = rows.sortWithinPartitions(*[_sortable(name) for name in rows.columns])
        seen = Observation()
        rows = rows.observe(seen, f.count(f.lit(1)).alias("rows"))
        self._send(rows, publish.options)
        self._count.published[publish.name] += int(seen.get["rows"])

    def _send(self, rows: DataFrame, options: dict[str, str]) -> None:
        writer = rows.write.format("rabbitmq").options(**self._pipeline.connection)
        writer.options(**options).mode("append").save()


def _sortable(column: str) -> Column:
    """A message's column as Spark can sort it: a map has no order of its own."""
    found = f.col(quoted(column))
    return f.array_sort(f.map_entries(found)) if column.lower() == "headers" else found
