"""The keys a table has seen, by which it knows a message that came before.

A folder a batch: mostly the keys that were new in it, and each so many batches all that still
count. A batch reads the newest whole folder before it and what came since, never its own: done
again, it sees what it saw.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from warren.pipeline.check import MESSAGE, quoted
from warren.pipeline.folders import Folder, literal
from warren.pipeline.model import TIMES, Deduplicate

_WHOLE, _NEW = "whole", "new"
#: After so many batches, all keys that still count are written in one place.
WHOLE_EVERY = 20
#: Columns of the files. Beside a table's own, which may have these names, they get others.
_AT, _KEY = "at", "key"
_MY_AT, _MY_KEY, _NUMBER = "_at", "_key", "_number"


class Keys:
    """Those of one table."""

    def __init__(self, spark: SparkSession, place: str, rule: Deduplicate, query: str) -> None:
        self._spark, self._rule, self._query = spark, rule, query
        self._folder = Folder(spark, place)

    def first(self, decoded: DataFrame, batch_id: int) -> DataFrame:
        """Only messages whose key has not come within the time that counts."""
        order = (_MY_AT, f"{MESSAGE}.queue", f"{MESSAGE}.offset")
        window = Window.partitionBy(_MY_KEY).orderBy(*order)
        rows = decoded.withColumn(_MY_KEY, self._key()).withColumn(
            _MY_AT, f.col(f"{MESSAGE}.received_at")
        )
        # A key that is not there is no double of another.
        rows = rows.withColumn(_NUMBER, f.row_number().over(window))
        rows = rows.where(f.col(_MY_KEY).isNull() | (f.col(_NUMBER) == 1))
        seen = self._seen(batch_id)
        if seen is not None:
            seen = seen.select(f.col(_KEY).alias("_seen"), f.col(_AT).alias("_seen_at"))
            is_same = f.col(_MY_KEY) == f.col("_seen")
            counts = f.col(_MY_AT) <= self._until(f.col("_seen_at"))
            rows = rows.join(seen, is_same & counts, "left_anti")
        return rows.drop(_MY_KEY, _MY_AT, _NUMBER)

    def keep(self, kept: DataFrame, batch_id: int) -> None:
        """Write down the keys of what was taken; forget what no batch will ask for."""
        new = kept.select(self._key().alias(_KEY), f.col(f"{MESSAGE}.received_at").alias(_AT))
        new = new.where(f.col(_KEY).isNotNull())
        kind = _NEW
        if batch_id % WHOLE_EVERY == WHOLE_EVERY - 1:
            kind, seen = _WHOLE, self._seen(batch_id)
            if seen is not None:
                new = new.unionByName(self._still_counting(seen, new))
        name = _name(self._query, batch_id, kind)
        new.coalesce(1).write.mode("overwrite").parquet(self._folder.path(name))
        if kind == _WHOLE:
            self._forget(batch_id)

    def _still_counting(self, seen: DataFrame, new: DataFrame) -> DataFrame:
        newest = new.agg(f.max(_AT)).head()
        if newest is None or newest[0] is None:
            return seen
        return seen.where(self._until(f.col(_AT)) >= f.lit(newest[0]))

    def _seen(self, batch_id: int) -> DataFrame | None:
        before = [each for each in self._folders() if each[0] < batch_id]
        wholes = [number for number, kind, _ in before if kind == _WHOLE]
        since = max(wholes, default=-1)
        places = [literal(self._folder.path(name)) for number, _, name in before if number >= since]
        return self._spark.read.parquet(*places) if places else None

    def _forget(self, batch_id: int) -> None:
        """All before the whole folder before this one: this batch may be done again."""
        wholes = [n for n, kind, _ in self._folders() if kind == _WHOLE and n < batch_id]
        for number, _, name in self._folders():
            if number < max(wholes, default=0):
                self._folder.delete(name)

    def _folders(self) -> list[tuple[int, str, str]]:
        found = []
        for name in self._folder.names():
            query, _, rest = name.partition("-")
            number, _, kind = rest.partition("-")
            if query == self._query and number.isdigit():
                found.append((int(number), kind, name))
        return sorted(found)

    def _key(self) -> Column:
        """One value for all columns of the key; null if one of them is."""
        columns = [f.col(quoted(name)) for name in self._rule.key]
        known = reduce(lambda one, other: one & other, (each.isNotNull() for each in columns))
        return f.when(known, f.to_json(f.struct(*columns), dict(TIMES)))

    def _until(self, at: Column) -> Column:
        return at + f.make_dt_interval(secs=f.lit(self._rule.watermark_s))


def clear_keys(spark: SparkSession, place: str, query: str, batch_id: int) -> None:
    """Delete the keys of a batch, of whatever table has some below this folder."""
    for table in Folder(spark, place).names():
        for kind in (_WHOLE, _NEW):
            Folder(spark, f"{place}/{table}").delete(_name(query, batch_id, kind))


def _name(query: str, batch_id: int, kind: str) -> str:
    return f"{query}-{batch_id:09d}-{kind}"
