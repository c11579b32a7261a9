"""The driver that the harness kills: queues to Parquet, for as long as it lives.

``python -m tests.spark.exactly_once_job MASTER URI QUEUES FOLDER PREFETCH``. A query that fails is
started again. When the file ``last`` is in the folder, what is there is read to its end and the
file removed: no query runs then, until there is another one.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pyspark.cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import warren.spark
from tests.spark import exactly_once_source, exactly_once_steps
from tests.spark.exactly_once_source import WatchedSource
from tests.support.spark_cluster import quick_java

#: Short, so that a task may sleep until its rows are forgotten.
RETENTION_S = 6


class Job:
    def __init__(
        self, spark: SparkSession, uri: str, queues: str, folder: Path, prefetch: int
    ) -> None:  # fmt: skip
        self._spark, self._folder = spark, folder
        self._options = {
            "uri": uri,
            "queues": queues,
            "ledger": str(folder / "ledger"),
            "prefetch": prefetch,
            "maxMessagesPerTrigger": 3000,
            "drainTimeoutMs": 2000,
            "ledgerRetention": f"{RETENTION_S}s",
        }

    def start(self, **trigger: Any) -> Any:
        folder = self._folder
        frame = self._spark.readStream.format(WatchedSource.name()).options(**self._options).load()
        # The number is the message's id if it has one, else the body begins with it.
        number = "coalesce(message_id, CAST(substring(body, 1, 8) AS STRING)) AS body"
        writer = frame.selectExpr("queue", "offset", number, "crc32(body) AS sum").writeStream
        writer = writer.format("parquet")
        writer = writer.options(path=f"{folder}/table", checkpointLocation=f"{folder}/checkpoint")
        return writer.trigger(**trigger).start()

    def run(self) -> None:
        """Read on until there is a last run to do."""
        query = self.start(processingTime="100 milliseconds")
        while query.isActive and not self._is_last:
            time.sleep(0.1)
        if self._is_last:
            query.stop()
            return
        _tell(query.exception() or "it ended")

    def run_to_the_end(self) -> None:
        query = self.start(availableNow=True)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            _tell(error)
            return
        (self._folder / "last").unlink()
        while not self._is_last:
            time.sleep(0.05)

    @property
    def _is_last(self) -> bool:
        return (self._folder / "last").exists()

    def run_always(self) -> None:
        while True:
            if self._is_last:
                self.run_to_the_end()
            else:
                self.run()
            time.sleep(0.1)


def _tell(reason: object) -> None:
    print("the query failed:", next(iter(str(reason).splitlines()), ""), flush=True)


def main(master: str, uri: str, queues: str, folder: Path, prefetch: int) -> None:
    spark = warren.spark.session("exactly once", master=master, **{
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.pyspark.python": sys.executable,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.cores.max": 2,
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": quick_java(),
        "spark.executor.extraJavaOptions": quick_java(),
    })  # fmt: skip
    for module in (exactly_once_source, exactly_once_steps):
        pyspark.cloudpickle.register_pickle_by_value(module)
    spark.dataSource.register(WatchedSource)
    Job(spark, uri, queues, folder, prefetch).run_always()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]), int(sys.argv[5]))
