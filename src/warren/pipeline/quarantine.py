"""Messages that can't be read, as rows and as messages again.

Nothing that a publisher sends may keep them from being put away: a pipeline that could not do it
would stop at the same message whenever it is started.
"""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from warren.pipeline.decode import TABLE
from warren.pipeline.model import Quarantine
from warren.pipeline.rows import NAMES, REASON

#: Tells why a message was sent to a quarantine.
REASON_HEADER = "x-warren-reason"
#: Of a reason, what is worth its place among the headers.
_REASON_CHARS = 500
#: What a message loses when it is sent on, as RabbitMQ does with dead letters: it would expire
#: again; and its user is not the one who sends it now.
_NOT_SENT_ON = ("exchange", "expiration", "user_id")
#: What the sink says of rows, as Spark passes it on. A remedy, which is for who writes them with
#: options, stands behind the last colon.
_NOT_TAKEN = re.compile(r"warren\.errors[\w.]*\.(?:RowsNotTaken: (.+): |RowRefused: (.+))")


def was_in_quarantine() -> Column:
    """Whether a message has come from one: it would be sent round and round."""
    return f.coalesce(f.map_contains_key("headers", f.lit(REASON_HEADER)), f.lit(False))


def as_rows(bad: DataFrame) -> DataFrame:
    """For the table."""
    return bad.select(f.col(REASON).alias("reason"), f.col(TABLE).alias("table"), *NAMES)


def as_letters(bad: DataFrame, place: Quarantine) -> DataFrame:
    """For the exchange: the messages with their reason, in an order."""
    # The reason comes first, for headers that leave no room are left out from the end.
    reason = f.create_map(f.lit(REASON_HEADER), f.left(REASON, f.lit(_REASON_CHARS)))
    headers = f.coalesce(f.col("headers"), f.create_map().cast("map<string,string>"))
    own = f.map_filter(headers, lambda name, _: name != REASON_HEADER)
    rows = bad.withColumn("headers", f.map_concat(reason, own)).select(*NAMES).drop(*_NOT_SENT_ON)
    if place.routing_key is not None:
        rows = rows.drop("routing_key")
    # Done again, the batch must give each message the same id: so they need an order.
    return rows.coalesce(1).sortWithinPartitions("queue", "offset")


def not_taken(error: Exception) -> str | None:
    """Why the broker or the sink does not take a message; None if something else is wrong."""
    found = _NOT_TAKEN.search(str(error))
    return next(filter(None, found.groups())) if found else None
