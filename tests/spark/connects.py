"""A session of Spark Connect, used as any other; as a program.

``python -m tests.spark.connects URL FOLDER`` has a server started, and starts a client of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.connect.client.core import DefaultChannelBuilder

import warren.spark
from tests.spark.queries import is_too_slow


def read(spark: SparkSession, url: str, folder: str) -> list[bytes]:
    rows = warren.spark.read_queues(spark, "in", uri=url, ledger=f"{folder}/batch", stream=False)
    return [bytes(row.body) for row in rows.select("body").collect()]


def write(spark: SparkSession, url: str, body: str) -> None:
    rows = spark.sql(f"SELECT '{body}' AS body, 'in' AS routing_key")
    rows.write.format("rabbitmq").option("url", url).mode("append").save()


def stream(spark: SparkSession, url: str, folder: str) -> list[bytes]:
    rows = warren.spark.read_queues(spark, "in", uri=url, ledger=f"{folder}/stream")
    writer = rows.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
    writer = writer.format("parquet").option("path", f"{folder}/table").trigger(availableNow=True)
    for attempt in range(6):
        try:
            writer.start().awaitTermination()
            break
        except StreamingQueryException as error:
            if not is_too_slow(error) or attempt == 5:
                raise
    return [bytes(row.body) for row in spark.read.parquet(f"{folder}/table").collect()]


def settings(spark: SparkSession, *names: str) -> str:
    return " ".join(str(spark.conf.get(f"spark.sql.{name}")) for name in names)


def serve(url: str, folder: str) -> None:
    spark = warren.spark.session("server and client")
    print(type(spark).__module__, settings(spark, "session.timeZone", "shuffle.partitions"))
    print("batch", read(spark, url, folder))
    write(spark, url, "written")
    print("stream", stream(spark, url, folder))
    print("the same", warren.spark.session() is spark, flush=True)
    ours = ("SPARK_TESTING", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment["SPARK_REMOTE"] = f"sc://localhost:{DefaultChannelBuilder.default_port()}"
    environment["JAVA_HOME"] = str(Path(folder) / "nowhere")
    subprocess.run([sys.executable, "-m", __spec__.name], env=environment, check=True)
    spark.stop()


def use() -> None:
    spark = warren.spark.session("client", **{"spark.sql.ansi.enabled": False})
    print("client", settings(spark, "session.timeZone", "ansi.enabled"), spark.range(3).count())
    print("the same", warren.spark.session() is spark)
    spark.stop()


if __name__ == "__main__":
    serve(*sys.argv[1:]) if sys.argv[1:] else use()
