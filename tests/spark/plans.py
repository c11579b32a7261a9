"""All that Spark tells of reading and writing queues, and all that it keeps; as a program.

``python -m tests.spark.plans plain|warren FOLDER OPTION VALUE OPTION VALUE …``
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import warren.spark
from tests.spark.queries import is_too_slow


def show_plans(spark: SparkSession, folder: Path, given: Mapping[str, str]) -> None:
    """Run a query once, from queue ``in`` to queue ``out``, and print its plans and progress."""
    reader = spark.readStream.format("rabbitmq").options(**given)
    rows = reader.options(queues="in", ledger=str(folder / "ledger")).load().select("body")
    for attempt in range(6):
        try:
            _run(rows, folder, given)
            break
        except StreamingQueryException as error:
            if not is_too_slow(error) or attempt == 5:
                raise


def _run(rows: DataFrame, folder: Path, given: Mapping[str, str]) -> None:
    writer = rows.writeStream.format("rabbitmq").options(**given).option("routingKey", "out")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    rows.explain(extended=True)
    query.explain(extended=True)
    print(query._jsq.streamingQuery().lastExecution().toString())
    print(query.recentProgress)


def show_refusals(spark: SparkSession, folder: Path, given: Mapping[str, str]) -> None:
    """Write and read with a password in ``uri``, which sessions of Spark's own don't hide."""
    to = {"uri": given["url"], "routingKey": "out"}
    rows = spark.range(1).selectExpr("string(id) AS body")
    _show_refusal(rows.write.format("rabbitmq").options(**to).mode("append").save)

    def begin(rows: DataFrame, name: str, sink: str, **options: str) -> None:
        place = str(folder / "refused" / name)
        writer = rows.writeStream.format(sink).option("checkpointLocation", place)
        writer.options(**options).start().awaitTermination(60)

    rate = spark.readStream.format("rate").load().selectExpr("string(value) AS body")
    _show_refusal(lambda: begin(rate, "sink", "rabbitmq", **to))
    reader = spark.readStream.format("rabbitmq").schema("body BINARY").option("queues", "in")
    loaded = reader.options(uri=given["url"], ledger=str(folder / "refused" / "ledger")).load()
    _show_refusal(lambda: begin(loaded, "source", "noop"))


def _show_refusal(way: Callable[[], object]) -> None:
    try:
        way()
    except PySparkException as error:
        print("refused:", error)
    else:
        raise AssertionError("was not refused")


def show_views(spark: SparkSession, folder: Path, given: Mapping[str, str]) -> None:
    """Write and read by views of SQL, and fail to."""
    told = ", ".join(f"{name} '{value}'" for name, value in given.items())
    for name, options in {
        "sent": f"(body STRING, routing_key STRING) USING rabbitmq OPTIONS ({told})",
        "got": f"USING rabbitmq OPTIONS ({told}, queues 'in', ledger '{folder}/views')",
        "missed": f"USING rabbitmq OPTIONS ({told}, queues 'no', ledger '{folder}/views')",
    }.items():
        spark.sql(f"CREATE TEMPORARY VIEW {name} {options}")
    spark.sql("INSERT INTO sent VALUES ('by a view', 'in')")
    spark.sql("SELECT string(body) FROM got").show()
    spark.sql("SELECT * FROM got").explain(extended=True)
    _show_failure(spark, "SELECT * FROM missed")


def show_tables(spark: SparkSession, given: Mapping[str, str]) -> None:
    """Fail to write and read by tables of SQL, where Spark hides a password of that name only."""
    url = given["url"].replace(f":{given['password']}@", "@")
    told = f"url '{url}', password '{given['password']}'"
    _show_failure(spark, f"CREATE TABLE unknown USING rabbitmq OPTIONS ({told})")
    columns = "body STRING, routing_key STRING"
    spark.sql(f"CREATE TABLE known ({columns}) USING rabbitmq OPTIONS ({told})")
    _show_failure(spark, "INSERT INTO known VALUES ('by a table', 'in')")
    _show_failure(spark, "SELECT body FROM known")
    spark.sql("DESCRIBE EXTENDED known").show(truncate=False)
    spark.sql("DROP TABLE known")


def _show_failure(spark: SparkSession, statement: str) -> None:
    try:
        spark.sql(statement).show()
    except PySparkException as error:
        print(error)
    else:
        raise AssertionError(f"did not fail: {statement}")


def main(kind: str, folder: Path, given: Mapping[str, str]) -> None:
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    if kind == "warren":
        spark = warren.spark.session(master="local[1]", **conf)
    else:
        spark = SparkSession.builder.master("local[1]").config(map=conf).getOrCreate()
    show_plans(spark, folder, given)
    show_refusals(spark, folder, given)
    show_views(spark, folder, given)
    show_tables(spark, given)
    spark.stop()


if __name__ == "__main__":
    words = sys.argv[3:]
    main(sys.argv[1], Path(sys.argv[2]), dict(zip(words[::2], words[1::2], strict=True)))
