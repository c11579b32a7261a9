"""The keys a table has seen, by which it knows a message that came before.

A folder a batch: mostly the keys that were new in it, and each so many batches all that still
count. A batch reads the newest whole folder before it and what came since, never its own: done
again, it sees what it saw.
"""

from __future__ import annotations

from datetime import timedelta
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
_ORDER = (_MY_AT, f"{MESSAGE}.queue", f"{MESSAGE}.offset")


class Keys:
    """Those of one table."""

    def __init__(self, spark: SparkSession, place: str, rule: Deduplicate, query: str) -> None:
        self._spark, self._rule, self._query = spark, rule, query
        self._folder = Folder(spark, place)

    def first(self, decoded: DataFrame, batch_id: int, lasts: timedelta) -> DataFrame:
        """Only messages whose key was not taken within the time that counts before them.

        They are looked at in the order in which they came, so it is the same however they were cut
        into batches. ``lasts``: from the first message of this batch to its last.
        """
        rows = decoded.withColumn(_MY_KEY, self._key()).withColumn(
            _MY_AT, f.col(f"{MESSAGE}.received_at")
        )
        seen = self._seen(batch_id)
        if seen is not None:
            seen = seen.select(f.col(_KEY).alias("_seen"), f.col(_AT).alias("_seen_at"))
            is_same = f.col(_MY_KEY) == f.col("_seen")
            counts = f.col(_MY_AT) <= self._until(f.col("_seen_at"))
            rows = rows.join(seen, is_same & counts, "left_anti")
        if lasts.total_seconds() <= self._rule.watermark_s:
            rows = self._first_of_each(rows)
        else:
            rows = self._one_by_one(rows)
        return rows.drop(_MY_KEY, _MY_AT)

    @staticmethod
    def _first_of_each(rows: DataFrame) -> DataFrame:
        """Of a batch that is over before a key may come again."""
        window = Window.partitionBy(_MY_KEY).orderBy(*_ORDER)
        rows = rows.withColumn(_NUMBER, f.row_number().over(window))
        # A key that is not there is no double of another.
        return rows.where(f.col(_MY_KEY).isNull() | (f.col(_NUMBER) == 1)).drop(_NUMBER)

    def _one_by_one(self, rows: DataFrame) -> DataFrame:
        """Of each key the first message, the next whose time is over after that, and so on."""
        at, queue, offset = (f.col(name) for name in _ORDER)
        place = f.struct(at.alias("at"), queue.alias("queue"), offset.alias("offset"))
        places = rows.where(f.col(_MY_KEY).isNotNull()).groupBy(_MY_KEY)
        in_order = places.agg(f.sort_array(f.collect_list(place)).alias("all"))

        def taken(so_far: Column, each: Column) -> Column:
            last = f.element_at(so_far, -1)["at"]
            is_new = (f.size(so_far) == 0) | (each["at"] > self._until(last))
            return f.when(is_new, f.concat(so_far, f.array(each))).otherwise(so_far)

        none = f.slice("all", 1, f.lit(0))
        kept = in_order.select(f.explode(f.aggregate("all", none, taken)).alias("_kept"))
        is_kept = (queue == f.col("_kept.queue")) & (offset == f.col("_kept.offset"))
        without_key = rows.where(f.col(_MY_KEY).isNull())
        return rows.join(kept, is_kept, "left_semi").unionByName(without_key)

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
