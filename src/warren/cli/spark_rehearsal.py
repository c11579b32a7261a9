"""Uses of Spark what sessions use, so that Java loads the classes: for ``warren spark prepare``.

Queues to Parquet, as a stream and by batches, with JSON, Python, a sum, SQL and the way back to a
queue. A process of its own, told by the command line in which folder it may write, and Java's
options. It ends when Java has ended, which is when Java writes its archive.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import warren
import warren.spark
from warren.spark.java import end_java

_MESSAGES = 50
_BATCHES, _STREAM, _BACK = "batches", "stream", "back"
_SCHEMA = "id INT, country STRING, cents INT"


def _messages(spark: Any, url: str, folder: Path, queue: str) -> Any:
    options = {"url": url, "queues": queue, "ledger": str(folder / f"ledger-{queue}")}
    return spark.readStream.format("rabbitmq").options(**options).load()


def _rows(messages: Any) -> Any:
    decoded = messages.selectExpr("queue", f"from_json(cast(body AS STRING), '{_SCHEMA}') AS body")
    return decoded.selectExpr("queue", "body.*").where("id IS NOT NULL")


def _as_a_stream(spark: Any, url: str, folder: Path) -> None:
    table = _rows(_messages(spark, url, folder, _STREAM)).writeStream.format("parquet")
    _run(table.option("path", str(folder / "table")), folder, _STREAM)


def _by_batches(spark: Any, url: str, folder: Path) -> None:
    def batch(messages: Any, number: int) -> None:
        place = str(folder / "batches" / str(number))
        rows = _rows(messages)
        rows = rows.mapInArrow(lambda batches: batches, rows.schema).persist()
        rows.write.mode("overwrite").partitionBy("country").parquet(place)
        rows.unpersist()
        spark.read.parquet(place).createOrReplaceTempView("orders")
        sums = spark.sql("SELECT country, sum(cents) AS cents FROM orders GROUP BY country")
        back = sums.selectExpr("to_json(struct(*)) AS body", f"'{_BACK}' AS routing_key")
        back.write.format("rabbitmq").option("url", url).mode("append").save()

    messages = _messages(spark, url, folder, _BATCHES)
    _run(messages.writeStream.foreachBatch(batch), folder, _BATCHES)


def _run(writer: Any, folder: Path, name: str) -> None:
    writer = writer.option("checkpointLocation", str(folder / f"checkpoint-{name}"))
    writer.trigger(availableNow=True).start().awaitTermination()


async def _publish(url: str) -> None:
    async with warren.connect(url) as connection:
        channel = await connection.channel()
        await channel.declare_queue(_BACK)
        for queue in (_BATCHES, _STREAM):
            await channel.declare_queue(queue)
            for number in range(_MESSAGES):
                order = {"id": number, "country": "DE" if number % 2 else "FR", "cents": 100}
                channel.publish(json.dumps(order).encode(), routing_key=queue)
        await channel.confirmed()


def main(folder: str, java_options: str) -> None:
    settings = {"spark.driver.extraJavaOptions": java_options, "spark.local.dir": folder}
    with warren.Broker.in_thread() as broker:
        asyncio.run(_publish(broker.url))
        spark = warren.spark.session("rehearsal", master="local[2]", **settings)
        for part in (_by_batches, _as_a_stream):
            part(spark, broker.url, Path(folder))
        spark.stop()
        if code := end_java():
            sys.exit(f"Java has ended with code {code}")


if __name__ == "__main__":
    sys.tracebacklimit = 0  # Java's own words, which come before an error, tell more
    main(*sys.argv[1:])
