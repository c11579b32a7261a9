"""Reading queues with one call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warren.spark.secrets import hidden

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_queues(
    spark: SparkSession,
    queues: str | Sequence[str],
    *,
    uri: str | None = None,
    ledger: str | None = None,
    stream: bool = True,
    **options: Any,
) -> DataFrame:
    """Queues as a table: a streaming one or, with ``stream=False``, what is in them now.

    ``queues`` are names or patterns; without a ``uri`` they are of this machine's broker.
    ``options`` are those of ``format("rabbitmq")``, in Spark's
    spelling or Python's (``max_messages_per_trigger=10_000``).
    """
    names = queues if isinstance(queues, str) else ",".join(queues)
    given: dict[str, Any] = {"uri": uri, "queues": names, "ledger": ledger}
    given |= {_camel(name): value for name, value in options.items()}
    reader = (spark.readStream if stream else spark.read).format("rabbitmq")
    for name, value in hidden(given).items():
        if value is not None:
            reader = reader.option(name, str(value).lower() if isinstance(value, bool) else value)
    return reader.load()


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
