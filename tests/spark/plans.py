"""All that Spark tells of a query from a queue to a queue; as a program, in a plain session.

``python -m tests.spark.plans FOLDER OPTION VALUE OPTION VALUE …``
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.spark.queries import is_too_slow


def show_plans(spark: SparkSession, folder: Path, given: dict[str, str]) -> None:
    """Run the query once, from queue ``in`` to queue ``out``, and print its plans."""
    reader = spark.readStream.format("rabbitmq").options(**given)
    rows = reader.options(queues="in", ledger=str(folder / "ledger")).load().select("body")
    for attempt in range(6):
        try:
            _run(rows, folder, given)
            break
        except StreamingQueryException as error:
            if not is_too_slow(error) or attempt == 5:
                raise


def _run(rows: DataFrame, folder: Path, given: dict[str, str]) -> None:
    writer = rows.writeStream.format("rabbitmq").options(**given).option("routingKey", "out")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    rows.explain(extended=True)
    query.explain(extended=True)
    print(query._jsq.streamingQuery().lastExecution().toString())


if __name__ == "__main__":
    plain = SparkSession.builder.master("local[1]").getOrCreate()
    words = sys.argv[2:]
    show_plans(plain, Path(sys.argv[1]), dict(zip(words[::2], words[1::2], strict=True)))
