"""What a driver on the cluster can be asked to do; runs as a process of its own."""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import warren.spark
from tests.support.spark_cluster import EXECUTOR_ENV, quick_java
from warren.pipeline.run import Run


def write_numbers(spark: SparkSession, *, uri: str, queue: str, count: int) -> dict[str, Any]:
    """Publish numbers from two tasks, which the scheduler puts on two executors."""
    rows = spark.range(0, count, 1, 2).selectExpr("cast(id as string) as body")
    rows.write.format("rabbitmq").option("uri", uri).option("routingKey", queue).mode(
        "append"
    ).save()
    return {}


def read_queues(
    spark: SparkSession, *, uri: str, queues: list[str], folder: str, **options: Any
) -> dict[str, Any]:
    """Stream all that is in the queues into Parquet; the rows as numbers, by queue and offset."""
    options.setdefault("ledger", f"{folder}/ledger")
    rows = warren.spark.read_queues(spark, queues, uri=uri, **options)
    query = (
        rows.writeStream.format("parquet")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .option("path", f"{folder}/table")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    table = spark.read.parquet(f"{folder}/table").orderBy("queue", "offset")
    found = table.selectExpr("queue", "cast(cast(body as string) as int) as number").collect()
    numbers: dict[str, list[int]] = {}
    for row in found:
        numbers.setdefault(row.queue, []).append(row.number)
    return {"numbers": numbers}


def send_on(spark: SparkSession, *, uri: str, queue: str, to: str, folder: str) -> dict[str, Any]:
    """Stream all that is in a queue into another one."""
    rows = warren.spark.read_queues(spark, queue, uri=uri, ledger=f"{folder}/ledger")
    query = (
        rows.select("body")
        .writeStream.format("rabbitmq")
        .option("uri", uri)
        .option("routingKey", to)
        .option("checkpointLocation", f"{folder}/sent")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return {}


def drain(spark: SparkSession, *, uri: str, queue: str, folder: str) -> dict[str, Any]:
    """What is in a queue, taken by one batch read; in the order of offsets."""
    ledger = f"{folder}/batch-ledger"
    rows = warren.spark.read_queues(spark, queue, uri=uri, ledger=ledger, stream=False)
    taken = rows.orderBy("offset").selectExpr("cast(cast(body as string) as int) as number")
    return {"numbers": [row.number for row in taken.collect()]}


def run_pipeline(spark: SparkSession, *, file: str, uri: str) -> dict[str, Any]:
    """All that is in the queues of a pipeline's file."""
    total = Run.from_file(file, url=uri).run(once=True)
    return {"adds_up": total.adds_up, **total.as_json()}


def executors(spark: SparkSession) -> dict[str, Any]:
    """How many executors there are."""
    tracker = spark.sparkContext._jsc.sc().statusTracker()  # type: ignore[union-attr]
    return {"count": len(tracker.getExecutorInfos()) - 1}


JOBS = {
    job.__name__: job
    for job in (write_numbers, read_queues, send_on, drain, run_pipeline, executors)
}


def main(master: str, folder: str) -> None:
    answers = sys.stdout
    sys.stdout = sys.stderr
    spark = warren.spark.session(
        "warren tests",
        master=master,
        **{
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.cores.max": 2,
            "spark.driver.extraJavaOptions": quick_java(),
            "spark.executor.extraJavaOptions": f"{quick_java()} -Djava.io.tmpdir={folder}",
            "spark.local.dir": str(Path(folder, "driver")),
            "spark.sql.shuffle.partitions": 2,
            **{
                f"spark.executorEnv.{name}": value
                for name, value in json.loads(os.environ[EXECUTOR_ENV]).items()
            },
        },
    )
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = JOBS[asked.pop("job")](spark, **asked)
        except Exception:  # noqa: BLE001 - whoever asked is told
            answer = {"failed": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
